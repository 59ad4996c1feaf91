"""`nmt evaluate`: score a run, an ensemble or a file of translations, and keep the results."""

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal
from zipfile import is_zipfile

import typer

from nmt import __version__
from nmt.commands.options import (
    BeamOption,
    DataOption,
    DecodingOption,
    DeviceOption,
    JsonOption,
    options_from,
    to_json,
)
from nmt.config.load import decoding_overrides
from nmt.config.schema import TokenizerConfig
from nmt.decoding.forced import ScoredPair, score_pairs
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
    METRICS,
    MetricScore,
    bleu_remarks,
    canonical_name,
    score,
    score_tokenized,
    tokenize,
)
from nmt.files import write_text
from nmt.run import provenance
from nmt.run.evaluated import System, open_system
from nmt.run.folder import EVALUATION_FOLDER, HISTORY_FILE, check_same_data
from nmt.run.journal import Journal
from nmt.run.leaks import check_rankers
from nmt.run.load import opened
from nmt.text.tokenizers import Tokenizer, load_tokenizer
from nmt.texts.load import find_memory

N_RESAMPLES = 1000  # of the bootstrap, for the confidence intervals
# Of the results, for the history.
HISTORY_KEYS = ("scores", "lowercase_scores", "tokenized_scores", "loss", "perplexity")
MIN_TOKENIZED = 100  # outputs that look tokenized before there is a warning; sacrebleu's own limit


@dataclass(frozen=True)
class ScoreOptions:
    """What to score, and on which sentences; the commands add further options."""

    folders: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Run folder or bundle. Default: the newest in runs/.",
            metavar="RUN",
        ),
    ] = None
    split: Annotated[
        Literal["dev", "test"],
        typer.Option("--split", help="Which split of the prepared data to score."),
    ] = "test"
    sources: Annotated[
        Path | None,
        typer.Option(
            "--sources",
            help="Score the run on this file and --references instead of a split.",
            metavar="FILE",
        ),
    ] = None
    hypotheses: Annotated[
        Path | None,
        typer.Option(
            "--hypotheses", help="Score this file of translations instead of a run.", metavar="FILE"
        ),
    ] = None
    references: Annotated[
        list[Path] | None,
        typer.Option(
            "--references", help="Reference translations; one or more files.", metavar="FILE"
        ),
    ] = None
    columns: Annotated[
        int | None,
        typer.Option(
            "--columns",
            min=1,
            help="References per line of a file of references, separated by tabs.",
            metavar="N",
        ),
    ] = None
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            help="BLEU, chrF, chrF++ or TER; may be repeated. Default: all.",
            metavar="NAME",
        ),
    ] = None
    lowercase: Annotated[bool, typer.Option("--lowercase", help="Add scores that ignore case.")] = (
        False
    )
    tokenized: Annotated[
        bool,
        typer.Option(
            "--tokenized",
            help=(
                "Add tokenized BLEU, to compare with old papers; a file of translations must be "
                "tokenized already."
            ),
        ),
    ] = False
    ensemble: Annotated[
        bool,
        typer.Option(
            "--ensemble", help="Let several RUNs translate together, and score the result."
        ),
    ] = False
    min_bleu: Annotated[
        float | None,
        typer.Option("--min-bleu", help="Exit with status 1 if BLEU is lower.", metavar="SCORE"),
    ] = None
    min_chrf: Annotated[
        float | None,
        typer.Option("--min-chrf", help="Exit with status 1 if chrF is lower.", metavar="SCORE"),
    ] = None
    max_ter: Annotated[
        float | None,
        typer.Option("--max-ter", help="Exit with status 1 if TER is higher.", metavar="SCORE"),
    ] = None
    data: DataOption = None
    beam: BeamOption = None
    set_: DecodingOption = None
    as_json: JsonOption = False
    device: DeviceOption = "auto"

    @property
    def run_folders(self) -> list[Path]:
        """The RUNs; empty for the newest run."""
        return [path for path in self.folders or [] if not self._is_reference(path)]

    @property
    def reference_files(self) -> list[Path]:
        """The files of references; the command line takes the words after A in `--references A B C`
        for RUNs.
        """
        return [*(self.references or []), *filter(self._is_reference, self.folders or [])]

    @property
    def overrides(self) -> list[str]:
        """`decoding.key=value` each."""
        return decoding_overrides(self.set_, self.beam)

    @property
    def limits(self) -> dict[str, float]:
        """The scores to reach (of TER: not to exceed), by metric."""
        limits = {"BLEU": self.min_bleu, "chrF": self.min_chrf, "TER": self.max_ter}
        return {metric: limit for metric, limit in limits.items() if limit is not None}

    @property
    def metrics(self) -> list[str]:
        """The metrics to score with, each once. Raises: DataError for an unknown metric."""
        return list(dict.fromkeys(map(canonical_name, [*(self.metric or METRICS), *self.limits])))

    def problems(self) -> list[tuple[bool, str]]:
        """Whether options do not go together, and what to do."""
        needs_run = self.sources is not None or self.ensemble or bool(self.overrides)
        return [
            (
                self.hypotheses is not None and bool(self.run_folders),
                "give a run or --hypotheses, not both",
            ),
            (
                self.hypotheses is not None and needs_run,
                "--sources, --ensemble, --set and --beam need a run, not a file of translations",
            ),
            (
                self.hypotheses is not None and not self.references,
                "--hypotheses needs --references: the file of reference translations",
            ),
            (
                self.sources is not None and not self.references,
                "--sources needs --references: the file of reference translations",
            ),
            (
                bool(self.references) and self.sources is None and self.hypotheses is None,
                "--references needs --sources, to translate with a run, or --hypotheses",
            ),
        ]

    def check(self) -> None:
        """Raises: typer.BadParameter if options do not go together."""
        for holds, text in self.problems():
            if holds:
                raise typer.BadParameter(text)

    def _is_reference(self, path: Path) -> bool:
        return (
            bool(self.references)
            and not names_run(path)
            and (self.hypotheses is not None or path.exists())
        )


