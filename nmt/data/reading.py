"""Sources: decode and clean their pairs, and write them to a file of `source<TAB>target` lines; how
many of the training pairs each of several sources gives. Each dropped pair is counted by reason.

With a temperature T, the part of a source of n pairs is in proportion to n ** (1 / T) (Arivazhagan
et al. 2019, arXiv 1907.05019). The number of training pairs stays the same: pairs of a source that
needs more are repeated, and of a source that needs fewer a random part is taken.
"""

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from pathlib import Path
from typing import NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from nmt.config.parts import FILTERS
from nmt.config.schema import CleaningConfig, DataConfig
from nmt.data import checks
from nmt.data.cleaning import (
    EMPTY_SOURCE,
    EMPTY_TARGET,
    LENGTH_RATIO,
    MISSING_VALUE,
    NO_LETTERS,
    TOO_LONG,
    drop_reason,
)
from nmt.data.formats import (
    BAD_QUOTATION,
    BAD_RECORD,
    TOO_FEW_COLUMNS,
    TOO_MANY_COLUMNS,
    UNDECODABLE,
    Languages,
    NoPairError,
    PairSource,
    RawRow,
    named,
)
from nmt.data.splitting import (
    Fingerprints,
    Kind,
    Mask,
    fingerprint,
    sample_pairs,
    sentence_key,
)
from nmt.data.workers import Workers, chunked
from nmt.errors import DataError, NmtWarning
from nmt.lines import CONVERT
from nmt.text.accelerators import without_accelerators
from nmt.text.tokenizers import normalize_and_report

CHUNK_ROWS = 4096  # rows per task of a worker
MAX_LISTED = 10  # line numbers, for each reason

# Why pairs are dropped, in the order of the report. The last four need all pairs.
HELD_OUT = "in dev or test of another"
SUSPICIOUS = "suspicious"
DUPLICATE = "exact duplicate"
BEYOND_MAX_PAIRS = "beyond max_pairs"
DROP_REASONS = (
    *(UNDECODABLE, TOO_FEW_COLUMNS, TOO_MANY_COLUMNS, BAD_QUOTATION, BAD_RECORD),
    *(EMPTY_SOURCE, EMPTY_TARGET, MISSING_VALUE, NO_LETTERS, TOO_LONG, LENGTH_RATIO),
    *(HELD_OUT, SUSPICIOUS, DUPLICATE, BEYOND_MAX_PAIRS),
)

Pair = tuple[str, str]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass
class Tally:
    """Counts of the rows of a source.

    Attributes:
        read: rows. dropped: pairs, by reason. repaired: sentences, by repair.
        lines: the first line numbers of what is dropped, by reason; with the name of the file if
            there are several.
        first_problem: what is wrong with the first row that can be decoded but has no pair.
        non_ascii: decoded rows that are not only ASCII.
    """

    read: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    repaired: Counter[str] = field(default_factory=Counter)
    lines: dict[str, list[int | str]] = field(default_factory=dict)
    first_problem: str | None = None
    non_ascii: int = 0

    def drop(self, reason: str, line: int) -> None:
        """Count the pair of a line as dropped."""
        self.dropped[reason] += 1
        if self.dropped[reason] <= MAX_LISTED:
            self.lines.setdefault(reason, []).append(line)

    def add(self, other: "Tally", name: str | None = None) -> None:
        """Add the counts of `other`. name: of its file or source, to stand before line numbers."""
        self.read += other.read
        self.dropped += other.dropped
        self.repaired += other.repaired
        for reason, lines in other.lines.items():
            named = lines if name is None else [f"{name}:{line}" for line in lines]
            self.lines[reason] = [*self.lines.get(reason, []), *named][:MAX_LISTED]
        self.first_problem = self.first_problem or other.first_problem
        self.non_ascii += other.non_ascii


