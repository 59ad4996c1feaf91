"""What `nmt prepare` will find in files of sentence pairs: how many it keeps, what splits fit."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

import numpy as np

from nmt.config.schema import CleaningConfig, SourceConfig, SplitConfig
from nmt.data import checks, splitting
from nmt.data.formats import Files, Languages, open_source
from nmt.data.reading import CHUNK_ROWS, DUPLICATE, KINDS, Tally, clean_rows
from nmt.data.workers import chunked
from nmt.errors import DataError
from nmt.extras.init.languages import has_no_spaces

MAX_ROWS = 300_000  # that are read; more make no difference to what is proposed
MAX_CHECKED = 2000  # pairs whose languages are checked


@dataclass(frozen=True)
class Measures:
    """What the files hold.

    Attributes:
        name: of the files.
        n_read: rows, at most `MAX_ROWS`. dropped: how many are not kept, by reason.
        n_pairs: the others. n_held_out: how many of them are a good dev set, and test set.
        n_characters: of a side, on average over both. n_different: different characters.
        has_no_spaces: for source and target, whether no spaces stand between words.
    """

    name: str
    n_read: int
    dropped: Mapping[str, int]
    n_pairs: int
    n_held_out: int
    n_characters: int
    n_different: int
    has_no_spaces: tuple[bool, bool]


def measure(config: SourceConfig, files: Files, languages: Languages) -> Measures:
    """Reads the pairs as `nmt prepare` does, and gives the same errors and warnings.

    Args:
        languages: of source and target.

    Raises:
        DataError: the files do not fit the configuration or the languages, or hold no pairs.
    """
    tally, name = Tally(), ""
    fingerprints, texts = list[bytes](), list[str]()
    for source in open_source(config, files, languages):
        name = source.name
        for index, rows in enumerate(chunked(islice(source.rows(), MAX_ROWS), CHUNK_ROWS)):
            first_line = source.first_line + index * CHUNK_ROWS
            chunk = clean_rows(source, CleaningConfig(), rows, first_line, languages)
            tally.add(chunk.tally)
            fingerprints.append(chunk.fingerprints)
            texts += chunk.lines.splitlines()
    columns = np.frombuffer(b"".join(fingerprints), "<u8").reshape(-1, len(KINDS))
    different = columns[splitting.find_first(columns[:, 0])]
    checks.check_dropped(name, tally.dropped, tally.read)
    sample = [text.partition("\t") for text in texts[:: len(texts) // MAX_CHECKED + 1]]
    pairs = [(src, tgt) for src, _, tgt in sample]
    checks.check_languages(name, pairs, languages)
    return Measures(
        name,
        tally.read,
        {**tally.dropped, DUPLICATE: len(columns) - len(different)},
        len(different),
        _held_out(different),
        sum(map(len, texts)) // 2,
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
            config = SplitConfig(dev=size, test=size)
            splitting.assign_splits(fingerprints[:, 0], component, config)
            break
        size //= 2
    return max(1, size)
