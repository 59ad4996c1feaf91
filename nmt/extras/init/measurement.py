"""What `nmt prepare` will find in files of sentence pairs: how many it keeps, what splits fit; and
all pairs of a file that a user has: a translation memory, a table, a catalog.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import starmap
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from nmt.config.schema import CleaningConfig, DataConfig, SourceConfig, SplitConfig
from nmt.data import checks, splitting
from nmt.data.formats import Files, Languages, PairSource, named, open_source
from nmt.data.reading import (
    CHUNK_ROWS,
    DUPLICATE,
    KINDS,
    CleanedChunk,
    Pair,
    Pairs,
    Source,
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
        texts: the number of rows of each file, by name.
        suspicious: what seems to be no translation, in words, by reason.
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
    texts: Mapping[str, int]
    suspicious: Mapping[str, str]

    @property
    def count(self) -> str:
        """The number of pairs in words."""
        return (
            f"{self.n_pairs:,} pairs" if self.is_all else f"about {round(self.n_pairs, -3):,} pairs"
        )


def measure(
    config: SourceConfig, files: Files, languages: Languages, *, is_judged: bool = True
) -> Measures:
    """Reads the pairs as `nmt prepare` does, and gives the same errors and warnings.

    Args:
        files: those of a source, or one for each language.
        languages: of source and target.
        is_judged: whether to look for pairs that are no translations.

    Raises:
        DataError: the files do not fit the configuration or the languages, or hold no pairs.
    """
    sources = open_source(config, files, languages)
    tally, counts, n_cleaned = Tally(), Counter({each.name: 0 for each in sources}), 0
    fingerprints, texts = list[bytes](), list[str]()
    with TemporaryDirectory() as folder:
        pairs = Pairs(Path(folder, "pairs.tsv"))
        for file, chunk in _cleaned(sources, CleaningConfig(), languages, counts, MAX_CLEANED):
            if not pairs.files or pairs.files[-1][1] != file:
                pairs.files.append((len(pairs), file))
            tally.add(chunk.tally)
            pairs.append(chunk)
            fingerprints.append(chunk.fingerprints)
            texts += chunk.lines.splitlines()
            n_cleaned = counts.total()
        suspicious = dict(_look(pairs, tally, languages)) if is_judged and len(pairs) else {}
    name, n_rows = named([*counts]), counts.total()
    columns = np.frombuffer(b"".join(fingerprints), "<u8").reshape(-1, len(KINDS))
    different = columns[splitting.find_first(columns[:, 0])]
    sample = [*map(to_pair, texts[:: len(texts) // MAX_CHECKED + 1])]
    _check(name, tally, sample, languages)
    part = n_cleaned / n_rows if n_rows else 1
    return Measures(
        name,
        round(len(different) / part),
        tally.read,
        {**tally.dropped, DUPLICATE: len(columns) - len(different)},
        n_cleaned == n_rows,
        _held_out(different),
        round(sum(map(len, texts)) / 2 / part),
        len(set().union(*texts)),
        (has_no_spaces([src for src, _ in sample]), has_no_spaces([tgt for _, tgt in sample])),
        counts,
        suspicious,
    )


def _cleaned(
    sources: Sequence[PairSource],
    config: CleaningConfig,
    languages: Languages,
    counts: Counter[str],
    most: int = sys.maxsize,
) -> Iterator[tuple[str, CleanedChunk]]:
    """The rows in parts, each with the name of its file. counts: gets the rows of each source.
    most: rows that are cleaned.
    """
    for source in sources:
        for rows in chunked(source.rows(), CHUNK_ROWS):
            line, is_cleaned = source.first_line + counts[source.name], counts.total() < most
            counts[source.name] += len(rows)
            if is_cleaned:
                yield source.name, clean_rows(source, config, rows, line, languages)


def by_file(texts: Mapping[str, int]) -> str:
    """How many texts came from each file, if there are several."""
    listing = ", ".join(f"{name} {count:,}" for name, count in texts.items())
    return f"texts of each file: {listing}" if len(texts) > 1 else ""


def _check(name: str, tally: Tally, sample: Sequence[Pair], languages: Languages) -> None:
    """Warn of files that are not what they seem."""
    from nmt.extras.suspicion.sample import check_languages

    checks.check_dropped(name, tally.dropped, tally.read)
    check_languages(name, sample, languages)


def _look(pairs: Pairs, tally: Tally, languages: Languages) -> Iterator[tuple[str, str]]:
    """What seems to be no translation, each with its worst pair."""
    from nmt.extras.suspicion.report import WHAT, find_suspicious, part_of_pairs

    nothing = np.zeros((0, 2), np.uint64)
    source = Source("source", pairs, slice(0, len(pairs)), tally, "", nothing)
    data = DataConfig(direction="-".join(languages))
    _, rows, sets = find_suspicious([source], [], data, starmap)
    for reason in (reason for reason in WHAT if reason in sets["source"]):
        _, _, file, line, src, tgt = next(row for row in rows if row[0] == reason)
        place = f"{file}:{line}" if len(source.files) > 1 else line
        texts = (json.dumps(text[:40], ensure_ascii=False) for text in (src, tgt))
        share = sets["source"][reason]["share"]
        yield (
            reason,
            f"{part_of_pairs(share)} {WHAT[reason]}, such as {' = '.join(texts)} (at {place})",
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


def read_pairs(paths: Sequence[Path], languages: Languages) -> tuple[list[Pair], str]:
    """The pairs of files in this direction, in their order, and as `by_file`: found as `nmt init`
    finds them, and normalized as `nmt prepare` does. Those that cannot be read, or lack a side, are
    left out.

    Args:
        languages: of source and target.

    Raises:
        DataError: a file cannot be read or has other languages, or there is no pair.
    """
    files = inspect(paths, languages)
    columns = files.languages(languages)
    config = SourceConfig(**files.source(columns))
    sources = open_source(config, files.by_language(columns), languages)
    counts = Counter({each.name: 0 for each in sources})
    pairs, tally = list[Pair](), Tally()
    for _, chunk in _cleaned(sources, ANY_LENGTH, languages, counts):
        pairs += map(to_pair, chunk.lines.split("\n")[:-1])
        tally.add(chunk.tally)
    name = named([*counts])
    if not pairs:
        raise DataError(f"{name}: none of its {tally.read:,} pairs can be used")
    _check(name, tally, pairs[:: len(pairs) // MAX_CHECKED + 1], languages)
    return pairs, by_file(counts)
