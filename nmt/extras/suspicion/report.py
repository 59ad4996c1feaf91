"""What `nmt prepare` and `nmt init` say about pairs that seem to be no translations: figures,
warnings, and a list of the pairs.
"""

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmt.config.schema import DataConfig
from nmt.data.formats import named
from nmt.data.manifest import SUSPICIOUS
from nmt.data.pipeline import Job
from nmt.data.reading import MAX_LISTED, Source
from nmt.data.splitting import Mask, are_among, find_first
from nmt.data.word_alignment import Indices
from nmt.errors import NmtWarning
from nmt.extras.suspicion.find import Judged, Run
from nmt.extras.suspicion.rules import REASONS, Reason
from nmt.extras.suspicion.sample import check_sample
from nmt.lines import write_lines
from nmt.report.table import counts_by_name

COLUMNS = ("reason", "chance", "file", "line", "source", "target")
MAX_ROWS = 100_000  # of the list
MAX_WARNED = 20_000  # pairs that are judged where none is dropped
EXAMPLES = 3

Figures = dict[str, dict[str, Any]]  # by set

WHAT: dict[Reason, str] = {
    "encoding": "have damaged characters",
    "markup": "have HTML on one side only",
    "copies": "have a side in the language of the other one",
    "other_language": "have a side in a third language",
    "boilerplate": "have a text that is beside many others",
    "misaligned": "are no translations of each other",
    "partial": "have a side that is only a part of the other",
}


def filter_pairs(
    job: Job, sources: Sequence[Source], held_out: Sequence[Source]
) -> tuple[Mask, Figures]:
    """Write the list of suspicious pairs, if there are any, and warn of all that stay, and of signs
    in samples.

    Returns:
        Which of the training pairs are to be dropped, and the figures; see `find_suspicious`.
    """
    data = job.config.data
    for source in (*sources, *held_out):
        check_sample(source, (data.src_language, data.tgt_language))
    is_dropped, rows, sets = find_suspicious(sources, held_out, data, job.workers.map)
    if rows:
        write_lines(job.folder / SUSPICIOUS, map("\t".join, [COLUMNS, *rows]))
    for name, figures in sets.items():
        for reason in (reason for reason in REASONS if reason in figures):
            remedy = f"data.cleaning.{reason}: drop removes them"
            if name in ("dev", "test"):
                remedy = f"data.{name} is used whole, so correct them"
            elif getattr(data.cleaning, reason) == "drop":
                continue
            found, places = figures[reason], map(str, figures[reason]["lines"][:EXAMPLES])
            warnings.warn(
                f"{figures['files']}: {part_of_pairs(found['share'])} {WHAT[reason]} "
                f"(for example at {', '.join(places)}); {SUSPICIOUS} lists them, {remedy}",
                NmtWarning,
                stacklevel=2,
            )
    return is_dropped, sets


def summary_rows(sets: Figures) -> Iterator[tuple[str, str]]:
    """What seems to be no translation, of each set that has some."""
    for name, figures in sets.items():
        found = {key: each for key, each in figures.items() if isinstance(each, dict)}
        if found:
            numbers = {reason: each["pairs"] for reason, each in found.items()}
            lines = {reason: each["lines"] for reason, each in found.items()}
            label = "suspicious" if name == "source" else f"  in {name}"
            yield label, f"{counts_by_name(numbers, lines)}, of {figures['judged']:,} judged"


def part_of_pairs(share: float) -> str:
    """A share in words."""
    return f"about {share:.1%} of the pairs" if share >= 0.001 else "less than 0.1% of the pairs"


def find_suspicious(
    sources: Sequence[Source], held_out: Sequence[Source], data: DataConfig, run: Run
) -> tuple[Mask, list[tuple[str, ...]], Figures]:
    """Judge the pairs of all sources, or some of them where none is to be dropped, and of dev and
    test.

    Args:
        run: calls a function with each of some tuples of arguments.

    Returns:
        Which of the training pairs are to be dropped. The pairs that are found, worst first:
        `COLUMNS`. Of each set, its files, the number of pairs that were judged, and by reason the
        share, the number, and the first lines.
    """
    keys = data.cleaning.model_dump()
    drops = [reason for reason in REASONS if keys[reason] == "drop"]
    warned = [reason for reason in REASONS if keys[reason] == "warn"]
    fingerprints = sources[0].pairs.fingerprints("pair")
    if not (drops or warned or keys["worst"]):
        return np.zeros(len(fingerprints), np.bool_), [], {}
    is_first = find_first(fingerprints)
    most = len(fingerprints) if drops else MAX_WARNED // len(sources)
    parts: list[tuple[Source, Indices]] = []
    for source in sources:
        different = np.flatnonzero(is_first[source.part]) + source.part.start
        parts.append((source, different[:: max(1, -(-len(different) // most))]))
    parts += [(source, np.arange(len(source.pairs))) for source in held_out]
    judged = Judged(parts, len(sources), (data.src_language, data.tgt_language), run)
    reasons = np.full(len(judged.sets), "", "U20")
    for reason in (*drops, *warned):  # of several reasons, one that drops the pair counts
        reasons[(reasons == "") & judged.hits[reason]] = reason
    dropped = judged.indices[np.isin(reasons, drops) & (judged.sets < len(sources))]
    return (
        are_among(fingerprints, fingerprints[dropped]),
        [*_rows(judged, reasons, keys["worst"])],
        {
            source.name: _figures(judged, number, reasons)
            for number, source in enumerate(judged.sources)
        },
    )


def _rows(judged: Judged, reasons: NDArray[np.str_], n_worst: int) -> Iterator[tuple[str, ...]]:
    """The list, and further pairs with the worst scores."""
    order = np.lexsort((-judged.score, -judged.chance))
    worst = np.argsort(np.where(reasons == "", -judged.score, np.inf), kind="stable")[:n_worst]
    listed = np.concatenate([order[(reasons != "")[order]], worst])[:MAX_ROWS]
    is_listed = np.isin(np.arange(len(reasons)), listed)
    texts = dict(zip(np.flatnonzero(is_listed).tolist(), judged.read(is_listed), strict=True))
    for number in listed.tolist():
        reason, chance = reasons[number] or "worst", f"{judged.chance[number]:.2f}"
        yield reason, chance, judged.file(number), str(judged.lines[number]), *texts[number]


def _figures(judged: Judged, number: int, reasons: NDArray[np.str_]) -> dict[str, Any]:
    """Of a set."""
    source, is_member = judged.sources[number], judged.sets == number
    n_judged = int(np.count_nonzero(is_member))
    figures: dict[str, Any] = {"files": named(source.files), "judged": n_judged}
    for reason in REASONS:
        hits = np.flatnonzero(is_member & (reasons == reason))
        if len(hits):
            share = max(len(hits) / n_judged, judged.shares[reason].get(number, 0.0))
            lines = [
                f"{judged.file(hit)}:{judged.lines[hit]}"
                if len(source.files) > 1
                else int(judged.lines[hit])
                for hit in hits[:MAX_LISTED]
            ]
            figures[reason] = {"pairs": len(hits), "share": round(share, 4), "lines": lines}
    return figures
