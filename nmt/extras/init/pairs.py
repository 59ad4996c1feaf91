"""All pairs of a file that a user has: a translation memory, a table, a catalog."""

import sys
from pathlib import Path

from nmt.config.schema import CleaningConfig, SourceConfig
from nmt.data import checks
from nmt.data.formats import Languages, open_source
from nmt.data.reading import CHUNK_ROWS, Pair, Tally, clean_rows, to_pair
from nmt.data.workers import chunked
from nmt.errors import DataError
from nmt.extras.init.inspection import inspect

ANY_LENGTH = CleaningConfig(max_characters=sys.maxsize, max_length_ratio=sys.maxsize)
MAX_CHECKED = 2000  # pairs whose languages are checked


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
