"""Read a source: decode and clean the pairs, count the drops, and write the rest to one file of lines `source<TAB>target`."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from nmt.config.schema import CleaningConfig
from nmt.data import filtering, source_checks
from nmt.data.sources import PairSource, RawRow, TooFewColumnsError
from nmt.data.splitting import Fingerprints, fingerprint, sentence_key
from nmt.data.workers import Workers, chunked
from nmt.errors import DataError
from nmt.text.normalization import normalize_and_report

CHUNK_ROWS = 4096  # rows per task of a worker
CHECKED_PAIRS = 1000  # whose languages are checked, evenly spaced
MAX_LISTED = 10  # line numbers in the report, for each kind of unreadable row

Pair = tuple[str, str]


@dataclass
class Tally:
    """Counts of the rows of a source.

    Attributes:
        read: rows. dropped: pairs, by reason. repaired: sentences, by repair.
        lines: the first line numbers of unreadable rows, by reason.
        columns: the number of columns of the first row that has too few.
        swapped: ranges of lines (first, last) whose sides are in each other's language.
        shifted: the same for pairs that do not belong together, by the number of rows between those that do.
        non_ascii: decoded rows that are not only ASCII.
    """

    read: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    repaired: Counter[str] = field(default_factory=Counter)
    lines: dict[str, list[int]] = field(default_factory=dict)
    columns: int | None = None
    swapped: list[tuple[int, int]] = field(default_factory=list)
    shifted: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    non_ascii: int = 0

    def drop(self, reason: str, line: int | None = None) -> None:
        self.dropped[reason] += 1
        if line is not None:
            self.lines.setdefault(reason, []).append(line)
            del self.lines[reason][MAX_LISTED:]

    def add(self, other: "Tally") -> None:
        self.read += other.read
        self.dropped += other.dropped
        self.repaired += other.repaired
        for reason, lines in other.lines.items():
            self.lines[reason] = [*self.lines.get(reason, []), *lines][:MAX_LISTED]
        if self.columns is None:
            self.columns = other.columns
        self.non_ascii += other.non_ascii
        _join_ranges(self.swapped, other.swapped)
        for shift, ranges in other.shifted.items():
            _join_ranges(self.shifted.setdefault(shift, []), ranges)


@dataclass(frozen=True)
class CleanedChunk:
    """Some rows after cleaning: lines for the file, three fingerprints for each line (see `Pairs`), and the counts."""

    lines: str
    fingerprints: bytes
    tally: Tally


@dataclass(frozen=True)
class Pairs:
    """The cleaned pairs of a source, on disk. fingerprints: [N, 3], of the whole pair, the source key and the target key.

    Samples and splits depend on the fingerprints of whole pairs.
    """

    path: Path
    fingerprints: npt.NDArray[np.uint64]
    tally: Tally

    def __len__(self) -> int:
        return len(self.fingerprints)

    @property
    def pair_fingerprints(self) -> Fingerprints:
        return self.fingerprints[:, 0]

    def stream(self, positions: npt.NDArray[np.int64]) -> Iterator[Pair]:
        """The pairs at some positions, in ascending order."""
        is_wanted = np.zeros(len(self), np.bool_)
        is_wanted[positions] = True
        with self.path.open(encoding="utf-8", newline="\n") as file:
            for wanted, line in zip(is_wanted.tolist(), file, strict=True):
                if wanted:
                    src, _, tgt = line[:-1].partition("\t")
                    yield src, tgt


def read_pairs(
    source: PairSource,
    config: CleaningConfig | None,
    workers: Workers,
    path: Path,
    advance: Callable[[int], object],
    *,
    languages: tuple[str, str] = ("", ""),
    target_first: bool = False,
) -> Pairs:
    """Read and clean `source` into the file `path`.

    Args:
        config: which pairs to drop; None for a dev or test set from its own files, which is used whole.
        advance: called with the number of rows after each chunk.
        languages: codes of source and target, to notice that they are swapped, or others.
        target_first: fingerprint whole pairs as the opposite direction does.

    Raises:
        DataError: no row can be used, a row of a dev or test set cannot be read, most rows have another encoding, the languages
            are swapped, or the sides are shifted.
    """
    calls = (
        (source, config, rows, source.first_line + index * CHUNK_ROWS, languages, target_first)
        for index, rows in enumerate(chunked(source.rows(), CHUNK_ROWS))
    )
    tally, fingerprints = Tally(), [b""]
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for chunk in workers.map(clean_rows, calls):
            file.write(chunk.lines)
            fingerprints.append(chunk.fingerprints)
            tally.add(chunk.tally)
            advance(chunk.tally.read)
    fingerprint_table = np.frombuffer(b"".join(fingerprints), "<u8").reshape(-1, 3)
    pairs = Pairs(path, fingerprint_table, tally)
    source_checks.check_encoding(
        source.name, tally.dropped[filtering.UNDECODABLE], tally.non_ascii, tally.lines.get(filtering.UNDECODABLE, [])
    )
    if len(pairs) == 0:
        raise DataError(_nothing_usable(source, tally))
    if tally.swapped:
        raise DataError(_swapped(source, tally, languages))
    if tally.shifted:
        raise DataError(_shifted(source, tally))
    source_checks.check_dropped(source.name, tally.dropped, tally.read)
    source_checks.check_copies(source.name, fingerprint_table[:, 1], fingerprint_table[:, 2])
    sample = pairs.stream(np.unique(np.linspace(0, len(pairs) - 1, CHECKED_PAIRS).astype(np.int64)))
    source_checks.check_languages(source.name, sample, languages)
    return pairs


def clean_rows(
    source: PairSource,
    config: CleaningConfig | None,
    rows: list[RawRow],
    first_line: int,
    languages: tuple[str, str] = ("", ""),
    target_first: bool = False,
) -> CleanedChunk:
    """Runs in a worker: decode and clean `rows`, which begin on line `first_line`. languages, target_first: see `read_pairs`."""
    tally = Tally(read=len(rows))
    lines: list[str] = []
    fingerprints: list[bytes] = []
    decoded: list[Pair] = []
    kept: list[Pair] = []
    for line, row in enumerate(rows, start=first_line):
        pair = _decode(source, row, line, tally, strict=config is None)
        if pair is None:
            continue
        decoded.append(pair)
        (src, src_repairs), (tgt, tgt_repairs) = map(normalize_and_report, pair)
        reason = filtering.drop_reason(src, tgt, config) if config else None
        if reason:
            tally.drop(reason)
            continue
        tally.repaired.update(src_repairs)
        tally.repaired.update(tgt_repairs)
        whole = f"{tgt}\t{src}" if target_first else f"{src}\t{tgt}"
        kept.append((src, tgt))
        lines.append(f"{src}\t{tgt}\n")
        fingerprints += (fingerprint(whole), fingerprint(sentence_key(src)), fingerprint(sentence_key(tgt)))
    tally.non_ascii = sum(not (src.isascii() and tgt.isascii()) for src, tgt in decoded)
    line_range = first_line, first_line + len(rows) - 1
    if source_checks.are_swapped(kept, languages):
        tally.swapped.append(line_range)
    if shift := source_checks.find_shift(decoded):
        tally.shifted[shift] = [line_range]
    return CleanedChunk("".join(lines), b"".join(fingerprints), tally)


def _join_ranges(ranges: list[tuple[int, int]], later: list[tuple[int, int]]) -> None:
    """Append line ranges; neighbouring ones become one."""
    for first, last in later:
        start = ranges.pop()[0] if ranges and ranges[-1][1] + 1 == first else first
        ranges.append((start, last))


def _decode(source: PairSource, row: RawRow, line: int, tally: Tally, strict: bool) -> Pair | None:
    """The pair of a row; None if it cannot be read, which is then counted in `tally`. Raises: DataError instead if `strict`."""
    try:
        return source.pair(row)
    except UnicodeDecodeError as error:
        reason, detail = filtering.UNDECODABLE, f"is not UTF-8 ({error.reason} at byte {error.start + 1})"
    except TooFewColumnsError as error:
        reason, detail = filtering.TOO_FEW_COLUMNS, f"has {_columns(error.args[0])}, expected {source.expected}"
        if tally.columns is None:
            tally.columns = error.args[0]
    if strict:
        raise DataError(f"{source.name}: line {line} {detail}; dev and test sets are used whole, so fix the line")
    tally.drop(reason, line)
    return None


def _nothing_usable(source: PairSource, tally: Tally) -> str:
    if tally.columns is not None and tally.dropped.total() == tally.dropped[filtering.TOO_FEW_COLUMNS]:
        line = tally.lines[filtering.TOO_FEW_COLUMNS][0]
        detail = f"line {line} has {_columns(tally.columns)}, expected {source.expected}"
        return f"{source.name}: no row can be used: {detail}; check `format` in the configuration"
    if not tally.read:
        return f"{source.name}: holds no pairs"
    dropped = ", ".join(f"{count:,} {reason}" for reason, count in tally.dropped.items())
    return f"{source.name}: all {tally.read:,} pairs were dropped: {dropped}; check the file, and data.cleaning"


def _swapped(source: PairSource, tally: Tally, languages: tuple[str, str]) -> str:
    src, tgt = languages
    return (
        f"{source.name}: the languages are swapped: the {src} sentences are {tgt}, and the {tgt} sentences are {src} "
        f"({_ranges(tally.swapped)}); swap `columns` or `files` of this source in the configuration, or correct the file"
    )


def _shifted(source: PairSource, tally: Tally) -> str:
    shift, ranges = next(iter(tally.shifted.items()))
    rows = "line" if abs(shift) == 1 else f"{abs(shift)} lines"
    return (
        f"{source.name}: the pairs are shifted: most sources belong to the target {rows} {'below' if shift > 0 else 'above'} "
        f"({_ranges(ranges)}); find the missing or added line before this place, and correct the file"
    )


def _ranges(ranges: list[tuple[int, int]]) -> str:
    lines = ", ".join(f"{first:,} to {last:,}" for first, last in ranges[:MAX_LISTED])
    return f"lines {lines}{' ...' if len(ranges) > MAX_LISTED else ''}"


def _columns(count: int) -> str:
    return "1 column" if count == 1 else f"{count} columns"
