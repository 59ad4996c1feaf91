"""The options of `nmt evaluate`, and which of them go together. Without torch, so that `nmt --help`
answers at once.
"""

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.commands.options import (
    BeamOption,
    DataOption,
    DecodingOption,
    DeviceOption,
    JsonOption,
    decoding_overrides,
)
from nmt.config.parts import EvaluationSplit

if TYPE_CHECKING:
    from nmt.evaluation.gate import Gate


def is_bundle(path: Path) -> bool:
    """Whether `path` is a file of `nmt bundle`, or another zip archive; a file of sentences is
    none.
    """
    return path.is_file() and zipfile.is_zipfile(path)


@dataclass(frozen=True)
class EvaluateOptions:
    """What to score, on which sentences, and what to report: a field for each option of the command
    line.
    """

    folders: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Run folder, or a file of `nmt bundle`. Default: the newest in runs/.",
            metavar="RUN",
        ),
    ] = None
    split: Annotated[
        EvaluationSplit, typer.Option("--split", help="Which split of the prepared data to score.")
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
        int,
        typer.Option(
            "--columns",
            min=1,
            help="References per line of a file of references, separated by tabs.",
            metavar="N",
        ),
    ] = 1
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
    moses: Annotated[
        str | None,
        typer.Option(
            "--moses",
            help=(
                "Add BLEU of lower-cased text in the words of the Moses tokenizer, for the "
                "target language LANG (en, de ...)."
            ),
            metavar="LANG",
        ),
    ] = None
    compare: Annotated[
        Path | None,
        typer.Option(
            "--compare",
            help="Compare with this run, bundle or file of translations, with significance tests.",
            metavar="OTHER",
        ),
    ] = None
    details: Annotated[
        bool,
        typer.Option(
            "--details",
            help="Scores by group, the best and worst sentences, attention, exposure bias.",
        ),
    ] = False
    report: Annotated[
        Path | None,
        typer.Option(
            "--report", help="Write everything, with pictures, to DIR/index.html.", metavar="DIR"
        ),
    ] = None
    alignments: Annotated[
        Path | None,
        typer.Option(
            "--alignments",
            help="Reference alignments in Pharaoh format, for the alignment error rate.",
            metavar="FILE",
        ),
    ] = None
    runs: Annotated[
        bool,
        typer.Option(
            "--runs",
            help="Score several RUNs that differ in the seed: mean and standard deviation.",
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
    def other(self) -> Path | None:
        """The run, or file of translations, to compare with."""
        return self.compare or self.not_worse_than

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
    def gate(self) -> "Gate":
        """The conditions for exit status 0. Raises: ConfigError if the significance level is 0 or
        1.
        """
        from nmt.evaluation.gate import Gate

        return Gate(self.limits, None if self.not_worse_than is None else self.alpha)

    def check(self) -> None:
        """Raises: typer.BadParameter if options do not go together, ConfigError for an impossible
        significance level.
        """
        if self.hypotheses is not None:
            self._check_file()
        else:
            self._check_runs()
        if self.compare is not None and self.not_worse_than not in (None, self.compare):
            raise typer.BadParameter("--compare and --not-worse-than name different systems")
        _ = self.gate  # checks the significance level

    def _is_reference(self, path: Path) -> bool:
        return (
            bool(self.references)
            and not path.is_dir()
            and not is_bundle(path)
            and (self.hypotheses is not None or path.exists())
        )

    def _check_file(self) -> None:
        if not self.references:
            raise typer.BadParameter(
                "--hypotheses needs --references: the file of reference translations"
            )
        if self.run_folders:
            raise typer.BadParameter("give a run or --hypotheses, not both")
        if self.sources is not None or self.runs or self.ensemble:
            raise typer.BadParameter(
                "--sources, --runs and --ensemble need a run, not a file of translations"
            )
        if self.details or self.alignments is not None:
            raise typer.BadParameter(
                "--details and --alignments need a run, not a file of translations"
            )
        if self.overrides:
            raise typer.BadParameter("--set and --beam need a run, not a file of translations")

    def _check_runs(self) -> None:
        if self.sources is not None and not self.references:
            raise typer.BadParameter(
                "--sources needs --references: the file of reference translations"
            )
        if self.sources is None and self.references:
            raise typer.BadParameter(
                "--references needs --sources, to translate with a run, or --hypotheses"
            )
        if (len(self.run_folders) > 1) != (self.runs or self.ensemble) or (
            self.runs and self.ensemble
        ):
            raise typer.BadParameter(
                "give one run, or several with --ensemble (they translate together) or with "
                "--runs (mean and standard deviation)"
            )
        if self.runs and (
            self.other or self.report or self.details or self.alignments or self.tokenized
        ):
            raise typer.BadParameter(
                "--runs prints only the mean and standard deviation of the scores; "
                "leave out --compare, --not-worse-than, --report, --details, --alignments and "
                "--tokenized"
            )