@dataclass(frozen=True)
class EvaluateOptions(ScoreOptions):
    """The options of `nmt evaluate`."""

    runs: Annotated[
        bool,
        typer.Option(
            "--runs",
            help="Score several RUNs that differ in the seed: mean and standard deviation.",
        ),
    ] = False

    def problems(self) -> list[tuple[bool, str]]:
        """Whether options do not go together, and what to do."""
        return [
            *super().problems(),
            (
                (len(self.run_folders) > 1) != (self.runs or self.ensemble),
                "give one run, or several with --ensemble (they translate together) or with --runs "
                "(mean and standard deviation)",
            ),
            (
                self.runs and (self.ensemble or self.tokenized),
                "--runs scores each run alone; leave out --ensemble and --tokenized",
            ),
        ]


@options_from(EvaluateOptions)
def command(**values: Any) -> None:
    """Score, and print the results. Exit status 1 if a limit is not met."""
    options = EvaluateOptions(**values)
    options.check()
    results = run(options)
    print(to_json(results.to_dict()) if options.as_json else results.to_text())
    if missed := missed_limits(results.scores, options.limits):
        raise NmtError("; ".join(missed))


def run(options: EvaluateOptions) -> Evaluation | RunsSummary:
    """Score a run or a bundle, an ensemble or a file of translations.

    The results for a run are kept in its `evaluation/` folder. In Python:
    `run(EvaluateOptions(folders=[Path("runs/sample")], metric=["BLEU"])).scores`.

    Returns:
        The evaluation; for `options.runs` the mean and standard deviation of several.

    Raises:
        CheckpointError: there is no run, it cannot be read, or the vocabularies of an ensemble
            differ.
        ConfigError: an override is invalid.
        DataError: the sentences to score cannot be read, or are not from the data that the run was
            trained on.
    """
    if options.hypotheses is not None:
        return score_file(options.hypotheses, options)
    if not options.runs:
        return _evaluate_system(options.run_folders, options)
    if len({path.resolve() for path in options.run_folders}) < len(options.run_folders):
        raise DataError("--runs: a run is named twice; name each run once")
    for path in options.run_folders:  # report all errors before scoring, which takes long
        with opened(path):
            pass
    evaluations = [_evaluate_system([path], options) for path in options.run_folders]
    if len({evaluation.text.digest for evaluation in evaluations}) > 1:
        raise DataError(
            "--runs: the runs have different test sentences, so their scores have no mean; name "
            "runs on the same data"
        )
    return RunsSummary(evaluations)


def _evaluate_system(paths: Sequence[Path], options: EvaluateOptions) -> Evaluation:
    """A run or an ensemble. An ensemble is scored on the data of the first run, and its results are
    kept there.
    """
    with open_system(paths, device=options.device, overrides=options.overrides) as system:
        evaluation, _, _ = score_system(system, read_text(system, options), options)
        store(system, options, evaluation, evaluation.to_dict())
    return evaluation


def score_file(hypotheses: Path, options: ScoreOptions) -> Evaluation:
    """Score a file of translations, one per line."""
    metrics = options.metrics
    outputs, references = read_files(hypotheses, options.reference_files, options.columns)
    text = EvaluationSet(str(hypotheses), None, references)
    facts = {
        "hypotheses": str(hypotheses),
        "references": [str(path) for path in options.reference_files],
        **_text_facts(text),
        "provenance": {
            "hypotheses_sha256": provenance.of_lines(outputs),
            "code": provenance.of_code(),
        },
    }
    scores = _score_outputs(outputs, text, metrics, options, "", lowercase=options.lowercase)
    return Evaluation(f"{hypotheses}, {len(outputs):,} sentences", text, outputs, facts, *scores)


