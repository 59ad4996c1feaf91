"""`nmt evaluate`: scores of a run, or of any file of translations, and all that makes them worth believing."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from nmt import __version__
from nmt.config.schema import DeviceName, TokenizerConfig
from nmt.data.evaluation_set import EvaluationSet, read_files, read_split, read_text
from nmt.decoding.forced import ScoredPair, score_pairs
from nmt.errors import DataError
from nmt.evaluation import page, provenance, system
from nmt.evaluation.analysis import inspect, leaks, look_for
from nmt.evaluation.leaks import Seen
from nmt.evaluation.results import Comparison, Evaluation, Other, Seeds, Unequal
from nmt.evaluation.system import System
from nmt.files import write_text
from nmt.metrics.alignment_error import read_reference_alignments
from nmt.metrics.scores import METRICS, MetricScore, canonical_name, score, score_tokenized
from nmt.metrics.significance import changes, compare
from nmt.run.folder import check_same_data, find_checkpoint, find_run, load_run_config
from nmt.run.journal import Journal
from nmt.text.tokenizers import JOINER, load_tokenizer

BOOTSTRAP = 1000  # resamples for the confidence intervals
HISTORY = "history.jsonl"
MEASURED = ("scores", "lowercase_scores", "tokenized_scores", "loss", "perplexity", "comparison")  # what the history keeps
SUSPICIOUS = 100  # outputs that look tokenised; sacrebleu's own limit
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
    folder: Path | Sequence[Path] | None = None,
    *,
    split: Literal["dev", "test"] = "test",
    prepared: Path | None = None,
    files: Files | None = None,
    device: DeviceName = "auto",
    overrides: Sequence[str] = (),
    wanted: Wanted = Wanted(),
) -> Evaluation:
    """Translate a split of the run's prepared data and score it; translations and scores are kept in the run's `evaluation/`.

    Args:
        folder: a run, or one of its checkpoints (default: the run trained last); several are an ensemble, scored on the data of the
            first and kept there.
        prepared: where the prepared data is now, if it was moved.
        files: sources and references to score on in place of the split.
        overrides: `decoding.key=value`, in place of the run's configuration; also of the run that is compared with.

    Raises:
        CheckpointError: there is no run, or it cannot be read; or the vocabularies of an ensemble differ.
        ConfigError: an override is not of decoding, or not possible.
        DataError: what is to be scored on is not there, or not what the run was trained on.
    """
    wanted = replace(wanted, metrics=list(dict.fromkeys(map(canonical_name, wanted.metrics))))
    one = system.load([folder] if isinstance(folder, Path) else folder or (), device=device, overrides=overrides)
    text = _read_split(one, prepared, split) if files is None else _read_parallel(files)
    other = None if wanted.other is None else _load_other(wanted.other, text, one, device, overrides)
    gold = None if wanted.alignments is None else read_reference_alignments(wanted.alignments, len(text))
    translations = one.translate(text)
    outputs = [translation.text for translation in translations]
    facts = {**one.facts(), "split": split if files is None else None, **_facts(text)}
    evaluation = _score(one.describe(text), text, outputs, facts, replace(wanted, lowercase=wanted.lowercase or one.lowercase))
    if wanted.tokenized:
        evaluation = replace(evaluation, tokenized=_score_words(one, evaluation))
    seen = _look_for(text, one, prepared)
    if other is not None:
        lowercase = one.lowercase or (isinstance(other, System) and other.lowercase)
        others = _translate(other, text, one, seen) if isinstance(other, System) else other
        evaluation = _compare(evaluation, others, seen, lowercase=lowercase)
    detailed = wanted.details or wanted.report is not None or gold is not None
    pairs = list(zip(text.sources or [], text.references[0], strict=True))
    led = score_pairs(one.translator, pairs)
    free = score_pairs(one.translator, pairs, free=True) if detailed else []
    evaluation = replace(
        evaluation,
        loss=_mean_loss(led),
        leaks=None if seen is None else leaks(seen, text, outputs, wanted.metrics),
        details=inspect(text, one, translations, led, free, seen, gold) if detailed else None,
    )
    place = split if files is None else f"{files.first.stem}-{text.digest[:8]}"
    _keep(one.folders[0] / "evaluation" / f"{place}-{one.name}", evaluation)
    if wanted.report is not None:
        page.write(evaluation, wanted.report, one.folders, translations)
    return evaluation


def run_seeds(folders: Sequence[Path], **settings: Any) -> Seeds:
    """As `run`, for two runs or more, which should differ in nothing but their seed.

    Raises:
        CheckpointError, DataError: as `run`; and if one is named twice, or their test sentences are not the same.
    """
    if len({folder.resolve() for folder in folders}) < len(folders):
        raise DataError("--runs: one of the runs is named twice, so that it would count twice")
    for folder in folders:
        find_checkpoint(find_run(folder))
    seeds = Seeds([run(folder, **settings) for folder in folders])
    if len({evaluation.text.digest for evaluation in seeds.evaluations}) > 1:
        raise DataError("--runs: these runs are not scored on the same sentences; only runs on the same data have a mean")
    return seeds


def run_files(hypotheses: Path, references: Sequence[Path], *, columns: int = 1, wanted: Wanted = Wanted()) -> Evaluation:
    """Score a file of translations, a line each, against one or more files of references.

    Raises:
        DataError: a file cannot be read, has nothing in it, or other than as many lines.
    """
    wanted = replace(wanted, metrics=list(dict.fromkeys(map(canonical_name, wanted.metrics))))
    outputs, streams = Files(hypotheses, references, columns).read()
    text = EvaluationSet(str(hypotheses), None, streams)
    facts = {"hypotheses": str(hypotheses), "references": [str(path) for path in references], **_facts(text)}
    facts["provenance"] = {"hypotheses_sha256": provenance.of_lines(outputs), "code": provenance.of_code()}
    evaluation = _score(f"{hypotheses}, {len(outputs):,} sentences", text, outputs, facts, wanted)
    if wanted.tokenized:
        evaluation = replace(evaluation, tokenized=_score_tokenized(outputs, streams, "as they stand", wanted.lowercase))
    if wanted.other is not None:
        evaluation = _compare(evaluation, _read_other(wanted.other, text))
    if wanted.report is not None:
        page.write(evaluation, wanted.report)
    return evaluation


def _read_split(one: System, prepared: Path | None, split: str) -> EvaluationSet:
    prepared = prepared or one.config.prepared_folder
    check_same_data(one.folders[0], prepared)
    return read_split(prepared, split)


def _read_parallel(files: Files) -> EvaluationSet:
    sources, references = files.read()
    return EvaluationSet(str(files.first), sources, references)


def _look_for(text: EvaluationSet, one: System, prepared: Path | None, *, is_other: bool = False) -> Seen | None:
    """What the data that it was trained on has of the text; None where that is not there any more."""
    try:
        return look_for(text, one, _training_data(one, prepared))
    except DataError as error:
        whose, how = (f" of {one.folders[0]}", "") if is_other else ("", "; --data names it")
        print(f"nmt: not looked for in the training data{whose} ({error}){how}", file=sys.stderr)
        return None


def _training_data(one: System, prepared: Path | None) -> list[Path]:
    """The prepared data of its members, each once; `prepared`, if it is given, is that of the first. Raises: DataError."""
    found: dict[str, Path] = {}
    for run, content in zip(one.folders, one.contents, strict=True):
        if content not in found:
            found[content] = prepared if prepared and not found else load_run_config(run).prepared_folder
            check_same_data(run, found[content])
    return [*found.values()]


def _mean_loss(led: Sequence[ScoredPair]) -> float:
    """Nats per token."""
    return -sum(one.log_prob for one in led) / sum(len(one.token_log_probs) for one in led)


def _facts(text: EvaluationSet) -> dict[str, Any]:
    return {"sentences": len(text), "text_sha256": text.digest, "version": __version__}


def _say_if_tokenized(outputs: Sequence[str], wanted: Wanted) -> None:
    parted = sum(output.endswith(" .") for output in outputs)
    if parted >= SUSPICIOUS and not wanted.tokenized:
        print(
            f"nmt: {parted:,} outputs end in ' .', as tokenised text does; the scores are meant for text as it is written",
            file=sys.stderr,
        )


def _score(subject: str, text: EvaluationSet, outputs: list[str], facts: dict[str, Any], wanted: Wanted) -> Evaluation:
    scores, uncased = (
        score(outputs, text.references, wanted.metrics, lowercase=lowercase, bootstrap=BOOTSTRAP) if needed else []
        for lowercase, needed in ((False, True), (True, wanted.lowercase))
    )
    _say_if_tokenized(outputs, wanted)
    return Evaluation(subject, text, outputs, facts, scores, uncased)


def _score_words(one: System, evaluation: Evaluation) -> list[MetricScore]:
    """BLEU of words as spaCy's rules part them, whatever tokens the model writes."""
    words = load_tokenizer(TokenizerConfig(kind="words"), one.config.data.tgt_language, "tgt", one.folders[0])

    def part(texts: Sequence[str]) -> list[str]:
        return [" ".join(token.removeprefix(JOINER) for token in tokens) for tokens in words.split_all(texts)]

    references = [part(stream) for stream in evaluation.text.references]
    return _score_tokenized(part(evaluation.outputs), references, words.signature, bool(evaluation.lowercase))


