"""A live view of a training for terminals: progress, time left, loss, learning rate, BLEU with its
curve, a sample translation.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from rich.console import Console as RichConsole
from rich.console import ConsoleOptions, Group, RenderableType, RenderResult
from rich.constrain import Constrain
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from nmt.config.schema import Config
from nmt.report.sparkline import sparkline
from nmt.run.folder import JOURNAL_FILE
from nmt.run.journal import Journal
from nmt.training.console import Console
from nmt.training.events import BeginEvent, EndEvent, MessageEvent, StepEvent, ValidationEvent
from nmt.training.interrupt import NOTICE

REFRESHES_PER_SECOND = 4
MAX_WIDTH = 78
LABEL_WIDTH, VALUE_WIDTH = 15, 10
CURVE_WIDTH = 16
SECONDS_BEFORE_ESTIMATE = 2.0
CONTROLS = dict.fromkeys(
    [*range(32), *range(127, 160)], " "
)  # a sample must not steer the terminal


class View:
    """What is known of a training, drawn for the screen."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.folder = Path()
        self.step: StepEvent | None = None
        self.validation: ValidationEvent | None = None
        self.bleu: list[tuple[int, float]] = []  # (step, BLEU) of all validations
        self.status = "starting"
        self.stop_requested = self.is_over = False
        self.begin_time = self.end_time = time.monotonic()
        self.origin: tuple[float, float] | None = (
            None  # (time, finished fraction) after the first update
        )

    def begin(self, event: BeginEvent) -> None:
        """Start the clock; a training that continues has earlier validations in its journal."""
        self.folder, self.begin_time = event.folder, time.monotonic()
        lines = Journal(event.folder / JOURNAL_FILE).read() if event.step else []
        validations = [
            line for line in lines if line["event"] == "validation" and line["step"] <= event.step
        ]
        self.bleu = [(line["step"], line["bleu"]) for line in validations]

    def add_step(self, event: StepEvent) -> None:
        """Show an update, after which a validation may come."""
        self.step = event
        if self.origin is None:
            self.origin = time.monotonic(), event.fraction
        every = self.config.training.validate_every
        due = event.ends_epoch if every is None else event.step % every == 0
        self.status = "validating" if due or event.fraction >= 1 else ""

    def add_validation(self, event: ValidationEvent) -> None:
        """Show a validation."""
        self.validation = event
        self.bleu.append((event.step, event.result.bleu))
        if (
            self.step is not None and self.step.step == event.step
        ):  # no update came after it: the training ends
            self.status = "choosing the best checkpoint"

    def end(self, status: str) -> None:
        """Stop the clock."""
        self.status, self.is_over, self.end_time = status, True, time.monotonic()

    def __rich_console__(self, console: RichConsole, options: ConsoleOptions) -> RenderResult:
        lines: list[RenderableType] = ["", self._heading(), self._bar(), self._clock(), ""]
        if self.step is not None:
            lines.append(
                _line("loss", f"{self.step.loss:.3f}", f"perplexity {self.step.perplexity:.1f}")
            )
            speed = f"{self.step.tokens_per_second:,.0f} tokens/s"
            lines.append(_line("learning rate", f"{self.step.learning_rate:.3g}", speed))
        if self.bleu:
            best_step, best = max(self.bleu, key=lambda point: point[1])
            curve = sparkline(_thin([bleu for _, bleu in self.bleu]))
            lines.append(
                _line(
                    "dev BLEU",
                    f"{self.bleu[-1][1]:.2f}",
                    f"{curve}  best {best:.2f} at step {best_step}",
                )
            )
        if self.validation is not None:
            result = self.validation.result
            lines.append(
                _line(
                    "dev loss",
                    f"{result.loss:.3f}",
                    f"perplexity {result.perplexity:.2f}  chrF {result.chrf:.2f}",
                )
            )
            if (sample := result.middle_sample) is not None:
                texts = {
                    "source": sample.source,
                    "reference": sample.reference,
                    "output": sample.output,
                }
                lines += [
                    "",
                    *(_line(label, "", text.translate(CONTROLS)) for label, text in texts.items()),
                ]
        yield Constrain(Group(*lines, ""), min(MAX_WIDTH, options.max_width))

    def _heading(self) -> Table:
        heading = Table.grid(expand=True, padding=(0, 1))
        heading.add_column(no_wrap=True, overflow="ellipsis")
        heading.add_column(no_wrap=True, justify="right")
        position = (
            ""
            if self.step is None
            else (
                f"epoch {self.step.epoch} of {self.config.training.epochs}, step {self.step.step:,}"
            )
        )
        heading.add_row(Text(str(self.folder), style="bold"), position)
        return heading

    def _bar(self) -> Table:
        fraction = 0.0 if self.step is None else self.step.fraction
        row = Table.grid(expand=True, padding=(0, 1))
        row.add_column(ratio=1)
        row.add_column(no_wrap=True, justify="right", min_width=4)
        bar = ProgressBar(
            1.0, fraction, style="bright_black", complete_style="cyan", finished_style="cyan"
        )
        row.add_row(bar, f"{int(100 * fraction)} %")
        return row

    def _clock(self) -> Text:
        now = self.end_time if self.is_over else time.monotonic()
        parts = [f"{_duration(now - self.begin_time)} so far"]
        if self.is_over:
            parts = [_duration(now - self.begin_time)]
        elif self.step is not None and self.origin is not None:
            start, first = self.origin
            if now - start > SECONDS_BEFORE_ESTIMATE and self.step.fraction > first:
                left = (now - start) * (1 - self.step.fraction) / (self.step.fraction - first)
                parts.append(f"about {_duration(left)} left")
        if self.stop_requested and not self.is_over:
            return Text(NOTICE, style="bold")
        if self.status:
            parts.append(self.status)
        return Text(", ".join(parts), no_wrap=True, overflow="ellipsis")


