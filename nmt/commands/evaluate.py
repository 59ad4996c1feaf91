"""`nmt evaluate`: score a run, an ensemble or a file of translations, and keep the results."""

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any
from zipfile import is_zipfile

import typer

from nmt import __version__
from nmt.commands.options import (
    BeamOption,
    DataOption,
    DecodingOption,
    DeviceOption,
    HypothesesOption,
    JsonOption,
    ReferencesOption,
    RunsArgument,
    SourcesOption,
    SplitOption,
    to_json,
)
from nmt.config.load import decoding_overrides
from nmt.config.parts import DeviceName
from nmt.decoding.forced import score_pairs
from nmt.decoding.translation import Translation
from nmt.errors import DataError, NmtError
from nmt.evaluation.results import (
    Evaluation,
    EvaluationSet,
    RunsSummary,
    missed_limits,
    read_files,
    read_split,
)
from nmt.evaluation.scores import (
    MetricScore,
    bleu_remarks,
    canonical_name,
    score,
    usual_metrics,
)
from nmt.files import write_text
from nmt.run import provenance
from nmt.run.evaluated import System, open_system
from nmt.run.folder import EVALUATION_FOLDER, HISTORY_FILE, check_same_data
from nmt.run.journal import write_event
from nmt.run.leaks import check_rankers
from nmt.run.load import opened
from nmt.texts.load import find_memory

N_RESAMPLES = 1000  # of the bootstrap, for the confidence intervals
# Of the results, for the history.
HISTORY_KEYS = ("scores", "lowercase_scores", "loss", "perplexity")
MIN_TOKENIZED = 100  # outputs that look tokenized before there is a warning; sacrebleu's own limit


@dataclass(frozen=True)
class Request:
    """What to score, on which sentences and with which metrics. The first options are those that
    the commands have in common.

    Attributes:
        runs: an ensemble, if there are several; if there are none, the newest run.
        hypotheses: a file of translations, instead of a run.
        split: of the prepared data. data: where that is now, if it has moved.
        sources: instead of a split, with `references`.
        overrides: `decoding.key=value` each.
        metrics: by their exact names; if there are none, those that suit the language. limited:
            those with a limit, in any case. lowercase: whether also to score ignoring case.
    """

    runs: Sequence[Path] = ()
    hypotheses: Path | None = None
    split: str = "test"
    data: Path | None = None
    sources: Path | None = None
    references: Sequence[Path] = ()
    overrides: Sequence[str] = ()
    device: DeviceName = "auto"
    metrics: Sequence[str] = ()
    limited: Sequence[str] = ()
    lowercase: bool = False

    def check(self, others: Mapping[str, Any]) -> None:
        """Refuse options that do not go together.

        Args:
            others: further problems, each with whether there is one.

        Raises:
            typer.BadParameter: there is a problem.
        """
        problems = {
            "give a run or --hypotheses, not both": self.hypotheses and self.runs,
            "--sources, --set and --beam need a run, not a file of translations": (
                self.hypotheses and (self.sources or self.overrides)
            ),
            "--hypotheses needs --references: the file of reference translations": (
                self.hypotheses and not self.references
            ),
            "--sources needs --references: the file of reference translations": (
                self.sources and not self.references
            ),
            "--references needs --sources, to translate with a run, or --hypotheses": (
                self.references and not (self.sources or self.hypotheses)
            ),
            **others,
        }
        for text, is_wrong in problems.items():
            if is_wrong:
                raise typer.BadParameter(text)