def _score_tokenized(outputs: Sequence[str], references: Sequence[Sequence[str]], words: str, uncased: bool) -> list[MetricScore]:
    cases = (False, True) if uncased else (False,)
    return [score_tokenized(outputs, references, words, lowercase=lowercase, bootstrap=BOOTSTRAP) for lowercase in cases]


def _load_other(path: Path, text: EvaluationSet, one: System, device: DeviceName, overrides: Sequence[str]) -> System | Other:
    """What is compared with, read before anything is translated, so that a fault shows early."""
    if not path.is_dir():
        return _read_other(path, text)
    other = system.load([path], device=device, overrides=overrides)
    ours, theirs = ("-".join(each.languages) for each in (one, other))
    if ours != theirs:
        raise DataError(f"{path}: translates {theirs}, and {one.folders[0]} {ours}; only systems of one direction are compared")
    return other


def _translate(other: System, text: EvaluationSet, one: System, seen: Seen | None) -> Other:
    """What it makes of the text, and what its training data has of it: `seen`, if `one` has the same."""
    outputs = [its.text for its in other.translate(text)]
    known = seen if {*other.contents} == {*one.contents} else _look_for(text, other, None, is_other=True)
    return Other(other.describe(text), outputs, other.facts(), known)


def _read_other(path: Path, text: EvaluationSet) -> Other:
    lines = read_text(path)
    if len(lines) != len(text):
        raise DataError(f"{path} has {len(lines)} lines, but there are {len(text)} sentences to compare")
    _check_kept(path, text)
    return Other(str(path), lines, {"hypotheses": str(path), "provenance": {"hypotheses_sha256": provenance.of_lines(lines)}})


