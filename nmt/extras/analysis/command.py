"""`nmt analyze`: what is behind the scores of a run, an ensemble or a file of translations."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from nmt.commands.evaluate import (
    HISTORY_KEYS,
    Request,
    read_text,
    runs_and_references,
    score_file,
    score_system,
    store,
)
from nmt.commands.options import (
    BeamOption,
    ColumnsOption,
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
from nmt.errors import NmtError
from nmt.evaluation.results import Evaluation
from nmt.extras.analysis.attention import (
    alignment_error,
    attention,
    attention_figures,
    exposure_bias,
    read_reference_alignments,
)
from nmt.extras.analysis.comparison import comparison, load_other, read_other
from nmt.extras.analysis.html import write_report
from nmt.extras.analysis.leaks import training_overlap
from nmt.extras.analysis.results import Analysis, Translated
from nmt.extras.analysis.sentences import extremes, groups, leaks, wrong_outputs
from nmt.run.evaluated import open_system

# Each part finds a section of the analysis, or nothing; the order is that of the text and the page.
PARTS = leaks, comparison, alignment_error
DETAILS = groups, attention, exposure_bias, wrong_outputs, extremes, attention_figures
Finish = Callable[..., Analysis]  # `_analyze`, but for what the options say


def command(
    folders: RunsArgument = None,
    split: SplitOption = "test",
    sources: SourcesOption = None,
    hypotheses: HypothesesOption = None,
    references: ReferencesOption = None,
    columns: ColumnsOption = None,
    details: Annotated[
        bool,
        typer.Option(
            "--details",
            help="Scores by group, the best and worst sentences, attention, exposure bias.",
        ),
    ] = False,
    compare: Annotated[
        Path | None,
        typer.Option(
            "--compare",
            help="Compare with this run, bundle or file of translations, with significance tests.",
            metavar="OTHER",
        ),
    ] = None,
    not_worse_than: Annotated[
        Path | None,
        typer.Option(
            "--not-worse-than",
            help="Compare, and exit with status 1 if BLEU is significantly worse than OTHER's.",
            metavar="OTHER",
        ),
    ] = None,
    alignments: Annotated[
        Path | None,
        typer.Option(
            "--alignments",
            help="Reference alignments in Pharaoh format, for the alignment error rate.",
            metavar="FILE",
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report", help="Write everything, with pictures, to DIR/index.html.", metavar="DIR"
        ),
    ] = None,
    data: DataOption = None,
    beam: BeamOption = None,
    set_: DecodingOption = None,
    as_json: JsonOption = False,
    device: DeviceOption = "auto",
) -> None:
    """Analyze, and print what was found.

    Raises:
        NmtError: a run or a text cannot be used; or the translations are significantly worse than
            those of --not-worse-than.
        typer.BadParameter: options do not go together.
    """
    paths, references = runs_and_references(folders, references, hypotheses)
    overrides = decoding_overrides(set_, beam)
    request = Request(
        paths, hypotheses, split, data, sources, references, columns, overrides, device
    )
    request.check(
        {
            "give one run; `nmt evaluate` scores several": len(paths) > 1,
            "--details and --alignments need a run, not a file of translations": (
                hypotheses is not None and (details or alignments is not None)
            ),
            "--compare and --not-worse-than name different systems": (
                compare is not None and not_worse_than not in (None, compare)
            ),
        }
    )
    other = compare or not_worse_than
    has_details = details or report is not None or alignments is not None
    finish = partial(_analyze, report=report, has_details=has_details)
    if hypotheses is None:
        analysis = _analyze_run(request, other, alignments, finish)
    else:
        analysis = _analyze_file(hypotheses, request, other, finish)
    print(to_json(analysis.to_dict()) if as_json else analysis.to_text(details=details))
    failures = [failure for section in analysis.sections for failure in section.failures]
    if not_worse_than is not None and failures:
        raise NmtError("; ".join(failures))


def _analyze_file(
    hypotheses: Path, request: Request, other: Path | None, finish: Finish
) -> Analysis:
    """A file of translations. other: a run or a file of translations to compare with."""
    evaluation = score_file(hypotheses, request)
    text = evaluation.text
    compared = None if other is None else read_other(other, text)
    return finish(evaluation, Translated([], evaluation.outputs, text.references, other=compared))


def _analyze_run(
    request: Request, other: Path | None, alignments: Path | None, finish: Finish
) -> Analysis:
    """A run. All that can fail early comes before its translations.

    other: as of `_analyze_file`. alignments: a file of reference alignments.
    """
    with open_system(request.runs, device=request.device, overrides=request.overrides) as system:
        text = read_text(system, request)
        sources = text.sources or []
        links = (
            None
            if alignments is None
            else read_reference_alignments(alignments, sources, text.references[0])
        )
        compared = None if other is None else load_other(other, text, system, request)
        evaluation, translations, forced = score_system(system, text, request)
        translated = Translated(
            sources,
            evaluation.outputs,
            text.references,
            system.config.tokenizer.lowercase,
            system.translator,
            translations,
            forced,
            training_overlap(text, system, request.data),
            compared,
            links,
            system.config.data.tgt_language,
        )
        analysis = finish(evaluation, translated, system.folders)
        results, keys = analysis.to_dict(), (*HISTORY_KEYS, "comparison")
        store(system, analysis.evaluation, results, keys)
    return analysis


def _analyze(
    evaluation: Evaluation,
    translated: Translated,
    folders: Sequence[Path] = (),
    *,
    report: Path | None,
    has_details: bool,
) -> Analysis:
    """What the parts find beyond the scores, with the page if requested. `folders`: of the runs.
    report: the folder of the page. has_details: for a run, whether to find all.
    """
    is_run = translated.translator is not None
    sections, details = (
        [section for part in parts if (section := part(translated)) is not None]
        for parts in (PARTS, DETAILS if has_details and is_run else ())
    )
    analysis = Analysis(evaluation, sections, details)
    if report is not None:
        write_report(analysis, report, folders)
    return analysis
