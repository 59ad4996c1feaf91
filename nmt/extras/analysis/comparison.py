"""Comparison with another system on the same sentences: paired significance tests, as in sacrebleu,
and the sentences that changed most.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmt.commands.evaluate import Request, names_run
from nmt.errors import DataError
from nmt.evaluation.results import EvaluationSet, read_texts
from nmt.evaluation.scores import (
    SEED,
    SentenceStatistics,
    build_metric,
    canonical_name,
    collect_statistics,
    sentence_chrf,
    usual_metrics,
)
from nmt.extras.analysis import html
from nmt.extras.analysis.leaks import data_hashes, training_overlap
from nmt.extras.analysis.results import Section, Translated, sentence_text
from nmt.report.table import Table
from nmt.run import provenance
from nmt.run.evaluated import System, open_system
from nmt.run.leaks import check_rankers

N_TRIALS = 10_000  # the default of sacrebleu
ALPHA = 0.05  # the level at which a difference is significant
ROUNDING = 1e-9  # below any difference of two scores
# in memory at once; with a multiple of 32, NumPy draws the same bits as for all trials together
BLOCK_TRIALS = 64
MAX_COUNTED = 16  # sentences that differ; with more, `_min_p` would be below 1 / N_TRIALS
N_CHANGES = 10  # sentences that gained most, and that lost most
MAX_CHANGES_SHOWN = 2  # of each, on the screen


@dataclass(frozen=True)
class Difference:
    """The difference between two systems in a metric, and whether chance explains it; with the keys
    of JSON.

    Attributes:
        metric: as in `METRICS`.
        score, other: of the system and of the other system. difference: between them.
        p_randomisation: two-sided p-value of approximate randomization (Noreen 1989). Of equal
            systems, 5 % have a value below 0.05; with the paired bootstrap (Koehn 2004), 11 %.
        signature: of the metric and the randomization.
    """

    metric: str
    score: float
    other: float
    difference: float
    p_randomisation: float
    signature: str


def load_other(path: Path, text: EvaluationSet, system: System, request: Request) -> Translated:
    """Translate with another run, or read a file of translations, to compare with. The text is
    looked up in the run's training data if that is not the evaluated system's.

    Raises:
        DataError: it translates another direction, or other sentences.
    """
    if not names_run(path):
        return read_other(path, text)
    with open_system([path], device=request.device, overrides=request.overrides) as other:
        if other.config.data.direction != system.config.data.direction:
            raise DataError(
                f"{path} translates {other.config.data.direction}, but {system.names[0]} "
                f"{system.config.data.direction}; compare systems of one direction"
            )
        if request.sources is None:
            check_rankers(
                other.ranking_runs.values(), request.data or system.config.prepared_folder
            )
        translations = other.translator.translate(text.sources or [])
        has_same_data = {*data_hashes(other)} == {*data_hashes(system)}
        return Translated(
            text.sources or [],
            [translation.text for translation in translations],
            text.references,
            lowercase=other.config.tokenizer.lowercase,
            overlap=None if has_same_data else training_overlap(text, other, None),
            subject=other.describe(text),
            facts=other.facts(),
        )


def read_other(path: Path, text: EvaluationSet) -> Translated:
    """Read a file of translations to compare with.

    Raises:
        DataError: it has another number of lines; or it comes from an earlier evaluation, whose
            JSON file shows other sentences.
    """
    lines = read_texts(path)
    if len(lines) != len(text):
        raise DataError(
            f"{path} has {len(lines)} lines, but there are {len(text)} sentences to compare"
        )
    beside = path.with_suffix(".json")
    try:
        text_hash = json.loads(beside.read_bytes()).get("text_sha256", text.digest)
    except (OSError, ValueError, AttributeError, RecursionError):
        text_hash = text.digest
    if text.sources is not None and text_hash != text.digest:
        raise DataError(
            f"{path}: translations of other sentences than the {text.name}, according to {beside}"
        )
    facts = {
        "hypotheses": str(path),
        "provenance": {"hypotheses_sha256": provenance.of_lines(lines)},
    }
    return Translated(text.sources or [], lines, text.references, subject=str(path), facts=facts)


def comparison(translated: Translated) -> Section | None:
    """Differences from another system. If one of the two writes only lower-case letters, they
    ignore case.
    """
    if (other := translated.other) is None:
        return None
    lowercase = translated.lowercase or other.lowercase
    texts = [
        [line.lower() if lowercase else line for line in lines]
        for lines in (translated.outputs, other.outputs, *translated.references)
    ]
    ours, theirs, *references = texts
    metrics, _ = usual_metrics(translated.language, references)
    compare_all = partial(
        compare, metrics=metrics, lowercase=lowercase, language=translated.language
    )
    differences = compare_all(ours, theirs, references)
    tables = [difference_table(differences)]
    sentences = [
        {**translated.sentence(i), "other": other.outputs[i], "gain": gain}
        for i, gain in largest_changes(ours, theirs, references, N_CHANGES)
    ]
    remarks = [f"compared with {other.subject}{', ignoring case' if lowercase else ''}"]
    values: dict[str, Any] = {"other": other.facts, "differences": [*map(vars, differences)]}
    if other.overlap is not None:  # each system may know other sentences from its training data
        known = translated.overlap
        clean = [] if known is None else sorted({*other.overlap.clean} & {*known.clean})
        without: list[Difference] = []
        if 0 < len(clean) < len(ours):
            ours, theirs, *references = ([lines[i] for i in clean] for lines in texts)
            without = compare_all(ours, theirs, references)
            note = f"on the {len(clean):,} sentences that are in neither system's training data"
            tables.append(difference_table(without, note))
        counts = {"exact": sum(other.overlap.exact), "near": sum(other.overlap.near)}
        remarks.append(
            f"sentences in the other system's training data: {counts['exact']:,} exactly, "
            f"{counts['near']:,} nearly"
        )
        counts["clean"] = len(clean)
        values["leaks_of_other"] = {**counts, "differences_without": [*map(vars, without)]}
    return Section(
        values={"comparison": {**values, "sentences": sentences}},
        text="\n".join([*remarks, *(table.to_text() for table in tables), *_changes(sentences)]),
        page=[
            ("Comparison", "\n".join([html.paragraphs(remarks), *map(html.table, tables)])),
            ("Sentences that gained or lost most", html.sentence_list(sentences)),
        ],
        failures=[*_failures(differences[0])],
    )


def _changes(sentences: list[dict[str, Any]]) -> Iterator[str]:
    """The sentences that changed most, for the screen."""
    gained = [one for one in sentences if one["gain"] > 0]
    shown = gained[:MAX_CHANGES_SHOWN] + sentences[len(gained) :][:MAX_CHANGES_SHOWN]
    if shown:
        yield "\nthe sentences that changed most, by chrF"
    for one in shown:
        yield f"chrF {one['gain']:+.1f}\n{sentence_text(one)}"


def _failures(bleu: Difference) -> Iterator[str]:
    """That the system is worse in BLEU, if chance does not explain it."""
    if bleu.difference < 0 and bleu.p_randomisation < ALPHA:
        yield (
            f"BLEU {bleu.score:.2f} is worse than {bleu.other:.2f}, by {-bleu.difference:.2f} "
            f"(p = {bleu.p_randomisation:.4f} < {ALPHA:g})"
        )


def compare(
    hypotheses: Sequence[str],
    other: Sequence[str],
    references: Sequence[Sequence[str]],
    metrics: Iterable[str] = ("BLEU", "chrF"),
    *,
    lowercase: bool = False,
    trials: int = N_TRIALS,
    language: str = "",
) -> list[Difference]:
    """Compare the translations of the same sentences by two systems, for each metric.

    Args:
        language: of the texts, as in `score`.

    Raises:
        DataError: a metric is unknown.
    """
    differences = []
    for name in map(canonical_name, metrics):
        metric = build_metric(name, lowercase=lowercase, language=language, references=references)
        ours, theirs = (
            collect_statistics(metric, outputs, references) for outputs in (hypotheses, other)
        )
        min_p = _min_p(metric, hypotheses, other, references)
        # Equal differences count (Noreen 1989), which sacrebleu does not do: they are common with
        # TER and with few sentences. The observed one counts as one of the random ones.
        least = abs(ours.score - theirs.score) - ROUNDING
        n_as_large = 1 + sum(
            abs(ours.score_of(our_sums) - theirs.score_of(their_sums)) > least
            for our_sums, their_sums in swapped_sums(ours, theirs, trials)
        )
        signature = metric.get_signature()
        signature.update("seed", SEED)
        signature.update("ar", trials)
        differences.append(
            Difference(
                name,
                ours.score,
                theirs.score,
                ours.score - theirs.score,
                max(float(n_as_large / (1 + trials)), min_p),
                str(signature),
            )
        )
    return differences


def largest_changes(
    hypotheses: Sequence[str], other: Sequence[str], references: Sequence[Sequence[str]], n: int
) -> list[tuple[int, float]]:
    """The `n` sentences with the largest gains in chrF over the other system, then the `n` with the
    largest losses.
    """
    different = [i for i, our in enumerate(hypotheses) if our != other[i]]
    texts, other_texts, *streams = (
        [lines[i] for i in different] for lines in (hypotheses, other, *references)
    )
    chrf = zip(sentence_chrf(texts, streams), sentence_chrf(other_texts, streams), strict=True)
    gains = [(i, our - their) for i, (our, their) in zip(different, chrf, strict=True)]
    gained = sorted((one for one in gains if one[1] > 0), key=lambda one: -one[1])
    lost = sorted((one for one in gains if one[1] < 0), key=lambda one: one[1])
    return gained[:n] + lost[:n]


def difference_table(differences: Sequence[Difference], note: str = "") -> Table:
    """A row for each metric."""
    return Table(
        "differences",
        "",
        ("metric", "score", "other", "difference", "p"),
        [tuple(vars(one).values())[:-1] for one in differences],  # without the signature
        note,
        digits=2,
        formats={"difference": "+.2f", "p": ".4f"},
    )


def _min_p(
    metric: Any,
    hypotheses: Sequence[str],
    other: Sequence[str],
    references: Sequence[Sequence[str]],
) -> float:
    """A lower bound of p. If the metric differs on k sentences, there are 2^k ways to swap them,
    and 2 of these differ as much.

    sacrebleu only counts trials that differ more. It would call two systems different that are
    equal, differ in one sentence, or differ only in what the metric ignores.
    """
    n_different = 0
    for our, their, *sentence_references in zip(hypotheses, other, *references, strict=True):
        if our != their:
            # Compares all counts behind the sentence scores, not only the scores.
            streams = [[reference] for reference in sentence_references]
            n_different += vars(metric.corpus_score([our], streams)) != vars(
                metric.corpus_score([their], streams)
            )
        if n_different == MAX_COUNTED:
            break
    return 2.0 ** min(0, 1 - n_different)


def swapped_sums(
    ours: SentenceStatistics, theirs: SentenceStatistics, trials: int
) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """For each trial, the sums of both systems' counts, with each sentence swapped at random."""
    random = np.random.default_rng(SEED)
    our_rows, their_rows = (np.array(system.rows, np.float64) for system in (ours, theirs))
    for start in range(0, trials, BLOCK_TRIALS):
        swaps = random.integers(
            2, size=(min(BLOCK_TRIALS, trials - start), len(ours.rows)), dtype=bool
        )
        our_sums, their_sums = (
            swaps @ other + ~swaps @ own
            for own, other in ((our_rows, their_rows), (their_rows, our_rows))
        )
        yield from zip(our_sums, their_sums, strict=True)
