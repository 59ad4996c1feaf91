"""`nmt analyze`: what is behind the scores of a run, an ensemble or a file of translations."""

from dataclasses import dataclass
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
from nmt.extras.analysis.attention import attention, attention_figures
from nmt.extras.analysis.comparison import comparison, load_other, read_other
from nmt.extras.analysis.html import write_report
from nmt.extras.analysis.leaks import training_overlap
from nmt.extras.analysis.results import Analysis, Translated
from nmt.extras.analysis.sentences import extremes, groups, leaks, wrong_outputs
from nmt.run.evaluated import open_system

# Each part finds a section of the analysis, or nothing; the order is that of the text and the page.
PARTS = leaks, comparison
DETAILS = groups, attention, wrong_outputs, extremes, attention_figures


@dataclass(frozen=True)
class Wanted:
    """What to find beyond the scores.

    Attributes:
        details: show all parts. other: a run or a file of translations to compare with.
        report: the folder of the page.
    """

    details: bool
    other: Path | None
    report: Path | None


def command(
    folders: RunsArgument = None,
    split: SplitOption = "test",
    sources: SourcesOption = None,
    hypotheses: HypothesesOption = None,
    references: ReferencesOption = None,
    details: Annotated[
        bool,
        typer.Option(
            "--details",
            help="Scores by group, the best and worst sentences, attention.",
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
    report: Annotated[
        Path | None,
        typer.Option(
            "--report", help="Write everything, with attention, to DIR/index.html.", metavar="DIR"
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
    request = Request(paths, hypotheses, split, data, sources, references, overrides, device)
    request.check(
        {
            "give one run; `nmt evaluate` scores several": len(paths) > 1,
            "--details needs a run, not a file of translations": hypotheses and details,
            "--compare and --not-worse-than name different systems": (
                compare is not None and not_worse_than not in (None, compare)
            ),
        }
    )
    wanted = Wanted(details, compare or not_worse_than, report)
    analyze = _analyze_run if hypotheses is None else _analyze_file
    analysis = analyze(request, wanted)
    print(to_json(analysis.to_dict()) if as_json else analysis.to_text(details=details))
    failures = [failure for section in analysis.sections for failure in section.failures]
    if not_worse_than is not None and failures:
        raise NmtError("; ".join(failures))


def _analyze_file(request: Request, wanted: Wanted) -> Analysis:
    """A file of translations."""
    assert request.hypotheses is not None
    evaluation = score_file(request.hypotheses, request)
    text, other = evaluation.text, wanted.other
    translated = Translated(
        [],
        evaluation.outputs,
        text.references,
        other=None if other is None else read_other(other, text),
    )
    return _analyze(evaluation, translated, wanted)


def _analyze_run(request: Request, wanted: Wanted) -> Analysis:
    """A run. All that can fail early comes before its translations."""
    with open_system(request.runs, device=request.device, overrides=request.overrides) as system:
        text = read_text(system, request)
        sources = text.sources or []
        other = None if wanted.other is None else load_other(wanted.other, text, system, request)
        evaluation, translations = score_system(system, text, request)
        translated = Translated(
            sources,
            evaluation.outputs,
            text.references,
            system.config.tokenizer.lowercase,
            translations,
            training_overlap(text, system, request.data),
            other,
            system.config.data.tgt_language,
        )
        analysis = _analyze(evaluation, translated, wanted)
        results, keys = analysis.to_dict(), (*HISTORY_KEYS, "comparison")
        store(system, analysis.evaluation, results, keys)
    return analysis


def _analyze(evaluation: Evaluation, translated: Translated, wanted: Wanted) -> Analysis:
    """What the parts find beyond the scores, with the page if requested."""
    with_details = translated.translations and (wanted.details or wanted.report)
    sections, details = (
        [section for part in parts if (section := part(translated)) is not None]
        for parts in (PARTS, DETAILS if with_details else ())
    )
    analysis = Analysis(evaluation, sections, details)
    if wanted.report is not None:
        write_report(analysis, wanted.report)
    return analysis