class CleanedChunk(NamedTuple):
    """Rows after cleaning: lines for the file, the fingerprints of `KINDS` of each, the counts.

    origins: the line of each in its file, and what the rules of `FILTERS` say about it.
    """

    lines: str
    fingerprints: bytes
    tally: Tally
    origins: list[tuple[int, ...]]


class Pairs:
    """Cleaned pairs on disk: a file of lines, and a file beside it for each kind of fingerprints.

    Samples and splits depend on the fingerprints of whole pairs.

    Attributes:
        files: the names of those that they come from, and the first pair of each.
    """

    def __init__(self, path: Path, count: int = 0) -> None:
        """`count`: how many pairs the files hold already."""
        self.path, self._count = path, count
        self.files: list[tuple[int, str]] = []

    def __len__(self) -> int:
        return self._count

    def fingerprints(self, kind: Kind, is_wanted: Mask | None = None) -> Fingerprints:
        """The fingerprints of all pairs, or of those that are wanted."""
        all_pairs = np.fromfile(self._file(kind), "<u8", len(self))
        return all_pairs if is_wanted is None else all_pairs[is_wanted]

    def origins(self, name: str) -> npt.NDArray[np.uint64]:
        """[N, 2]: the line of each pair in its file; what the rule of a filter says about it."""
        columns = ["line", *FILTERS]
        table = np.fromfile(self._file("origin"), "<u8").reshape(-1, len(columns))
        return table[:, [0, columns.index(name)]]

    def _file(self, kind: str) -> Path:
        return self.path.with_name(f"{self.path.name}.{kind}")

    def stream(self, copies: npt.NDArray[np.generic] | None = None) -> Iterator[Pair]:
        """The pairs in order, each as often as `copies` says; by default once."""
        numbers = repeat(1) if copies is None else map(int, copies)
        with self.path.open(encoding="utf-8", newline="\n") as file:
            for number, line in zip(numbers, file, strict=False):
                yield from repeat(to_pair(line), number)

    def append(self, chunk: CleanedChunk) -> None:
        """Write the pairs of a chunk to the ends of the files."""
        with self.path.open("a", encoding="utf-8", newline="\n") as lines:
            lines.write(chunk.lines)
        columns = np.frombuffer(chunk.fingerprints, "<u8").reshape(-1, len(KINDS))
        self._count += len(columns)
        for kind, column in zip(KINDS, columns.T, strict=True):
            with self._file(kind).open("ab") as file:
                file.write(column.tobytes())
        with self._file("origin").open("ab") as file:
            file.write(np.array(chunk.origins, "<u8").tobytes())


def to_pair(line: str) -> Pair:
    """The pair of a line of `CleanedChunk`."""
    src, tgt = line.removesuffix("\n").split("\t")
    return src, tgt


def read_pairs(
    sources: Sequence[PairSource],
    config: CleaningConfig | None,
    workers: Workers,
    output: Pairs,
    advance: Callable[[int], object],
    *,
    languages: Languages = ("", ""),
    target_first: bool = False,
) -> Tally:
    """Read and clean the files of a source, and write their pairs to `output`.

    Args:
        config: which pairs to drop; None for a dev or test set from its own files, which is used
            whole.
        advance: called with numbers of bytes that were read from the files.
        languages: codes of source and target, to notice that they are swapped.
        target_first: fingerprint whole pairs as the opposite direction does.

    Raises:
        DataError: no row can be used, a row of a dev or test set cannot be read, most rows of a
            file have another encoding, the languages are swapped, or the sides are shifted.
    """
    total, count_before = Tally(), len(output)
    for source in sources:
        calls = (
            (source, config, rows, source.first_line + index * CHUNK_ROWS, languages, target_first)
            for index, rows in enumerate(chunked(source.rows(advance), CHUNK_ROWS))
        )
        tally = Tally()
        output.files.append((len(output), source.name))
        for chunk in workers.map(clean_rows, calls):
            output.append(chunk)
            tally.add(chunk.tally)
        n_undecodable = tally.dropped[UNDECODABLE]
        if n_undecodable > tally.non_ascii:  # not only a few damaged rows among others
            problem = (
                f"{source.name}: not UTF-8 in {n_undecodable:,} rows (the first: line "
                f"{tally.lines[UNDECODABLE][0]}); {CONVERT}"
            )
            if n_undecodable >= 5:
                raise DataError(problem)
            warnings.warn(problem, NmtWarning, stacklevel=2)
        total.add(tally, source.name if len(sources) > 1 else None)
    name = named([source.name for source in sources])
    if len(output) == count_before:
        raise DataError(_nothing_usable(name, total))
    checks.check_dropped(name, total.dropped, total.read)
    return total


