"""Event files, read back as TensorBoard reads them."""

import errno
import threading
from math import e
from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.plugin_event_accumulator import (
    EventAccumulator as PluginEventAccumulator,
)
from tensorboard.summary.writer import event_file_writer

from nmt.config.schema import Config
from nmt.errors import NmtError
from nmt.extras.tensorboard import listener as module
from nmt.extras.tensorboard.listener import TensorBoard, open_listener
from nmt.run.progress import Progress
from nmt.training.record import BeginEvent, EndEvent, Event, StepEvent, ValidationEvent
from nmt.training.validation import Sample, Validation

FIGURES = (
    "loss",
    "perplexity",
    "tokens_per_second",
    "learning_rate",
    "forcing_ratio",
    "gradient_norm",
)
SAMPLES = (
    Sample("A *dog*.", "Ein Hund.", "Hund."),
    Sample("1. Cats", "Katzen", "_Katze_"),
    Sample("<b> & $x$", "ß", ""),
)


def validation(number: int) -> ValidationEvent:
    return ValidationEvent(number, 1.0, Validation(1.0, {"bleu": 12.5, "chrf": 30.0}, SAMPLES))


BEGIN = BeginEvent(Path("run"), 1, 1, "cpu", "float32", 1, 1, 0)


def step(number: int, loss: float = 2.0) -> StepEvent:
    return StepEvent(number, 1, number, 500, False, 0.5, loss, 7.5, 1000.0, 0.001, 1.0, 0.5)


def write(folder: Path, *events: Event) -> None:
    """The events of a training, and its end."""
    listener = TensorBoard(folder, 0, log_every=50)
    for event in (*events, EndEvent(folder, Progress())):
        listener(event)


def scalars(events: Any, tag: str) -> list[tuple[int, Any]]:
    return [(event.step, pytest.approx(event.value)) for event in events.Scalars(tag)]


def test_figures_and_samples_are_shown_at_their_steps(tmp_path: Path) -> None:
    listener = TensorBoard(tmp_path, 0, log_every=50)
    for event in (step(50), step(51), step(100, 1.5), validation(100), validation(200)):
        listener(event)
    # Before the end of the training, too.
    sizes = {"scalars": 0, "tensors": 0}
    events = EventAccumulator(str(tmp_path), size_guidance=sizes).Reload()
    listener(EndEvent(tmp_path, Progress()))
    assert scalars(events, "train/loss") == [(50, 2.0), (100, 1.5)]
    tags = {f"train/{name}" for name in FIGURES}
    assert {tag for tag in events.Tags()["scalars"] if tag.startswith("train/")} == tags
    for name, value in (("loss", 1.0), ("perplexity", e), ("bleu", 12.5)):
        assert scalars(events, f"validation/{name}") == [(100, value), (200, value)]
    for number, sample in enumerate(SAMPLES, 1):  # not read as Markdown
        text = (
            f"```\nsource     {sample.source}\nreference  {sample.reference}\n"
            f"output     {sample.output}\n```"
        )
        shown = events.Tensors(f"samples/{number}/text_summary")
        texts = [(one.step, one.tensor_proto.string_val[0].decode()) for one in shown]
        assert texts == [(100, text), (200, text)]


@pytest.mark.parametrize("start", [0, 100])
def test_repeated_steps_of_a_resumed_training_are_shown_once(
    tmp_path: Path, start: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Files are read in the order of their names, in which the second and a number stand: 10 before
    # 9, were both of one second.
    monkeypatch.setattr(event_file_writer, "_global_uid", event_file_writer.AtomicCounter(0))
    write(tmp_path, *map(step, (50, 100, 150, 200)), validation(100), validation(200))
    listener = TensorBoard(tmp_path, start, log_every=50)
    listener(BEGIN)
    events = PluginEventAccumulator(str(tmp_path)).Reload()  # TensorBoard's own

    def shown(tag: str) -> list[int]:
        return [event.step for event in events.Tensors(tag)]

    kept = [number for number in (50, 100, 150, 200) if number <= start]
    assert shown("train/loss") == kept  # before there is anything new, too
    listener(step(150))
    listener(EndEvent(tmp_path, Progress()))
    events.Reload()
    assert shown("train/loss") == [*kept, 150]
    assert shown("validation/loss") == shown("samples/1/text_summary") == kept[1:]


def write_figures(listener: TensorBoard) -> None:
    for number in (50, 100):
        listener(step(number))


def test_an_error_in_the_thread_that_writes_is_an_error_of_the_listener(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    report = threading.excepthook
    listener = TensorBoard(tmp_path, 0, log_every=50)
    listener(BEGIN)
    monkeypatch.setattr("tensorboard.summary.writer.record_writer.RecordWriter.write", fail)
    with pytest.raises(NmtError, match=r"cannot be written \(Read-only file system\)"):
        write_figures(listener)
    assert capsys.readouterr().err == ""
    assert threading.excepthook == report


@pytest.mark.parametrize("is_installed", [True, False])
def test_without_the_library_there_is_no_listener(
    is_installed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "find_spec", lambda _: object() if is_installed else None)
    listener = open_listener(tmp_path, Config(name="x"), 0)
    assert (listener is not None) is is_installed
    assert not (tmp_path / "tensorboard").exists()
