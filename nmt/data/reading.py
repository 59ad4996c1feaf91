"""Read a source: decode and clean the pairs, count the drops, and write the rest to one file of
lines `source<TAB>target`.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self, get_args

import numpy as np
import numpy.typing as npt

from nmt.config.schema import CleaningConfig
from nmt.data import checks as source_checks
from nmt.data import filtering
from nmt.data.splitting import Fingerprints, Kind, Mask, blocks, fingerprint, sentence_key
from nmt.data.workers import Workers, chunked
from nmt.errors import DataError
from nmt.extras.formats.readers import BadRecordError, PairSource, RawRow, TooFewColumnsError
from nmt.text.normalization import normalize_and_report

CHUNK_ROWS = 4096  # rows per task of a worker
CHECKED_PAIRS = 1000  # whose languages are checked, evenly spaced; or up to twice as many
MAX_LISTED = 10  # line numbers in the report, for each kind of unreadable row

Pair = tuple[str, str]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass
class Tally:
    """Counts of the rows of a source.

    Attributes:
        read: rows. dropped: pairs, by reason. repaired: sentences, by repair.
        lines: the first line numbers of unreadable rows, by reason; with the name of the file if
            there are several.
        first_problem: what is wrong with the first row that can be decoded but has no pair.
        swapped: ranges of lines (first, last) whose sides are in each other's language.
        shifted: the same for pairs that do not belong together, by the number of rows between those
            that do.
        non_ascii: decoded rows that are not only ASCII. copies: pairs whose sides count as the same
            sentence.
    """

    read: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    repaired: Counter[str] = field(default_factory=Counter)
    lines: dict[str, list[int | str]] = field(default_factory=dict)
    first_problem: str | None = None
    swapped: list[tuple[int, int]] = field(default_factory=list)
    shifted: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    non_ascii: int = 0
    copies: int = 0

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
        self.first_problem = self.first_problem or other.first_problem
        self.non_ascii += other.non_ascii
        self.copies += other.copies
        _join_ranges(self.swapped, other.swapped)
        for shift, ranges in other.shifted.items():
            _join_ranges(self.shifted.setdefault(shift, []), ranges)


@dataclass(frozen=True)
class CleanedChunk:
    """Some rows after cleaning: lines for the file, the fingerprints of `KINDS` for each line, and
    the counts.
    """

    lines: str
    fingerprints: bytes
    tally: Tally


class Pairs:
    """Cleaned pairs on disk: a file of lines, and a file beside it for each kind of fingerprints.

    Samples and splits depend on the fingerprints of whole pairs.
    """

    def __init__(self, path: Path, count: int) -> None:
        self.path = path
        self._count = count

    def __len__(self) -> int:
        return self._count

    def fingerprints(self, kind: Kind, is_wanted: Mask | None = None) -> Fingerprints:
        """The fingerprints of all pairs, or of those that are wanted."""
        result = np.empty(len(self) if is_wanted is None else np.count_nonzero(is_wanted), "<u8")
        end = 0
        with _fingerprint_file(self.path, kind).open("rb") as file:
            for block in blocks(len(self)):
                part = np.fromfile(file, "<u8", block.stop - block.start)
                part = part if is_wanted is None else part[is_wanted[block]]
                start, end = end, end + len(part)
                result[start:end] = part
        return result

    def stream(self, copies: npt.NDArray[np.generic] | None = None) -> Iterator[Pair]:
        """The pairs in order, each as many times as its number in `copies` says (0 or False: not at
        all); by default once.
        """
        with self.path.open(encoding="utf-8", newline="\n") as file:
            for block in blocks(len(self)):
                numbers = (
                    np.ones(block.stop - block.start, np.int8) if copies is None else copies[block]
                )
                for number, line in zip(
                    numbers.tolist(), file, strict=False
                ):  # not strict: the file continues after the block
                    for _ in range(number):
                        yield _to_pair(line)

    def offsets(self, is_wanted: Mask) -> npt.NDArray[np.int64]:
        """Where the lines of some pairs begin, for `read_at`."""
        starts = np.empty(np.count_nonzero(is_wanted), np.int64)
        position = count = 0
        with self.path.open("rb") as file:
            for block in blocks(len(self)):
                for wanted, line in zip(is_wanted[block].tolist(), file, strict=False):
                    if wanted:
                        starts[count] = position
                        count += 1
                    position += len(line)
        return starts

    def read_at(self, offsets: npt.NDArray[np.int64]) -> Iterator[Pair]:
        """The pairs whose lines begin at `offsets`, in that order."""
        with self.path.open("rb") as file:
            for block in blocks(len(offsets)):
                for offset in offsets[block].tolist():
                    file.seek(offset)
                    yield _to_pair(file.readline().decode("utf-8"))


class PairsWriter:
    """Writes `Pairs`, in a `with` block."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._files = ExitStack()
        self.count = 0

    def __enter__(self) -> Self:
        self._lines = self._files.enter_context(
            self._path.open("w", encoding="utf-8", newline="\n")
        )
        self._fingerprints = [
            self._files.enter_context(_fingerprint_file(self._path, kind).open("wb"))
            for kind in KINDS
        ]
        return self

    def __exit__(self, *_: object) -> None:
        self._files.close()

    def write(self, chunk: "CleanedChunk") -> None:
        self._lines.write(chunk.lines)
        columns = np.frombuffer(chunk.fingerprints, "<u8").reshape(-1, len(KINDS))
        self.count += len(columns)
        for file, column in zip(self._fingerprints, columns.T, strict=True):
            file.write(column.tobytes())

    def pairs(self) -> Pairs:
        """All that has been written; call it after the block."""
        return Pairs(self._path, self.count)


