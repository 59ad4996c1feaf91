"""`nmt evaluate`: scores of a run, or of any file of translations, and all that makes them worth believing."""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from nmt import __version__, runs
from nmt.errors import DataError
from nmt.evaluation import page, provenance, system
from nmt.evaluation.findings import Comparison, Evaluation, Other, Seeds
from nmt.evaluation.forcing import force, mean_loss
from nmt.evaluation.inspection import inspect, leaks, look_for
from nmt.evaluation.system import System
from nmt.files import write_text
from nmt.report.alignment_error import read_gold
from nmt.report.leaks import Seen
from nmt.report.scores import METRICS, Score, known_name, score, score_tokenized
from nmt.report.significance import changes, compare
from nmt.sections import DeviceName, TokenizerConfig
from nmt.text.aligned import Aligned, read_files, read_split, read_text
from nmt.text.tokenizers import JOINER, load_tokenizer
from nmt.training.journal import Journal

BOOTSTRAP = 1000  # resamples for the confidence intervals
HISTORY = "history.jsonl"
MEASURED = ("scores", "lowercase_scores", "tokenized_scores", "loss", "perplexity", "comparison")  # what the history keeps
CHANGES = 10  # sentences that differ most from another system's, in either direction


@dataclass(frozen=True)
class Wanted:
    """What is measured.

    Attributes:
        metrics: names of `METRICS`, in any case.
        lowercase: also ignoring case, as a model that writes lower-case is scored anyway.
        tokenized: also tokenised BLEU, to compare with old papers.
        other: what to compare with: a run, or a file of translations of the same sentences.
        details: also scores by group, attention and exposure bias; of a run alone.
        report: a folder for a page on all of it, the details included.
        alignments: by hand, of the sources with their first references, a line each; asks for the details too.
    """

    metrics: Sequence[str] = tuple(METRICS)
    lowercase: bool = False
    tokenized: bool = False
    other: Path | None = None
    details: bool = False
    report: Path | None = None
    alignments: Path | None = None


@dataclass(frozen=True)
class Files:
    """Line-aligned files to score on. columns: how many references stand in a line, parted by tabs."""

    first: Path
    references: Sequence[Path]
    columns: int = 1

    def read(self) -> tuple[list[str], list[list[str]]]:
        """The lines of the first, and the streams of references. Raises: DataError."""
        return read_files(self.first, self.references, self.columns)


def run(
    folder: Path | None = None,
    *,
    split: Literal["dev", "test"] = "test",
    prepared: Path | None = None,
    files: Files | None = None,
    device: DeviceName = "auto",
    beam: int | None = None,
    wanted: Wanted = Wanted(),
) -> Evaluation:
    """Translate a split of the run's prepared data and score it; translations and scores are kept in the run's `evaluation/`.

    Args:
        prepared: where the prepared data is now, if it was moved.
        files: sources and references to score on in place of the split.

    Raises:
        CheckpointError: there is no run, or it cannot be read.
        DataError: what is to be scored on is not there, or not what the run was trained on.
    """
    wanted = replace(wanted, metrics=list(dict.fromkeys(map(known_name, wanted.metrics))))
    folder = runs.find(folder)
    text = _read_split(folder, prepared, split) if files is None else _read_parallel(files)
    one = system.load(folder, device=device, beam=beam)
    other = None if wanted.other is None else _load_other(wanted.other, text, device, beam)
    gold = None if wanted.alignments is None else read_gold(wanted.alignments, len(text))
    translations = one.translate(text)
    outputs = [translation.text for translation in translations]
    facts = {**one.facts(), "split": split if files is None else None, **_facts(text)}
    evaluation = _score(one.describe(text), text, outputs, facts, replace(wanted, lowercase=wanted.lowercase or one.lowercase))
    if wanted.tokenized:
        evaluation = replace(evaluation, tokenized=_score_words(one, evaluation))
    if other is not None:
        evaluation = _compare(evaluation, other())
    detailed = wanted.details or wanted.report is not None or gold is not None
    seen = _look_for(text, one, prepared)
    forced = force(one.translator, text.sources or [], text.references[0], free=detailed)
    evaluation = replace(
        evaluation,
        loss=mean_loss(forced),
        leaks=None if seen is None else leaks(seen, text, outputs, wanted.metrics),
        details=inspect(text, one, translations, forced, seen, gold) if detailed else None,
    )
    place = split if files is None else f"{files.first.stem}-{text.digest[:8]}"
    _keep(folder / "evaluation" / f"{place}-{one.checkpoint.name}-beam-{one.translator.options.beam}", evaluation)
    if wanted.report is not None:
        page.write(evaluation, wanted.report, folder, translations)
    return evaluation


def run_seeds(folders: Sequence[Path], **settings: Any) -> Seeds:
    """As `run`, for two runs or more, which should differ in nothing but their seed.

    Raises:
        CheckpointError, DataError: as `run`; and if one is named twice, or their test sentences are not the same.
    """
    if len({folder.resolve() for folder in folders}) < len(folders):
        raise DataError("--runs: one of the runs is named twice, so that it would count twice")
    for folder in folders:
        runs.find_checkpoint(runs.find(folder))
    seeds = Seeds([run(folder, **settings) for folder in folders])
    if len({evaluation.text.digest for evaluation in seeds.evaluations}) > 1:
        raise DataError("--runs: these runs are not scored on the same sentences; only runs on the same data have a mean")
    return seeds


