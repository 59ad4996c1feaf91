"""`nmt evaluate`: score a run, an ensemble or a file of translations, compare it with another
system, and keep the results.
"""

import json
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nmt import __version__
from nmt.commands.evaluate_options import EvaluateOptions, is_bundle
from nmt.commands.options import options_from, to_json
from nmt.config.schema import TokenizerConfig
from nmt.data.evaluation_set import EvaluationSet, read_files, read_split, read_texts
from nmt.data.manifest import load_manifest
from nmt.decoding.forced import score_pairs
from nmt.errors import DataError, NmtError
from nmt.evaluation.results import Evaluation, RunsSummary
from nmt.evaluation.scores import METRICS, MetricScore, canonical_name, score, score_tokenized
from nmt.extras.analysis import page
from nmt.extras.analysis.alignment_error import read_reference_alignments
from nmt.extras.analysis.comparison import OtherSystem, compare_systems
from nmt.extras.analysis.leaks import TrainingOverlap, find_overlap, score_leaks
from nmt.extras.analysis.moses import check_language, score_moses
from nmt.extras.analysis.parts import analyze
from nmt.files import write_text
from nmt.run import provenance
from nmt.run.folder import (
    EVALUATION_FOLDER,
    HISTORY_FILE,
    ancestors,
    check_same_data,
    load_run_config,
)
from nmt.run.heritage import PreparedData, check_teacher
from nmt.run.journal import Journal
from nmt.run.load import opened
from nmt.run.system import System, open_system
from nmt.text.tokenizers import JOINER, Tokenizer, load_tokenizer

N_RESAMPLES = 1000  # of the bootstrap, for the confidence intervals
HISTORY_KEYS = (
    "scores",
    "lowercase_scores",
    "tokenized_scores",
    "loss",
    "perplexity",
    "comparison",
)
MIN_TOKENIZED = 100  # outputs that look tokenized before there is a warning; sacrebleu's own limit


@options_from(EvaluateOptions)
def command(options: EvaluateOptions) -> None:
    """The command line."""
    options.check()

    results = run(options)
    print(
        to_json(results.to_dict()) if options.as_json else results.to_table(details=options.details)
    )
    if failures := results.failures(options.gate):
        raise NmtError("; ".join(failures))