def _fingerprint_file(path: Path, kind: Kind) -> Path:
    return path.with_name(f"{path.name}.{kind}")


def _to_pair(line: str) -> Pair:
    src, _, tgt = line.removesuffix("\n").partition("\t")
    return src, tgt


class _Sample:
    """Evenly spaced pairs of a stream: every second, fourth, eighth ... one, so that they stay
    few.
    """

    def __init__(self) -> None:
        self.pairs: list[Pair] = []
        self._step = 1

    def add(self, lines: str) -> None:
        self.pairs += map(_to_pair, lines.split("\n")[: -1 : self._step])
        while len(self.pairs) > 2 * CHECKED_PAIRS:
            self.pairs, self._step = self.pairs[::2], 2 * self._step


def read_pairs(
    sources: Sequence[PairSource],
    config: CleaningConfig | None,
    workers: Workers,
    output: PairsWriter,
    advance: Callable[[int], object],
    *,
    languages: tuple[str, str] = ("", ""),
    target_first: bool = False,
) -> Tally:
    """Read and clean the files of a source, and write their pairs to `output`.

    Args:
        config: which pairs to drop; None for a dev or test set from its own files, which is used
            whole.
        advance: called with numbers of bytes that were read from the files.
        languages: codes of source and target, to notice that they are swapped, or others.
        target_first: fingerprint whole pairs as the opposite direction does.

    Raises:
        DataError: no row can be used, a row of a dev or test set cannot be read, most rows of a
            file have another encoding, the languages are swapped, or the sides are shifted.
    """
    total, count_before, sample = Tally(), output.count, _Sample()
    for source in sources:
        calls = (
            (source, config, rows, source.first_line + index * CHUNK_ROWS, languages, target_first)
            for index, rows in enumerate(chunked(source.rows(advance), CHUNK_ROWS))
        )
        tally = Tally()
        for chunk in workers.map(clean_rows, calls):
            output.write(chunk)
            tally.add(chunk.tally)
            sample.add(chunk.lines)
        _check_file(source, tally, languages)
        if len(sources) > 1:
            tally.lines = {
                reason: [f"{source.name}:{line}" for line in lines]
                for reason, lines in tally.lines.items()
            }
        total.add(tally)
    name, n_kept = _name(sources), output.count - count_before
    if not n_kept:
        raise DataError(_nothing_usable(name, total))
    source_checks.check_dropped(name, total.dropped, total.read)
    source_checks.check_copies(name, total.copies, n_kept)
    source_checks.check_languages(name, sample.pairs, languages)
    return total


def _check_file(source: PairSource, tally: Tally, languages: tuple[str, str]) -> None:
    """Raises: DataError if the encoding is another, the languages are swapped, or the sides are
    shifted.
    """
    undecodable = tally.lines.get(filtering.UNDECODABLE, [])
    source_checks.check_encoding(
        source.name, tally.dropped[filtering.UNDECODABLE], tally.non_ascii, undecodable
    )
    if tally.swapped:
        raise DataError(_swapped(source, tally, languages))
    if tally.shifted:
        raise DataError(_shifted(source, tally))


def _name(sources: Sequence[PairSource]) -> str:
    return (
        sources[0].name
        if len(sources) == 1
        else f"{sources[0].name} and {len(sources) - 1} more files"
    )


