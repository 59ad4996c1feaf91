"""What `nmt prepare` will find in files of sentence pairs: how many it keeps, what splits fit; and
all pairs of a file that a user has: a translation memory, a table, a catalog.
"""

import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nmt.config.schema import CleaningConfig, SourceConfig, SplitConfig
from nmt.data import checks, splitting
from nmt.data.formats import Files, Languages, open_source
from nmt.data.reading import (
    CHUNK_ROWS,
    DUPLICATE,
    KINDS,
    Pair,
    Tally,
    clean_rows,
    to_pair,
)
from nmt.data.workers import chunked
from nmt.errors import DataError
from nmt.extras.init.inspection import inspect
from nmt.extras.init.languages import has_no_spaces

MAX_CLEANED = 100_000  # rows; the others are only counted
MAX_CHECKED = 2000  # pairs whose languages are checked
ANY_LENGTH = CleaningConfig(max_characters=sys.maxsize, max_length_ratio=sys.maxsize)


@dataclass(frozen=True)
class Measures:
    """What the files hold.

    Attributes:
        name: of the files.
        n_pairs: number of different pairs that are kept; of a large file, an estimate.
        n_read: rows that were cleaned. dropped: how many of them are not kept, by reason.
        is_all: whether those are all rows.
        n_held_out: how many pairs are a good dev set, and test set.
        n_characters: of a side, on average over both. n_different: different characters.
        has_no_spaces: for source and target, whether no spaces stand between words.
    """

    name: str
    n_pairs: int
    n_read: int
    dropped: Mapping[str, int]
    is_all: bool
    n_held_out: int
    n_characters: int
    n_different: int
    has_no_spaces: tuple[bool, bool]

    @property
    def count(self) -> str:
        """The number of pairs in words."""
        return (
            f"{self.n_pairs:,} pairs" if self.is_all else f"about {round(self.n_pairs, -3):,} pairs"
        )


def measure(config: SourceConfig, files: Files, languages: Languages) -> Measures:
    """Reads the pairs as `nmt prepare` does, and gives the same errors and warnings.

    Args:
        files: one, or one for each language.
        languages: of source and target.

    Raises:
        DataError: the files do not fit the configuration or the languages, or hold no pairs.
    """
    (source,) = open_source(config, files, languages)
    tally, n_rows, n_cleaned = Tally(), 0, 0
    fingerprints, texts = list[bytes](), list[str]()
    for rows in chunked(source.rows(), CHUNK_ROWS):
        if n_rows < MAX_CLEANED:
            chunk = clean_rows(
                source, CleaningConfig(), rows, source.first_line + n_rows, languages
            )
            tally.add(chunk.tally)
            fingerprints.append(chunk.fingerprints)
            texts += chunk.lines.splitlines()
            n_cleaned += len(rows)
        n_rows += len(rows)
    columns = np.frombuffer(b"".join(fingerprints), "<u8").reshape(-1, len(KINDS))
    different = columns[splitting.find_first(columns[:, 0])]
    checks.check_dropped(source.name, tally.dropped, tally.read)
    pairs = [*map(to_pair, texts[:: len(texts) // MAX_CHECKED + 1])]
    checks.check_languages(source.name, pairs, languages)
    part = n_cleaned / n_rows if n_rows else 1
    return Measures(
        source.name,
        round(len(different) / part),
        tally.read,
        {**tally.dropped, DUPLICATE: len(columns) - len(different)},
        n_cleaned == n_rows,
        _held_out(different),
        round(sum(map(len, texts)) / 2 / part),
        len(set().union(*texts)),
        (has_no_spaces([src for src, _ in pairs]), has_no_spaces([tgt for _, tgt in pairs])),
    )


def _held_out(fingerprints: splitting.Fingerprints) -> int:
    """The largest of some sizes that dev and test can have: at first a fifteenth of the pairs each,
    of few pairs a tenth; less where few pairs share no sentence with others.
    """
    n_pairs = len(fingerprints)
    size = min(2000, max(n_pairs // 15, min(50, n_pairs // 10)))
    numbers = (splitting.number_sentences(fingerprints[:, side]) for side in (1, 2))
    if not n_pairs:
        return 1
    component = splitting.connected_components(*numbers)
    while size > 1:
        with suppress(DataError):
            splitting.assign_splits(fingerprints[:, 0], component, SplitConfig(dev=size, test=size))
            break
        size //= 2
    return max(1, size)


def read_pairs(path: Path, languages: Languages) -> list[Pair]:
    """The pairs of a file in this direction, in their order: found as `nmt init` finds them, and
    normalized as `nmt prepare` does. Those that cannot be read, or lack a side, are left out.

    Args:
        languages: of source and target.

    Raises:
        DataError: the file cannot be read, has other languages, or holds no pair.
    """
    files = inspect([path], languages)
    columns = files.languages(languages)
    config = SourceConfig(**files.source(columns))
    (source,) = open_source(config, files.by_language(columns), languages)
    pairs, tally, line = list[Pair](), Tally(), source.first_line
    for rows in chunked(source.rows(), CHUNK_ROWS):
        chunk = clean_rows(source, ANY_LENGTH, rows, line, languages)
        pairs += map(to_pair, chunk.lines.split("\n")[:-1])
        tally.add(chunk.tally)
        line += len(rows)
    if not pairs:
        raise DataError(f"{path}: none of its {tally.read:,} pairs can be used")
    checks.check_dropped(source.name, tally.dropped, tally.read)
    checks.check_languages(source.name, pairs[:: len(pairs) // MAX_CHECKED + 1], languages)
    return pairs