def score_system(
    system: System, text: EvaluationSet, options: ScoreOptions
) -> tuple[Evaluation, list[Translation], list[ScoredPair]]:
    """Translate and score. Also returns the translations, and the probability of the references."""
    metrics, start_time = options.metrics, time.perf_counter()
    translations = system.translator.translate(text.sources or [])
    memory = find_memory(system.translator, system.config)
    if memory and (n_known := sum(memory.exact(each) is not None for each in text.sources or [])):
        reason = "stand in the memory: the scores are higher than for new sentences"
        print(f"nmt: {n_known:,} of {len(text):,} sentences {reason}", file=sys.stderr)
    facts = {
        **system.facts(),
        "split": options.split if options.sources is None else None,
        **_text_facts(text),
        "translation_seconds": round(time.perf_counter() - start_time, 2),
    }
    outputs = [translation.text for translation in translations]
    lowercase = options.lowercase or system.config.tokenizer.lowercase
    tokenizer, language = None, system.config.data.tgt_language
    if options.tokenized:  # spaCy's words, for a model with any tokenizer
        tokenizer = load_tokenizer(
            TokenizerConfig(kind="words"), language, "tgt", system.folders[0]
        )
    scores = _score_outputs(
        outputs, text, metrics, options, language, tokenizer, lowercase=lowercase
    )
    forced = score_pairs(
        system.translator, list(zip(text.sources or [], text.references[0], strict=True))
    )
    n_tokens = sum(len(pair.token_log_probs) for pair in forced)
    loss = -sum(pair.log_prob for pair in forced) / n_tokens
    evaluation = Evaluation(system.describe(text), text, outputs, facts, *scores, loss)
    return evaluation, translations, forced


def read_text(system: System, options: ScoreOptions) -> EvaluationSet:
    """The sentences to score a system on.

    Raises:
        DataError: they cannot be read, or are not from the data that the run was trained on.
    """
    if options.sources is not None:
        sources, references = read_files(options.sources, options.reference_files, options.columns)
        return EvaluationSet(str(options.sources), sources, references)
    prepared = options.data or system.config.prepared_folder
    if options.data is None and not prepared.is_dir():
        raise DataError(
            f"{prepared}: missing, the data of {system.names[0]}; if it is elsewhere, name it with "
            "--data, or name other sentences with --sources and --references"
        )
    check_same_data(system.folders[0], prepared)
    check_rankers(system.ranking_runs.values(), prepared)
    return read_split(prepared, options.split)


def store(
    system: System,
    options: ScoreOptions,
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
    source: str = options.split
    if options.sources is not None:
        source = f"{options.sources.stem}-{evaluation.text.digest[:8]}"
    folder, name = system.folders[0] / EVALUATION_FOLDER, f"{source}-{system.file_name}"
    scores = {key: results[key] for key in history_keys if key in results}
    facts = {**evaluation.facts, "time": datetime.now(UTC).isoformat(timespec="seconds")}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / f"{name}.txt", "".join(f"{line}\n" for line in evaluation.outputs))
        write_text(folder / f"{name}.json", to_json(results))
        Journal(folder / HISTORY_FILE).write("evaluation", facts.pop("step"), **scores, **facts)
    except OSError as error:
        print(f"nmt: {folder}: cannot store the results there ({error.strerror})", file=sys.stderr)


def names_run(path: Path) -> bool:
    """Whether `path` is a run folder or a bundle, and no file of sentences."""
    return path.is_dir() or is_zipfile(path)


def _text_facts(text: EvaluationSet) -> dict[str, Any]:
    return {"sentences": len(text), "text_sha256": text.digest, "version": __version__}


def _score_outputs(
    outputs: Sequence[str],
    text: EvaluationSet,
    metrics: Sequence[str],
    options: ScoreOptions,
    language: str,
    tokenizer: Tokenizer | None = None,
    *,
    lowercase: bool,
) -> tuple[list[MetricScore], list[MetricScore], list[MetricScore]]:
    """The scores, those that ignore case, and those of tokenized text. Warns if the outputs look
    tokenized, and of what BLEU does not show.

    Args:
        language: of the texts; "" if it is not known.
        tokenizer: for --tokenized; None if the texts are tokenized already.
        lowercase: add scores that ignore case.
    """
    cases = (False, True) if lowercase else (False,)
    measure = partial(score, bootstrap=N_RESAMPLES, language=language)
    scores = [measure(outputs, text.references, metrics, lowercase=case) for case in cases]
    remarks = bleu_remarks(text.references, language, outputs) if "BLEU" in metrics else []
    tokenized_scores = []
    n_tokenized = sum(output.endswith(" .") for output in outputs)
    if options.tokenized:
        words, *references = (tokenize(lines, tokenizer) for lines in (outputs, *text.references))
        name = "as they stand" if tokenizer is None else tokenizer.signature
        tokenized_scores = [
            score_tokenized(words, references, name, lowercase=case, bootstrap=N_RESAMPLES)
            for case in cases
        ]
    elif n_tokenized >= MIN_TOKENIZED:
        remarks.append(
            f"{n_tokenized:,} outputs end in ' .' and look tokenized; the metrics need detokenized "
            "text"
        )
    for remark in remarks:
        print(f"nmt: {remark}", file=sys.stderr)
    return scores[0], scores[1] if lowercase else [], tokenized_scores