def command(
    folders: RunsArgument = None,
    split: SplitOption = "test",
    sources: SourcesOption = None,
    hypotheses: HypothesesOption = None,
    references: ReferencesOption = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            help="BLEU, chrF, chrF++ or TER; may be repeated. Default: all that find words in the "
            "language.",
            metavar="NAME",
        ),
    ] = None,
    lowercase: Annotated[
        bool, typer.Option("--lowercase", help="Add scores that ignore case.")
    ] = False,
    ensemble: Annotated[
        bool,
        typer.Option(
            "--ensemble", help="Let several RUNs translate together, and score the result."
        ),
    ] = False,
    runs: Annotated[
        bool,
        typer.Option(
            "--runs",
            help="Score several RUNs that differ in the seed: mean and standard deviation.",
        ),
    ] = False,
    min_bleu: Annotated[
        float | None,
        typer.Option("--min-bleu", help="Exit with status 1 if BLEU is lower.", metavar="SCORE"),
    ] = None,
    min_chrf: Annotated[
        float | None,
        typer.Option("--min-chrf", help="Exit with status 1 if chrF is lower.", metavar="SCORE"),
    ] = None,
    max_ter: Annotated[
        float | None,
        typer.Option("--max-ter", help="Exit with status 1 if TER is higher.", metavar="SCORE"),
    ] = None,
    data: DataOption = None,
    beam: BeamOption = None,
    set_: DecodingOption = None,
    as_json: JsonOption = False,
    device: DeviceOption = "auto",
) -> None:
    """Score, and print the results. Those of a run are kept in its `evaluation/` folder.

    Raises:
        CheckpointError: there is no run, it cannot be read, or the vocabularies of an ensemble
            differ.
        ConfigError: an override is invalid.
        DataError: a metric is unknown, or the sentences to score cannot be read, or are not from
            the data that the run was trained on.
        NmtError: a limit is not met.
        typer.BadParameter: options do not go together.
    """
    paths, references = runs_and_references(folders, references, hypotheses)
    given = {"BLEU": min_bleu, "chrF": min_chrf, "TER": max_ter}
    limits = {name: limit for name, limit in given.items() if limit is not None}
    request = Request(
        paths,
        hypotheses,
        split,
        data,
        sources,
        references,
        decoding_overrides(set_, beam),
        device,
        [*map(canonical_name, metric or ())],
        [*limits],
        lowercase,
    )
    request.check(
        {
            "give one run, or several with --ensemble (they translate together) or with --runs "
            "(mean and standard deviation)": (len(paths) > 1) != (runs or ensemble),
            "--runs scores each run alone; leave out --ensemble": runs and ensemble,
        }
    )
    results: Evaluation | RunsSummary
    if hypotheses is not None:
        results = score_file(hypotheses, request)
    elif runs:
        results = _score_each_run(request)
    else:
        results = _score_and_store(request)
    print(to_json(results.to_dict()) if as_json else results.to_text())
    if missed := missed_limits(results.scores, limits):
        raise NmtError("; ".join(missed))


def runs_and_references(
    folders: Sequence[Path] | None, references: Sequence[Path] | None, hypotheses: Path | None
) -> tuple[list[Path], list[Path]]:
    """The RUNs, and the files of references: of the words in `--references A B C`, the command line
    takes those after A for RUNs.
    """
    runs: list[Path] = []
    files = [*(references or [])]
    for path in folders or []:
        is_file = not names_run(path) and (hypotheses is not None or path.exists())
        (files if references and is_file else runs).append(path)
    return runs, files


def names_run(path: Path) -> bool:
    """Whether `path` is a run folder or a bundle, and no file of sentences."""
    return path.is_dir() or is_zipfile(path)


def _score_each_run(request: Request) -> RunsSummary:
    if len({path.resolve() for path in request.runs}) < len(request.runs):
        raise DataError("--runs: a run is named twice; name each run once")
    for path in request.runs:  # report all errors before scoring, which takes long
        with opened(path):
            pass
    evaluations = [_score_and_store(replace(request, runs=[path])) for path in request.runs]
    if len({evaluation.text.digest for evaluation in evaluations}) > 1:
        raise DataError(
            "--runs: the runs have different test sentences, so their scores have no mean; name "
            "runs on the same data"
        )
    return RunsSummary(evaluations)


def _score_and_store(request: Request) -> Evaluation:
    """A run or an ensemble. An ensemble is scored on the data of the first run, and its results are
    kept there.
    """
    with open_system(request.runs, device=request.device, overrides=request.overrides) as system:
        evaluation, _ = score_system(system, read_text(system, request), request)
        store(system, evaluation, evaluation.to_dict())
    return evaluation


def score_file(hypotheses: Path, request: Request) -> Evaluation:
    """Score a file of translations, one per line."""
    outputs, references = read_files(hypotheses, request.references)
    text = EvaluationSet(str(hypotheses), None, references)
    facts = {
        "hypotheses": str(hypotheses),
        "references": [str(path) for path in request.references],
        **_text_facts(text),
        "provenance": {
            "hypotheses_sha256": provenance.of_lines(outputs),
            "code": provenance.of_code(),
        },
    }
    subject = f"{hypotheses}, {len(outputs):,} sentences"
    return Evaluation(subject, text, outputs, facts, *_score_outputs(outputs, text, request))


