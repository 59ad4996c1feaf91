"""A picture of a training: loss, BLEU and learning rate by step."""

from collections.abc import Mapping, Sequence
from math import inf, log
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt.config.parts import METRICS
from nmt.config.schema import Config
from nmt.report.style import GRID, INK, check_path, save, settings
from nmt.run.folder import JOURNAL_FILE
from nmt.run.journal import read_events
from nmt.training.record import CheckpointEvent, Event, ValidationEvent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Points = list[tuple[int, float]]  # (step, value)

TRAIN_COLOR, DEV_COLOR, BEST_COLOR = "#8fa6bd", "#1f5fa8", "#c8553d"
WIDTH = 6.0  # inches; narrow and with large letters, for phones
# Panel -> (label of its y axis, height in inches).
PANELS = {
    "loss": ("loss (nats per token)", 3.4),
    "bleu": ("BLEU (greedy)", 2.4),
    "rate": ("learning rate", 1.3),
}
LEFT, RIGHT, TOP, BOTTOM, GAP = 1.0, 0.3, 1.15, 0.65, 0.2  # inches, around and between the panels
# of a figure; a journal may hold infinity, or a whole number that is larger than any float
MAX_VALUE = 1e300
RESOLUTION = 150.0  # dots per inch


class Curves:
    """A listener that draws the journal of a run after each validation, and after a checkpoint
    without one.

    Attributes:
        step: that the picture shows; None before the first one.
    """

    def __init__(self, folder: Path, config: Config, _: int) -> None:
        self.folder, self.metric = folder, config.training.metric
        self.step: int | None = None

    def __call__(self, event: Event) -> None:
        if isinstance(event, ValidationEvent | CheckpointEvent) and event.step != self.step:
            self.step = event.step
            draw(
                read_events(self.folder / JOURNAL_FILE),
                self.folder / "curves.png",
                title=self.folder.resolve().name,
                metric=self.metric,
            )


def draw(
    events: Sequence[Mapping[str, Any]], path: Path, *, title: str, metric: str = "bleu"
) -> None:
    """Draw the journal of a run; write nothing if it has no curves.

    Args:
        events: the lines of the journal; curves without values are left out.
        path: its suffix sets the format; an old file is replaced only when the new one is complete.
        title: above the picture.
        metric: the key of the validations that chose the best checkpoint. Of the loss less is
            better, of the others more.

    Raises:
        NmtError: the suffix is not in `style.PICTURE_FORMATS`.
        DataError: the folder is missing, or the file cannot be written.
    """
    check_path(path)
    panels = _panels(events)
    sign = 1 if metric == "loss" or METRICS[metric].trait("lower_is_better") else -1
    scored = [line for line in events if _points([line], "validation", metric)]
    # of equal ones that with the lower loss, as in training
    losses = dict(_points(events, "validation", "loss"))
    best = min(
        scored,
        key=lambda line: (sign * line[metric], losses.get(line["step"], inf)),
        default=None,
    )
    if panels:
        with settings():
            save(_figure(panels, title, best), path, RESOLUTION, expand=False)


def _panels(events: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Points]]:
    """Panel -> curve -> points, without empty ones.

    The training loss is log(perplexity), without label smoothing, so that it is comparable with the
    loss on the dev set. It is measured with dropout, and with the forcing ratio of the step.
    """
    perplexity = _points(events, "train", "perplexity")
    panels = {
        "loss": {
            "training": [(step, log(value)) for step, value in perplexity if value > 0],
            "dev set": _points(events, "validation", "loss"),
        },
        "bleu": {"dev set": _points(events, "validation", "bleu")},
        "rate": {"training": _points(events, "train", "learning_rate")},
    }
    panels = {
        panel: {name: points for name, points in curves.items() if points}
        for panel, curves in panels.items()
    }
    return {panel: curves for panel, curves in panels.items() if curves}


def _points(events: Sequence[Mapping[str, Any]], event: str, key: str) -> Points:
    """The value `key` of all events of a kind, if it is a finite number."""
    values = [(line["step"], line.get(key)) for line in events if line.get("event") == event]
    return [
        (step, float(value))
        for step, value in values
        if isinstance(value, int | float) and abs(value) < MAX_VALUE
    ]


def _figure(
    panels: Mapping[str, Mapping[str, Points]], title: str, best: Mapping[str, Any] | None
) -> "Figure":
    from matplotlib.figure import Figure

    heights = [PANELS[panel][1] for panel in panels]
    height = sum(heights) + GAP * (len(heights) - 1) + TOP + BOTTOM
    figure = Figure(figsize=(WIDTH, height))
    rows = figure.subplots(len(heights), sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    # Fixed margins: matplotlib's automatic layout takes as long as the drawing.
    figure.subplots_adjust(
        left=LEFT / WIDTH,
        right=1 - RIGHT / WIDTH,
        bottom=BOTTOM / height,
        top=1 - TOP / height,
        hspace=GAP * len(heights) / sum(heights),
    )
    for axes, (panel, curves) in zip(rows, panels.items(), strict=True):
        _draw_panel(axes, panel, curves)
        if best is not None:
            axes.axvline(best["step"], color=BEST_COLOR, linewidth=1.5, linestyle=":")
    rows[-1].set_xlabel("step", fontsize=12, color=INK)
    rows[-1].set_xlim(left=0)
    rows[-1].xaxis.set_major_formatter("{x:,.0f}")
    rows[-1].locator_params(axis="x", nbins=6, integer=True)
    figure.suptitle(title, y=1 - 0.18 / height, fontsize=15, color=INK, parse_math=False)
    if best is not None:
        rows[0].set_title(_describe(best), fontsize=12, color=BEST_COLOR, pad=32)
    return figure


def _describe(best: Mapping[str, Any]) -> str:
    formats = [(part.trait("title"), name, 1) for name, part in METRICS.items()]
    formats.append(("dev loss", "loss", 2))
    values = [
        f"{name} {best[key]:.{digits}f}"
        for name, key, digits in formats
        if _points([best], "validation", key)
    ]
    return f"best: step {best['step']:,}, {', '.join(values)}"


def _draw_panel(axes: "Axes", panel: str, curves: Mapping[str, Points]) -> None:
    for name, points in curves.items():
        steps, values = zip(*points, strict=True)
        is_dev = name == "dev set"
        axes.plot(
            steps,
            values,
            color=DEV_COLOR if is_dev else TRAIN_COLOR,
            linewidth=2 if is_dev else 1.5,
            marker="o" if is_dev or len(steps) == 1 else "",
            markersize=5 if len(steps) <= 40 else 2.5,
            label=name,
        )
    if panel == "loss":
        axes.legend(
            fontsize=12,
            labelcolor=INK,
            frameon=False,
            loc="lower center",  # above the axes
            bbox_to_anchor=(0.5, 1.0),
            borderaxespad=0.2,
            ncols=2,
        )
    else:
        highest = max(value for points in curves.values() for _, value in points)
        axes.set_ylim(0, 1.08 * highest or 1)
        axes.locator_params(axis="y", nbins=4 if panel == "rate" else 6)
    axes.set_ylabel(PANELS[panel][0], fontsize=12, color=INK)
    axes.yaxis.set_label_coords(-0.72 * LEFT / (WIDTH - LEFT - RIGHT), 0.5)
    axes.grid(color=GRID)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(GRID)
    axes.tick_params(labelsize=11, labelcolor=INK, color=GRID)