def _check_kept(path: Path, text: EvaluationSet) -> None:
    """Raises: DataError if they were kept by an evaluation, and what it has written beside them says: of other sentences."""
    try:
        kept = json.loads(path.with_suffix(".json").read_bytes()).get("text_sha256", text.digest)
    except (OSError, ValueError, AttributeError):
        return
    if text.sources is not None and kept != text.digest:
        raise DataError(f"{path}: are translations of other sentences than {text.name}, as {path.with_suffix('.json')} says")


def _compare(evaluation: Evaluation, other: Other, seen: Seen | None = None, *, lowercase: bool = False) -> Evaluation:
    """Also without what either was trained on, where they were not trained on the same; `seen` is of the evaluation.

    Where one of them writes lower-case, case says nothing about how well it translates, and is ignored.
    """
    metrics = [score.name for score in evaluation.scores]
    ours, theirs, *references = (
        [text.lower() if lowercase else text for text in texts]
        for texts in (evaluation.outputs, other.outputs, *evaluation.text.references)
    )
    differences = compare(ours, theirs, references, metrics, lowercase=lowercase)
    unequal = None
    if other.seen is not None and other.seen is not seen:
        clean = [] if seen is None else sorted({*other.seen.clean} & {*seen.clean})
        one, two, *streams = ([texts[i] for i in clean] for texts in (ours, theirs, *references))
        without = compare(one, two, streams, metrics, lowercase=lowercase) if 0 < len(clean) < len(ours) else []
        unequal = Unequal(sum(other.seen.exact), sum(other.seen.near), len(clean), without)
    most = changes(ours, theirs, references, CHANGES)
    other = replace(other, subject=f"{other.subject}, ignoring case") if lowercase else other
    return replace(evaluation, comparison=Comparison(other, differences, most, unequal))


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