def score_system(
    system: System, text: EvaluationSet, request: Request
) -> tuple[Evaluation, list[Translation]]:
    """Translate and score. Also returns the translations."""
    start_time = time.perf_counter()
    translations = system.translator.translate(text.sources or [])
    memory = find_memory(system.translator, system.config)
    if memory and (n_known := sum(memory.exact(each) is not None for each in text.sources or [])):
        print(
            f"nmt: {n_known:,} of {len(text):,} sentences stand in the memory: the scores are "
            "higher than for new sentences",
            file=sys.stderr,
        )
    facts = {
        **system.facts(),
        "split": text.split,
        **_text_facts(text),
        "translation_seconds": round(time.perf_counter() - start_time, 2),
    }
    outputs = [translation.text for translation in translations]
    if system.config.tokenizer.lowercase:
        request = replace(request, lowercase=True)
    scores = _score_outputs(outputs, text, request, system.config.data.tgt_language)
    forced = score_pairs(
        system.translator, list(zip(text.sources or [], text.references[0], strict=True))
    )
    n_tokens = sum(len(pair.token_log_probs) for pair in forced)
    loss = -sum(pair.log_prob for pair in forced) / n_tokens
    evaluation = Evaluation(system.describe(text), text, outputs, facts, *scores, loss)
    return evaluation, translations


def read_text(system: System, request: Request) -> EvaluationSet:
    """The sentences to score a system on.

    Raises:
        DataError: they cannot be read, or are not from the data that the run was trained on.
    """
    if request.sources is not None:
        sources, references = read_files(request.sources, request.references)
        return EvaluationSet(str(request.sources), sources, references)
    prepared = request.data or system.config.prepared_folder
    if request.data is None and not prepared.is_dir():
        raise DataError(
            f"{prepared}: missing, the data of {system.names[0]}; if it is elsewhere, name it with "
            "--data, or name other sentences with --sources and --references"
        )
    check_same_data(system.folders[0], prepared)
    check_rankers(system.ranking_runs.values(), prepared)
    return read_split(prepared, request.split)


def store(
    system: System,
    evaluation: Evaluation,
    results: Mapping[str, Any],
    history_keys: Sequence[str] = HISTORY_KEYS,
) -> None:
    """Write the translations and the results into the run, and append the scores to its history,
    which is never overwritten.

    If the run folder cannot be written, the results are still printed: warn and continue.
    """
    if system.names[0].is_file():  # a bundle never changes
        return
    text = evaluation.text
    source = text.split or f"{Path(text.name).stem}-{text.digest[:8]}"
    folder, name = system.folders[0] / EVALUATION_FOLDER, f"{source}-{system.file_name}"
    scores = {key: results[key] for key in history_keys if key in results}
    facts = {**evaluation.facts, "time": datetime.now(UTC).isoformat(timespec="seconds")}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / f"{name}.txt", "".join(f"{line}\n" for line in evaluation.outputs))
        write_text(folder / f"{name}.json", to_json(results))
        write_event(folder / HISTORY_FILE, "evaluation", facts.pop("step"), **scores, **facts)
    except OSError as error:
        print(f"nmt: {folder}: cannot store the results there ({error.strerror})", file=sys.stderr)


def _text_facts(text: EvaluationSet) -> dict[str, Any]:
    return {"sentences": len(text), "text_sha256": text.digest, "version": __version__}


def _score_outputs(
    outputs: Sequence[str], text: EvaluationSet, request: Request, language: str = ""
) -> tuple[list[MetricScore], list[MetricScore]]:
    """The scores, and those that ignore case. Warns if the outputs look tokenized, and of what BLEU
    does not show.

    Args:
        language: of the texts; "" if it is not known.
    """
    usual, no_words = usual_metrics(language, text.references)
    metrics = [*dict.fromkeys([*(request.metrics or usual), *request.limited])]
    cases = (False, True) if request.lowercase else (False,)
    scores = [
        score(
            outputs,
            text.references,
            metrics,
            lowercase=case,
            bootstrap=N_RESAMPLES,
            language=language,
        )
        for case in cases
    ]
    remarks = bleu_remarks(text.references, language, outputs) if "BLEU" in metrics else []
    if no_words and not (request.metrics and {*metrics} <= {*usual}):
        remarks.append(no_words)
    n_tokenized = sum(output.endswith(" .") for output in outputs)
    if n_tokenized >= MIN_TOKENIZED:
        remarks.append(
            f"{n_tokenized:,} outputs end in ' .' and look tokenized; the metrics need detokenized "
            "text"
        )
    for remark in remarks:
        print(f"nmt: {remark}", file=sys.stderr)
    return scores[0], scores[1] if request.lowercase else []