def clean_rows(
    source: PairSource,
    config: CleaningConfig | None,
    rows: list[RawRow],
    first_line: int,
    languages: tuple[str, str] = ("", ""),
    target_first: bool = False,
) -> CleanedChunk:
    """Runs in a worker: decode and clean `rows`, which begin on line `first_line`. languages,
    target_first: see `read_pairs`.
    """
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
        keys = sentence_key(src), sentence_key(tgt)
        tally.copies += keys[0] == keys[1] != ""
        fingerprints += map(fingerprint, (whole, *keys))
    tally.non_ascii = sum(not (src.isascii() and tgt.isascii()) for src, tgt in decoded)
    line_range = first_line, first_line + len(rows) - 1
    if source_checks.are_swapped(kept, languages):
        tally.swapped.append(line_range)
    if shift := source_checks.find_shift(decoded):
        tally.shifted[shift] = [line_range]
    return CleanedChunk("".join(lines), b"".join(fingerprints), tally)


def _join_ranges(ranges: list[tuple[int, int]], later: list[tuple[int, int]]) -> None:
    """Append line ranges; neighboring ones become one."""
    for first, last in later:
        start = ranges.pop()[0] if ranges and ranges[-1][1] + 1 == first else first
        ranges.append((start, last))


def _decode(source: PairSource, row: RawRow, line: int, tally: Tally, strict: bool) -> Pair | None:
    """The pair of a row; None if it cannot be read, which is then counted in `tally`. Raises:
    DataError instead if `strict`.
    """
    try:
        return source.pair(row)
    except UnicodeDecodeError as error:
        reason, detail = (
            filtering.UNDECODABLE,
            f"is not UTF-8 ({error.reason} at byte {error.start + 1})",
        )
    except TooFewColumnsError as error:
        reason, detail = (
            filtering.TOO_FEW_COLUMNS,
            f"has {_columns(error.args[0])}, expected {source.expected}",
        )
        tally.first_problem = tally.first_problem or f"{source.unit} {line} {detail}"
    except BadRecordError as error:
        reason, detail = filtering.BAD_RECORD, f"{error.args[0]}, expected {source.expected}"
        tally.first_problem = tally.first_problem or f"{source.unit} {line} {detail}"
    if strict:
        raise DataError(
            f"{source.name}: {source.unit} {line} {detail}; dev and test sets are used whole, "
            "so "
            f"fix the {source.unit}"
        )
    tally.drop(reason, line)
    return None


def _nothing_usable(name: str, tally: Tally) -> str:
    without_pair = tally.dropped[filtering.TOO_FEW_COLUMNS] + tally.dropped[filtering.BAD_RECORD]
    if tally.first_problem is not None and tally.dropped.total() == without_pair:
        return (
            f"{name}: no row can be used: {tally.first_problem}; check `format` in the "
            "configuration"
        )
    if not tally.read:
        return f"{name}: holds no pairs"
    dropped = ", ".join(f"{count:,} {reason}" for reason, count in tally.dropped.items())
    return (
        f"{name}: all {tally.read:,} pairs were dropped: {dropped}; check the file, and "
        "data.cleaning"
    )


def _swapped(source: PairSource, tally: Tally, languages: tuple[str, str]) -> str:
    src, tgt = languages
    return (
        f"{source.name}: the languages are swapped: the {src} sentences are {tgt}, and the {tgt} "
        f"sentences are {src} "
        f"({_ranges(source, tally.swapped)}); swap `columns` or `files` of this source in the "
        "configuration, or correct the file"
    )


def _shifted(source: PairSource, tally: Tally) -> str:
    shift, ranges = next(iter(tally.shifted.items()))
    rows = source.unit if abs(shift) == 1 else f"{abs(shift)} {source.unit}s"
    return (
        f"{source.name}: the pairs are shifted: most sources belong to the target {rows} "
        f"{'below' if shift > 0 else 'above'} "
        f"({_ranges(source, ranges)}); find the missing or added {source.unit} before this place, "
        "and correct the file"
    )


def _ranges(source: PairSource, ranges: list[tuple[int, int]]) -> str:
    lines = ", ".join(f"{first:,} to {last:,}" for first, last in ranges[:MAX_LISTED])
    return f"{source.unit}s {lines}{' ...' if len(ranges) > MAX_LISTED else ''}"


def _columns(count: int) -> str:
    return "1 column" if count == 1 else f"{count} columns"