def _nothing_usable(name: str, tally: Tally) -> str:
    reasons = (TOO_FEW_COLUMNS, TOO_MANY_COLUMNS, BAD_QUOTATION, BAD_RECORD)
    without_pair = sum(tally.dropped[reason] for reason in reasons)
    if tally.first_problem is not None and tally.dropped.total() == without_pair:
        return f"{name}: no row can be used: {tally.first_problem}; check `format`"
    if not tally.read:
        return f"{name}: holds no pairs"
    dropped = ", ".join(f"{count:,} {reason}" for reason, count in tally.dropped.items())
    return f"{name}: all {tally.read:,} pairs were dropped: {dropped}; check it and data.cleaning"


def clean_rows(
    source: PairSource,
    config: CleaningConfig | None,
    rows: list[RawRow],
    first_line: int,
    languages: Languages = ("", ""),
    target_first: bool = False,
) -> CleanedChunk:
    """Runs in a worker: decode and clean `rows`, which begin on line `first_line`.

    Args:
        languages, target_first: see `read_pairs`.
    """
    tally, fingerprints = Tally(read=len(rows)), list[bytes]()
    decoded, kept, origins = list[Pair](), list[Pair](), list[tuple[int, ...]]()
    rules = [part.load("rule") for part in FILTERS.values()]
    for line, row in enumerate(rows, start=first_line):
        pair = _decode(source, row, line, tally, strict=config is None)
        if pair is None:
            continue
        decoded.append(pair)
        (src, src_repairs), (tgt, tgt_repairs) = map(normalize_and_report, pair)
        reason = drop_reason(src, tgt, config) if config else None
        if reason:
            tally.drop(reason, line)
            continue
        tally.repaired.update(src_repairs)
        tally.repaired.update(tgt_repairs)
        kept.append((src, tgt))
        origins.append((line, *(rule(*pair) for rule in rules)))
        whole = f"{tgt}\t{src}" if target_first else f"{src}\t{tgt}"
        fingerprints += map(fingerprint, (whole, sentence_key(src), sentence_key(tgt)))
    tally.non_ascii = sum(not (src.isascii() and tgt.isascii()) for src, tgt in decoded)
    checks.check_order(
        source.name,
        source.unit,
        (first_line, first_line + len(rows) - 1),
        languages,
        kept,
        decoded,
    )
    return CleanedChunk(
        "".join(f"{src}\t{tgt}\n" for src, tgt in kept), b"".join(fingerprints), tally, origins
    )


def _decode(source: PairSource, row: RawRow, line: int, tally: Tally, strict: bool) -> Pair | None:
    """The pair of a row; None if the row is blank, or cannot be read. The latter is counted, or an
    error if `strict`.
    """
    try:
        pair = source.pair(row)
    except UnicodeDecodeError as error:
        reason = UNDECODABLE
        problem = f"{source.unit} {line} is not UTF-8 ({error.reason} at byte {error.start + 1})"
    except NoPairError as error:
        reason, detail = error.args
        problem = f"{source.unit} {line} {detail}, expected {source.expected}"
        tally.first_problem = tally.first_problem or problem
    else:
        tally.read -= pair is None
        return without_accelerators(*pair) if pair and source.has_accelerators else pair
    if strict:
        remedy = CONVERT if reason == UNDECODABLE else f"fix the {source.unit}"
        raise DataError(f"{source.name}: {problem}; dev and test sets are used whole, so {remedy}")
    tally.drop(reason, line)
    return None