def run_files(hypotheses: Path, references: Sequence[Path], *, columns: int = 1, wanted: Wanted = Wanted()) -> Evaluation:
    """Score a file of translations, a line each, against one or more files of references.

    Raises:
        DataError: a file cannot be read, has nothing in it, or other than as many lines.
    """
    wanted = replace(wanted, metrics=list(dict.fromkeys(map(known_name, wanted.metrics))))
    outputs, streams = Files(hypotheses, references, columns).read()
    text = Aligned(str(hypotheses), None, streams)
    facts = {"hypotheses": str(hypotheses), "references": [str(path) for path in references], **_facts(text)}
    facts["provenance"] = {"hypotheses_sha256": provenance.of_lines(outputs), "code": provenance.of_code()}
    evaluation = _score(f"{hypotheses}, {len(outputs):,} sentences", text, outputs, facts, wanted)
    if wanted.tokenized:
        tokenized = score_tokenized(outputs, streams, "as they stand", bootstrap=BOOTSTRAP)
        evaluation = replace(evaluation, tokenized=tokenized)
    if wanted.other is not None:
        evaluation = _compare(evaluation, _read_other(wanted.other, text))
    if wanted.report is not None:
        page.write(evaluation, wanted.report)
    return evaluation


def _read_split(folder: Path, prepared: Path | None, split: str) -> Aligned:
    prepared = prepared or runs.load_config(folder).prepared_folder
    runs.check_data(folder, prepared)
    return read_split(prepared, split)


def _read_parallel(files: Files) -> Aligned:
    sources, references = files.read()
    return Aligned(str(files.first), sources, references)


def _look_for(text: Aligned, one: System, prepared: Path | None) -> Seen | None:
    """What the training data has of the text; None where it is not there any more, for text that comes from elsewhere."""
    prepared = prepared or one.config.prepared_folder
    try:
        runs.check_data(one.folder, prepared)
        return look_for(text, one, prepared)
    except DataError as error:
        print(f"nmt: not looked for in the training data ({error}); --data names it", file=sys.stderr)
        return None


def _facts(text: Aligned) -> dict[str, Any]:
    return {"sentences": len(text), "text_sha256": text.digest, "version": __version__}


def _score(subject: str, text: Aligned, outputs: list[str], facts: dict[str, Any], wanted: Wanted) -> Evaluation:
    scores, uncased = (
        score(outputs, text.references, wanted.metrics, lowercase=lowercase, bootstrap=BOOTSTRAP) if needed else []
        for lowercase, needed in ((False, True), (True, wanted.lowercase))
    )
    return Evaluation(subject, text, outputs, facts, scores, uncased)


def _score_words(one: System, evaluation: Evaluation) -> Score:
    """BLEU of words as spaCy's rules part them, whatever tokens the model writes."""
    words = load_tokenizer(TokenizerConfig(kind="words"), one.config.data.tgt_language, "tgt", one.folder)

    def part(texts: Sequence[str]) -> list[str]:
        return [" ".join(token.removeprefix(JOINER) for token in tokens) for tokens in words.split_all(texts)]

    references = [part(stream) for stream in evaluation.text.references]
    return score_tokenized(part(evaluation.outputs), references, words.signature, bootstrap=BOOTSTRAP)


def _load_other(path: Path, text: Aligned, device: DeviceName, beam: int | None) -> Callable[[], Other]:
    """What is compared with, read at once, so that a fault shows early; translated when it is called."""
    if not path.is_dir():
        read = _read_other(path, text)
        return lambda: read
    other = system.load(path, device=device, beam=beam)
    return lambda: Other(other.describe(text), [one.text for one in other.translate(text)], other.facts())


def _read_other(path: Path, text: Aligned) -> Other:
    lines = read_text(path)
    if len(lines) != len(text):
        raise DataError(f"{path} has {len(lines)} lines, but there are {len(text)} sentences to compare")
    return Other(str(path), lines, {"hypotheses": str(path), "provenance": {"hypotheses_sha256": provenance.of_lines(lines)}})


def _compare(evaluation: Evaluation, other: Other) -> Evaluation:
    references, ours = evaluation.text.references, evaluation.outputs
    differences = compare(ours, other.outputs, references, [score.name for score in evaluation.scores])
    return replace(evaluation, comparison=Comparison(other, differences, changes(ours, other.outputs, references, CHANGES)))


def _keep(stem: Path, evaluation: Evaluation) -> None:
    """Write translations and scores, and add a line to the history, where no score is ever lost to a later one.

    The scores are worth having even where the run cannot be written.
    """
    try:
        stem.parent.mkdir(parents=True, exist_ok=True)
        write_text(stem.with_name(f"{stem.name}.txt"), "".join(f"{line}\n" for line in evaluation.outputs))
        write_text(stem.with_name(f"{stem.name}.json"), json.dumps(evaluation.to_dict(), indent=2, ensure_ascii=False))
        whole = evaluation.to_dict()
        scores = {key: whole[key] for key in MEASURED if key in whole}
        facts = {**evaluation.facts, "time": datetime.now(UTC).isoformat(timespec="seconds")}
        Journal(stem.with_name(HISTORY)).write("evaluation", facts.pop("step"), **scores, **facts)
    except OSError as error:
        print(f"nmt: {stem.parent}: the scores are not kept there ({error.strerror})", file=sys.stderr)
