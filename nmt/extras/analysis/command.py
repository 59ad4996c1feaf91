"""`nmt analyze`: what is behind the scores of a run, an ensemble or a file of translations."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from nmt.commands.evaluate import (
    HISTORY_KEYS,
    ScoreOptions,
    read_text,
    score_file,
    score_system,
    store,
)
from nmt.commands.options import options_from, to_json
from nmt.errors import DataError, NmtError
from nmt.evaluation.results import Evaluation, missed_limits
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
from nmt.plugins import import_object
from nmt.run.evaluated import open_system

MOSES = "nmt.extras.analysis.moses"  # imported on use: its library is optional

# Each part finds a section of the analysis, or nothing; the order is that of the text and the page.
PARTS = leaks, comparison, alignment_error
DETAILS = groups, attention, exposure_bias, wrong_outputs, extremes, attention_figures


@dataclass(frozen=True)
class AnalyzeOptions(ScoreOptions):
    """The options of `nmt analyze`."""

    details: Annotated[
        bool,
        typer.Option(
            "--details",
            help="Scores by group, the best and worst sentences, attention, exposure bias.",
        ),
    ] = False
    compare: Annotated[
        Path | None,
        typer.Option(
            "--compare",
            help="Compare with this run, bundle or file of translations, with significance tests.",
            metavar="OTHER",
        ),
    ] = None
    not_worse_than: Annotated[
        Path | None,
        typer.Option(
            "--not-worse-than",
            help="Exit with status 1 if the first metric is significantly worse than OTHER's.",
            metavar="OTHER",
        ),
    ] = None
    alpha: Annotated[
        float,
        typer.Option(
            "--alpha", min=0, max=1, help="Significance level of --not-worse-than.", metavar="P"
        ),
    ] = 0.05
    alignments: Annotated[
        Path | None,
        typer.Option(
            "--alignments",
            help="Reference alignments in Pharaoh format, for the alignment error rate.",
            metavar="FILE",
        ),
    ] = None
    moses: Annotated[
        str | None,
        typer.Option(
            "--moses",
            help=(
                "Add BLEU of lower-cased text in the words of the Moses tokenizer, for the target "
                "language LANG (en, de ...)."
            ),
            metavar="LANG",
        ),
    ] = None
    report: Annotated[
        Path | None,
        typer.Option(
            "--report", help="Write everything, with pictures, to DIR/index.html.", metavar="DIR"
        ),
    ] = None

    @property
    def other(self) -> Path | None:
        """The run, or file of translations, to compare with."""
        return self.compare or self.not_worse_than

    def problems(self) -> list[tuple[bool, str]]:
        """Whether options do not go together, and what to do."""
        return [
            *super().problems(),
            (
                (len(self.run_folders) > 1) != self.ensemble,
                "give one run, or several with --ensemble (they translate together)",
            ),
            (
                self.hypotheses is not None and (self.details or self.alignments is not None),
                "--details and --alignments need a run, not a file of translations",
            ),
            (
                self.compare is not None and self.not_worse_than not in (None, self.compare),
                "--compare and --not-worse-than name different systems",
            ),
            (
                self.not_worse_than is not None and not 0 < self.alpha < 1,
                f"--alpha {self.alpha:g}: give a probability between 0 and 1",
            ),
        ]


@options_from(AnalyzeOptions)
def command(**values: Any) -> None:
    """Analyze, and print what was found. Exit status 1 if a limit is not met."""
    options = AnalyzeOptions(**values)
    options.check()
    if options.moses is not None:
        import_object(f"{MOSES}:check_language")(options.moses)
    if options.hypotheses is None:
        analysis = _analyze_system(options)
    else:
        evaluation = score_file(options.hypotheses, options)
        translated = Translated(
            [],
            evaluation.outputs,
            evaluation.text.references,
            options.metrics,
            other=None if options.other is None else read_other(options.other, evaluation.text),
            alpha=options.alpha,
        )
        analysis = _analyze(evaluation, translated, options)
    if options.as_json:
        print(to_json(analysis.to_dict()))
    else:
        print(analysis.to_text(details=options.details))
    failures = missed_limits(analysis.evaluation.scores, options.limits)
    if options.not_worse_than is not None:
        failures += (failure for section in analysis.sections for failure in section.failures)
    if failures:
        raise NmtError("; ".join(failures))


def _analyze_system(options: AnalyzeOptions) -> Analysis:
    """A run or an ensemble. All that can fail early comes before its translations."""
    with open_system(
        options.run_folders, device=options.device, overrides=options.overrides
    ) as system:
        tgt_language = system.config.data.tgt_language
        if options.moses not in (None, tgt_language):
            raise DataError(
                f"{system.names[0]} translates {system.direction}: use --moses {tgt_language}"
            )
        text = read_text(system, options)
        sources = text.sources or []
        alignments = (
            None
            if options.alignments is None
            else read_reference_alignments(options.alignments, sources, text.references[0])
        )
        other = None if options.other is None else load_other(options.other, text, system, options)
        evaluation, translations, forced = score_system(system, text, options)
        translated = Translated(
            sources,
            evaluation.outputs,
            text.references,
            options.metrics,
            system.config.tokenizer.lowercase,
            system.translator,
            translations,
            forced,
            training_overlap(text, system, options.data),
            other,
            options.alpha,
            alignments,
            tgt_language,
        )
        analysis = _analyze(evaluation, translated, options, system.folders)
        store(
            system,
            options,
            analysis.evaluation,
            analysis.to_dict(),
            (*HISTORY_KEYS, "comparison"),
        )
    return analysis


def _analyze(
    evaluation: Evaluation,
    translated: Translated,
    options: AnalyzeOptions,
    folders: Sequence[Path] = (),
) -> Analysis:
    """What the parts find beyond the scores, with Moses BLEU and the page if requested. `folders`:
    of the runs.
    """
    if options.moses is not None:
        moses = import_object(f"{MOSES}:score_moses")(
            evaluation.outputs, translated.references, options.moses
        )
        evaluation = replace(evaluation, tokenized_scores=[*evaluation.tokenized_scores, moses])
    with_details = translated.translator is not None and bool(
        options.details or options.report or options.alignments
    )
    sections, details = (
        [section for part in parts if (section := part(translated)) is not None]
        for parts in (PARTS, DETAILS if with_details else ())
    )
    analysis = Analysis(evaluation, sections, details)
    if options.report is not None:
        write_report(analysis, options.report, folders)
    return analysis