@dataclass(frozen=True)
class Source:
    """A source that has been read.

    Attributes:
        part: the indices of its pairs among `pairs`. form: what its rows have.
        held_out: [N, 2], the keys of source and target that it keeps from training.
    """

    name: str
    pairs: Pairs
    part: slice
    tally: Tally
    form: str
    held_out: Fingerprints

    @property
    def files(self) -> list[str]:
        """The names of the files that its pairs come from."""
        files = self.pairs.files
        return [name for start, name in files if self.part.start <= start < self.part.stop]


@dataclass(frozen=True)
class Split:
    """Some pairs of a source.

    Attributes:
        source: all its pairs. is_member: [N], which of them are in the split; None: all.
        lines: the pairs to stream, in their order. copies: how many times each occurs; None: once.
    """

    source: Pairs
    is_member: Mask | None
    lines: Pairs
    copies: npt.NDArray[np.generic] | None = None

    def __len__(self) -> int:
        return len(self.lines) if self.copies is None else int(self.copies.sum(dtype=np.int64))

    def stream(self) -> Iterator[Pair]:
        """The pairs, read from disk."""
        return self.lines.stream(self.copies)

    def fingerprints(self, kind: Kind) -> Fingerprints:
        """Of the different pairs, in the order of the source."""
        return self.source.fingerprints(kind, self.is_member)


def apply_shares(train: Split, sources: Sequence[Source], data: DataConfig) -> Split:
    """The training pairs, each as often as the shares and the temperature of the sources demand.

    Raises:
        DataError: a source with a share has no training pairs.
    """
    if data.sources is None or (
        data.temperature == 1 and all(source.share is None for source in data.sources.values())
    ):
        return train
    is_member = train.is_member
    assert is_member is not None
    counts = np.array([np.count_nonzero(is_member[source.part]) for source in sources])
    shares = mixture(
        [data.sources[source.name].share for source in sources], counts, data.temperature
    )
    for source, count, share in zip(sources, counts, shares, strict=True):
        if share and not count:
            raise DataError(
                f"data.sources.{source.name}.share: none of its pairs is left for training; "
                "remove the source"
            )
    # Each pair of a source occurs `n_times`, and some of its pairs, chosen at random, once more.
    n_wanted = np.diff(np.rint(shares.cumsum() * counts.sum()).astype(np.int64), prepend=0)
    n_times = n_wanted // np.maximum(counts, 1)
    copies = np.zeros(len(is_member), np.uint32)
    fingerprints = train.fingerprints("pair")
    start = 0
    for source, count, wanted, times in zip(
        sources, counts.tolist(), n_wanted.tolist(), n_times.tolist(), strict=True
    ):
        is_once_more = sample_pairs(
            fingerprints[start : start + count], wanted - times * count, data.split.seed, "share"
        )
        copies[source.part][is_member[source.part]] = times + is_once_more
        start += count
    return replace(train, copies=copies)


def mixture(
    shares: Sequence[float | None], counts: npt.NDArray[np.int64], temperature: float
) -> npt.NDArray[np.float64]:
    """The part of each source; those without a share divide the rest by counts and temperature."""
    weights = np.array(
        [
            0.0 if share is not None else count ** (1 / temperature)
            for share, count in zip(shares, counts, strict=True)
        ]
    )
    fixed = np.array([share or 0.0 for share in shares])
    if not weights.any():
        return fixed / fixed.sum()  # type: ignore[no-any-return]
    return fixed + (1 - fixed.sum()) * weights / weights.sum()  # type: ignore[no-any-return]