def run(options: EvaluateOptions) -> Evaluation | RunsSummary:
    """Score a run or a bundle, an ensemble or a file of translations. The results for a run are
    kept in its `evaluation/` folder.

    In Python: `run(EvaluateOptions(folders=[Path("runs/sample")], metric=["BLEU"])).scores`.

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
        return _evaluate_file(options.hypotheses, options)
    if options.runs:
        return _evaluate_runs(options.run_folders, options)
    return _evaluate_system(options.run_folders, options)


def _evaluate_system(paths: Sequence[Path], options: EvaluateOptions) -> Evaluation:
    """A run or a bundle, or an ensemble; an ensemble is scored on the data of the first, and its
    results are kept there.
    """
    metrics = _metric_names(options)
    with ExitStack() as stack:
        system = stack.enter_context(
            open_system(paths, device=options.device, overrides=options.overrides)
        )
        return _score_system(system, metrics, options, stack)


def _score_system(
    system: System, metrics: Sequence[str], options: EvaluateOptions, stack: ExitStack
) -> Evaluation:
    """Args: stack: keeps the system to compare with open."""
    if options.moses is not None:
        check_language(options.moses)
        if options.moses != system.config.data.tgt_language:
            raise DataError(
                f"{system.names[0]} translates {system.direction}: use --moses "
                f"{system.config.data.tgt_language}"
            )
    text = _read_text(system, options)
    other = (
        None if options.other is None else _load_other(options.other, text, system, options, stack)
    )
    alignments = (
        None
        if options.alignments is None
        else read_reference_alignments(options.alignments, len(text))
    )

    start_time = time.perf_counter()
    translations = system.translate(text)
    translation_seconds = round(time.perf_counter() - start_time, 2)
    outputs = [translation.text for translation in translations]
    tokenizer = None
    if options.tokenized:  # spaCy's words, for a model with any tokenizer
        tokenizer = load_tokenizer(
            TokenizerConfig(kind="words"), system.config.data.tgt_language, "tgt", system.folders[0]
        )
    scores = _score_outputs(
        outputs, text, metrics, options, tokenizer, lowercase=options.lowercase or system.lowercase
    )
    overlap = _find_overlap(text, system, options.data)
    comparison = None
    if other is not None:
        if isinstance(other, System):
            other = _translate_with_other(other, text, system)
        comparison = compare_systems(
            text, outputs, other, metrics, overlap=overlap, lowercase=system.lowercase
        )

    pairs = list(zip(text.sources or [], text.references[0], strict=True))
    teacher_forced = score_pairs(system.translator, pairs)
    details = None
    if options.details or options.report is not None or alignments is not None:
        details = analyze(
            text,
            translations,
            teacher_forced,
            system.translator,
            overlap,
            alignments,
            lowercase=system.lowercase,
        )
    evaluation = Evaluation(
        subject=system.describe(text),
        text=text,
        outputs=outputs,
        facts={
            **system.facts(),
            "split": options.split if options.sources is None else None,
            **_text_facts(text),
            "translation_seconds": translation_seconds,
        },
        **scores,
        loss=-sum(pair.log_prob for pair in teacher_forced)
        / sum(len(pair.token_log_probs) for pair in teacher_forced),
        comparison=comparison,
        leaks=None
        if overlap is None
        else score_leaks(overlap, text, outputs, metrics, lowercase=system.lowercase),
        details=details,
    )
    source = (
        options.split if options.sources is None else f"{options.sources.stem}-{text.digest[:8]}"
    )
    if not system.names[0].is_file():  # a bundle never changes
        _store_results(
            system.folders[0] / EVALUATION_FOLDER / f"{source}-{system.file_name}", evaluation
        )
    if options.report is not None:
        page.write(evaluation, options.report, system.folders, translations)
    return evaluation


def _evaluate_runs(folders: Sequence[Path], options: EvaluateOptions) -> RunsSummary:
    """Two runs or more, which should differ only in the seed. Raises: DataError if one is named
    twice, or their data differ.
    """
    if len({folder.resolve() for folder in folders}) < len(folders):
        raise DataError("--runs: a run is named twice; name each run once")
    for folder in folders:  # report all errors before scoring, which takes long
        with opened(folder):
            pass
    evaluations = [_evaluate_system([folder], options) for folder in folders]
    if len({evaluation.text.digest for evaluation in evaluations}) > 1:
        raise DataError(
            "--runs: the runs have different test sentences, so their scores have no mean; "
            "name "
            "runs on the same data"
        )
    return RunsSummary(evaluations)


def _evaluate_file(hypotheses: Path, options: EvaluateOptions) -> Evaluation:
    """A file of translations, one per line."""
    metrics = _metric_names(options)
    outputs, references = read_files(hypotheses, options.reference_files, options.columns)
    text = EvaluationSet(str(hypotheses), None, references)
    scores = _score_outputs(outputs, text, metrics, options, lowercase=options.lowercase)
    comparison = None
    if options.other is not None:
        comparison = compare_systems(text, outputs, _read_other(options.other, text), metrics)
    evaluation = Evaluation(
        subject=f"{hypotheses}, {len(outputs):,} sentences",
        text=text,
        outputs=outputs,
        facts={
            "hypotheses": str(hypotheses),
            "references": [str(path) for path in options.reference_files],
            **_text_facts(text),
            "provenance": {
                "hypotheses_sha256": provenance.of_lines(outputs),
                "code": provenance.of_code(),
            },
        },
        **scores,
        comparison=comparison,
    )
    if options.report is not None:
        page.write(evaluation, options.report)
    return evaluation


def _metric_names(options: EvaluateOptions) -> list[str]:
    """The requested metrics and those of the gate, each once. Raises: DataError for an unknown
    metric.
    """
    return list(dict.fromkeys(map(canonical_name, [*(options.metric or METRICS), *options.limits])))


def _text_facts(text: EvaluationSet) -> dict[str, Any]:
    return {"sentences": len(text), "text_sha256": text.digest, "version": __version__}


def _read_text(system: System, options: EvaluateOptions) -> EvaluationSet:
    """The sentences to score a system on."""
    if options.sources is not None:
        sources, references = read_files(options.sources, options.reference_files, options.columns)
        return EvaluationSet(str(options.sources), sources, references)
    prepared = options.data or system.config.prepared_folder
    if options.data is None and not prepared.is_dir():
        raise DataError(
            f"{prepared}: missing, the data of {system.names[0]}; if it is elsewhere, name it "
            "with --data, "
            "or name other sentences with --sources and --references"
        )
    check_same_data(system.folders[0], prepared)
    _check_reranker(system, prepared)
    return read_split(prepared, options.split)


def _check_reranker(system: System, prepared: Path) -> None:
    """Raises: DataError if the run that reranks the system's translations has dev or test sentences
    in its training data.
    """
    if (rerank := system.translator.options.rerank.run) is not None:
        data = PreparedData.load(prepared)
        with opened(rerank) as (run, _):
            check_teacher(
                run,
                data,
                data.config.data.opposite_direction,
                data.held_out.shared_with(data.pairs()),
            )


def _find_overlap(
    text: EvaluationSet, system: System, prepared: Path | None, *, is_other: bool = False
) -> TrainingOverlap | None:
    """The overlap of the text with the system's training data; None, with a warning, if the data is
    not where it was.

    Args:
        prepared: where the training data of the first run is now, if it was moved.
    """
    try:
        return find_overlap(text, system.translator, _training_folders(system, prepared))
    except DataError as error:
        of_run, remedy = (
            (f" of {system.names[0]}", "")
            if is_other
            else ("", "; name the prepared folder with --data")
        )
        problem = str(error).replace(str(system.folders[0]), str(system.names[0]))
        print(
            (
                f"nmt: cannot look for the test sentences in the training data{of_run} "
                f"({problem}){remedy}"
            ),
            file=sys.stderr,
        )
        return None


def _training_folders(system: System, prepared: Path | None) -> list[Path]:
    """The prepared folders of the members and of the runs that they start from, each content once.

    Raises:
        DataError: the folder of a member is missing or has changed. If another one is missing,
            there is only a warning.
    """
    folders: dict[str, Path] = {}  # by content hash
    for folder, data_hash in zip(system.folders, system.data_hashes, strict=True):
        if data_hash not in folders:
            folders[data_hash] = (
                prepared if prepared and not folders else load_run_config(folder).prepared_folder
            )
            check_same_data(folder, folders[data_hash])
    for member in system.folders:
        try:
            for run in ancestors(member):
                folder = load_run_config(run).prepared_folder
                check_same_data(run, folder)
                folders.setdefault(load_manifest(run)["content"], folder)
        except NmtError as error:
            print(
                (
                    "nmt: cannot look for the test sentences in the training data of an earlier "
                    "run "
                    f"({error})"
                ),
                file=sys.stderr,
            )
    return [*folders.values()]


def _score_outputs(
    outputs: Sequence[str],
    text: EvaluationSet,
    metrics: Sequence[str],
    options: EvaluateOptions,
    tokenizer: Tokenizer | None = None,
    *,
    lowercase: bool,
) -> dict[str, Any]:
    """The fields `scores`, `lowercase_scores` and `tokenized_scores` of an `Evaluation`. Warns if
    the outputs look tokenized.

    Args:
        tokenizer: for --tokenized; None if the texts are tokenized already.
        lowercase: add scores that ignore case.
    """
    references, tokenized_scores = text.references, list[MetricScore]()
    if options.tokenized:
        words, *reference_words = (_tokenize(lines, tokenizer) for lines in (outputs, *references))
        name = "as they stand" if tokenizer is None else tokenizer.signature
        for case in (False, True) if lowercase else (False,):
            tokenized_scores.append(
                score_tokenized(words, reference_words, name, lowercase=case, bootstrap=N_RESAMPLES)
            )
    if options.moses is not None:
        tokenized_scores.append(
            score_moses(outputs, references, options.moses, bootstrap=N_RESAMPLES)
        )
    n_tokenized = sum(output.endswith(" .") for output in outputs)
    if n_tokenized >= MIN_TOKENIZED and not options.tokenized:
        print(
            (
                f"nmt: {n_tokenized:,} outputs end in ' .' and look tokenized; the metrics need "
                "detokenized text"
            ),
            file=sys.stderr,
        )
    return {
        "scores": score(outputs, references, metrics, bootstrap=N_RESAMPLES),
        "lowercase_scores": score(
            outputs, references, metrics, lowercase=True, bootstrap=N_RESAMPLES
        )
        if lowercase
        else [],
        "tokenized_scores": tokenized_scores,
    }


def _tokenize(lines: Sequence[str], tokenizer: Tokenizer | None) -> Sequence[str]:
    """The lines with spaces between their words; unchanged without a tokenizer."""
    if tokenizer is None:
        return lines
    return [
        " ".join(token.removeprefix(JOINER) for token in tokens)
        for tokens in tokenizer.split_all(lines)
    ]


def _load_other(
    path: Path, text: EvaluationSet, system: System, options: EvaluateOptions, stack: ExitStack
) -> System | OtherSystem:
    """Load the system to compare with before anything is translated, so that errors appear
    early.
    """
    if not path.is_dir() and not is_bundle(path):
        return _read_other(path, text)
    other = stack.enter_context(
        open_system([path], device=options.device, overrides=options.overrides)
    )
    if other.direction != system.direction:
        raise DataError(
            f"{path} translates {other.direction}, but {system.names[0]} {system.direction}; "
            "compare systems of one direction"
        )
    if options.sources is None:
        _check_reranker(other, options.data or system.config.prepared_folder)
    return other


def _translate_with_other(other: System, text: EvaluationSet, system: System) -> OtherSystem:
    """Translate with the other system; look the text up in its training data if that is not the
    evaluated system's.
    """
    outputs = [translation.text for translation in other.translate(text)]
    has_same_data = {*other.data_hashes} == {*system.data_hashes}
    overlap = None if has_same_data else _find_overlap(text, other, None, is_other=True)
    return OtherSystem(other.describe(text), outputs, other.facts(), other.lowercase, overlap)


def _read_other(path: Path, text: EvaluationSet) -> OtherSystem:
    lines = read_texts(path)
    if len(lines) != len(text):
        raise DataError(
            f"{path} has {len(lines)} lines, but there are {len(text)} sentences to compare"
        )
    _check_text_hash(path, text)
    return OtherSystem(
        str(path),
        lines,
        {"hypotheses": str(path), "provenance": {"hypotheses_sha256": provenance.of_lines(lines)}},
    )


def _check_text_hash(path: Path, text: EvaluationSet) -> None:
    """Raises: DataError if the translations come from an earlier evaluation, whose JSON file shows
    other sentences.
    """
    try:
        text_hash = json.loads(path.with_suffix(".json").read_bytes()).get(
            "text_sha256", text.digest
        )
    except (OSError, ValueError, AttributeError, RecursionError):
        return
    if text.sources is not None and text_hash != text.digest:
        raise DataError(
            f"{path}: translations of other sentences than the {text.name}, according to "
            f"{path.with_suffix('.json')}"
        )


def _store_results(stem: Path, evaluation: Evaluation) -> None:
    """Write translations and results to `stem`.txt and .json, and append the scores to the history,
    which is never overwritten.

    If the run folder cannot be written, the results are still printed: warn and continue.
    """
    results = evaluation.to_dict()
    try:
        stem.parent.mkdir(parents=True, exist_ok=True)
        write_text(
            stem.with_name(f"{stem.name}.txt"), "".join(f"{line}\n" for line in evaluation.outputs)
        )
        write_text(
            stem.with_name(f"{stem.name}.json"), json.dumps(results, indent=2, ensure_ascii=False)
        )
        scores = {key: results[key] for key in HISTORY_KEYS if key in results}
        facts = {**evaluation.facts, "time": datetime.now(UTC).isoformat(timespec="seconds")}
        Journal(stem.with_name(HISTORY_FILE)).write(
            "evaluation", facts.pop("step"), **scores, **facts
        )
    except OSError as error:
        print(
            f"nmt: {stem.parent}: cannot store the results there ({error.strerror})",
            file=sys.stderr,
        )