class LiveConsole(Console):
    """A console whose view of the training stays below the lines that it prints."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.view = View(config)
        self.screen = RichConsole(stderr=True, highlight=False, markup=False, emoji=False)
        self.lines: list[str] = []  # above the view
        self.size = self.screen.size
        self.live = Live(
            console=self.screen, refresh_per_second=REFRESHES_PER_SECOND, get_renderable=self._fit
        )

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close("stopped")

    def notify_stop(self) -> None:
        """The view says it when it is drawn next."""
        self.view.stop_requested = True

    def message(self, event: MessageEvent) -> None:
        """Print a line above the view."""
        self.info(f"nmt: {event.text}" if event.is_warning else event.text)

    def begin(self, event: BeginEvent) -> None:
        """Print what is trained, and start the view."""
        super().begin(event)
        self.view.begin(event)
        self.live.start()

    def step(self, event: StepEvent) -> None:
        """Show an update."""
        self.view.add_step(event)

    def validation(self, event: ValidationEvent) -> None:
        """Show a validation."""
        self.view.add_validation(event)

    def end(self, event: EndEvent) -> None:
        """Close the view, and print which commands come next."""
        self._close("done")
        super().end(event)

    def info(self, line: str) -> None:
        """Print a line above the view."""
        self.lines.append(line)
        self.screen.print(Text(line), soft_wrap=True)

    def _fit(self) -> View:
        """The view. If the terminal has become too small for what is drawn, the screen is cleared
        and the lines are printed again.

        A narrower terminal breaks the drawn lines into more than `Live` would erase, and a lower
        one moves some of them away.
        """
        old, self.size = self.size, self.screen.size
        if self.size.width < min(old.width, MAX_WIDTH) or self.size.height != old.height:
            self.screen.clear()
            self.screen.print(Text("\n".join(self.lines)), soft_wrap=True)
        return self.view

    def _close(self, status: str) -> None:
        if self.live.is_started:
            self.view.end(status)
            self.live.stop()


def _line(label: str, value: str, rest: str) -> Text:
    value = f"{value:<{VALUE_WIDTH}}" if value else ""
    return Text.assemble(
        (f"{label:<{LABEL_WIDTH}}", "dim"), (value, "bold"), rest, no_wrap=True, overflow="ellipsis"
    )


def _thin(values: Sequence[float]) -> list[float]:
    """At most CURVE_WIDTH of the values, evenly spaced, with the first and the last."""
    last, width = len(values) - 1, CURVE_WIDTH - 1
    return (
        list(values)
        if last <= width
        else [values[index * last // width] for index in range(CURVE_WIDTH)]
    )


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
