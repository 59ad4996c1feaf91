"""What may be asked of `nmt evaluate`: its options, and which of them go together."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nmt.commands.options import BeamOption, DataOption, DecodingOption, Device, DeviceOption, JsonOption, Split, decoding_overrides

if TYPE_CHECKING:
    from nmt.evaluation.gate import Gate
    from nmt.evaluation.results import Evaluation, Seeds

GIVE = "give a run, or --hypotheses and --references, or a run with --sources and --references"


@dataclass(frozen=True)
class Request:
    """The options, as they are typed."""

    run: Annotated[
        list[Path] | None, typer.Argument(help="The run folder; the one trained last if not given.", metavar="[RUN]")
    ] = None
    split: Annotated[Split, typer.Option("--split", help="Which split of the prepared data.")] = Split.test
    sources: Annotated[
        Path | None,
        typer.Option("--sources", help="Score the run on this file and --references rather than a split.", metavar="FILE"),
    ] = None
    hypotheses: Annotated[
        Path | None, typer.Option("--hypotheses", help="Score this file of translations rather than a run.", metavar="FILE")
    ] = None
    references: Annotated[
        list[Path] | None, typer.Option("--references", help="Its references; may be repeated.", metavar="FILE")
    ] = None
    columns: Annotated[
        int, typer.Option("--columns", min=1, help="References in each line of a file of references, parted by tabs.")
    ] = 1
    metric: Annotated[
        list[str] | None, typer.Option("--metric", help="BLEU, chrF, chrF++ or TER; may be repeated. Default: all.")
    ] = None
    lowercase: Annotated[bool, typer.Option("--lowercase", help="Score ignoring case too.")] = False
    tokenized: Annotated[
        bool, typer.Option("--tokenized", help="Tokenised BLEU too, to compare with old papers; a file is taken to be tokenised.")
    ] = False
    compare: Annotated[
        Path | None, typer.Option("--compare", help="Test the differences to this run, or file of translations.", metavar="OTHER")
    ] = None
    details: Annotated[
        bool, typer.Option("--details", help="Scores by group, the best and worst sentences, attention, exposure bias.")
    ] = False
    report: Annotated[
        Path | None, typer.Option("--report", help="Write all of it, with pictures, into DIR/index.html.", metavar="DIR")
    ] = None
    alignments: Annotated[
        Path | None,
        typer.Option(
            "--alignments", help="Alignments by hand, in Pharaoh form, for the error rate of the attention.", metavar="FILE"
        ),
    ] = None
    seeds: Annotated[bool, typer.Option("--runs", help="Several RUNs that differ in the seed: mean and deviation.")] = False
    ensemble: Annotated[bool, typer.Option("--ensemble", help="Several RUNs on the same data that translate together.")] = False
    min_bleu: Annotated[float | None, typer.Option("--min-bleu", help="Exit with status 1 if BLEU is below.")] = None
    min_chrf: Annotated[float | None, typer.Option("--min-chrf", help="Exit with status 1 if chrF is below.")] = None
    max_ter: Annotated[float | None, typer.Option("--max-ter", help="Exit with status 1 if TER is above.")] = None
    not_worse_than: Annotated[
        Path | None,
        typer.Option("--not-worse-than", help="Exit with status 1 if the first metric is significantly worse.", metavar="OTHER"),
    ] = None
    alpha: Annotated[float, typer.Option("--alpha", min=0, max=1, help="The level of significance.")] = 0.05
    data: DataOption = None
    beam: BeamOption = None
    set_: DecodingOption = None
    as_json: JsonOption = False
    device: DeviceOption = Device.auto

    @property
    def gate(self) -> "Gate":
        """What is to be reached. Raises: ConfigError if the level of significance is none."""
        from nmt.evaluation.gate import Gate

        return Gate(self._limits, None if self.not_worse_than is None else self.alpha)

    def check(self) -> None:
        """Raises: typer.BadParameter if they do not go together, ConfigError if one cannot be."""
        if self.hypotheses is not None:
            self._check_file()
        else:
            self._check_runs()
        if self.compare is not None and self.not_worse_than not in (None, self.compare):
            raise typer.BadParameter("--compare and --not-worse-than name different systems")
        _ = self.gate

    def _check_file(self) -> None:
        if not self.references or self.sources is not None or self.seeds or self.ensemble:
            raise typer.BadParameter(GIVE)
        if self.details or self.alignments is not None:
            raise typer.BadParameter("--details and --alignments are of a run")
        if self._overrides:
            raise typer.BadParameter("--set and --beam are of a run")

    def _check_runs(self) -> None:
        if (self.sources is None) != (not self.references):
            raise typer.BadParameter(GIVE)
        n_runs = len(self.run or [])
        if (n_runs > 1) != (self.seeds or self.ensemble) or (self.seeds and self.ensemble):
            raise typer.BadParameter(
                "give one run, or several with --ensemble, which translate together, or with --runs, of which there are mean and "
                "deviation of the scores"
            )
        if self.seeds and (self.compare or self.not_worse_than or self.report or self.details or self.alignments or self.tokenized):
            raise typer.BadParameter("--runs gives mean and deviation of the scores alone")

    def measure(self) -> "Evaluation | Seeds":
        """The scores that are asked for, and all else. Raises: NmtError for what cannot be scored."""
        from nmt.commands import evaluate
        from nmt.metrics.scores import METRICS

        runs, references = self.run or [], self.references or []
        wanted = evaluate.Wanted(
            metrics=[*(self.metric or METRICS), *self._limits],
            lowercase=self.lowercase,
            tokenized=self.tokenized,
            other=self.compare or self.not_worse_than,
            details=self.details,
            report=self.report,
            alignments=self.alignments,
        )
        if self.hypotheses is not None:  # --references A B: the words after A are taken for runs
            return evaluate.run_files(self.hypotheses, [*references, *runs], columns=self.columns, wanted=wanted)
        settings: dict[str, Any] = {
            "split": self.split.value,
            "prepared": self.data,
            "files": None if self.sources is None else evaluate.Files(self.sources, references, self.columns),
            "device": self.device.value,
            "overrides": self._overrides,
            "wanted": wanted,
        }
        return evaluate.run_seeds(runs, **settings) if self.seeds else evaluate.run(runs, **settings)

    @property
    def _limits(self) -> dict[str, float]:
        limits = {"BLEU": self.min_bleu, "chrF": self.min_chrf, "TER": self.max_ter}
        return {metric: limit for metric, limit in limits.items() if limit is not None}

    @property
    def _overrides(self) -> list[str]:
        return decoding_overrides(self.set_, self.beam)
