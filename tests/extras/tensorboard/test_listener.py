"""Event files, read back as TensorBoard reads them."""

import errno
import subprocess
import sys
import threading
from contextlib import closing
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.plugin_event_accumulator import (
    EventAccumulator as PluginEventAccumulator,
)
from tensorboard.summary.writer import event_file_writer

from nmt.extras.tensorboard.listener import TensorBoardWriter
from nmt.training.validation import Sample, Validation

FIGURES = {
    "loss": 2.0,
    "perplexity": 7.5,
    "tokens_per_second": 1000.0,
    "learning_rate": 0.001,
    "forcing_ratio": 1.0,
    "gradient_norm": 0.5,
}
SAMPLES = (
    Sample("A *dog*.", "Ein Hund.", "Hund."),
    Sample("1. Cats", "Katzen", "_Katze_"),
    Sample("<b> & $x$", "ß", ""),
)


def pixels() -> NDArray[np.uint8]:
    """[20, 30, 3]: a picture that no other is mistaken for."""
    return np.random.default_rng(1).integers(0, 256, (20, 30, 3), dtype=np.uint8)


def png() -> bytes:
    file = BytesIO()
    Image.fromarray(pixels()).save(file, format="PNG")
    return file.getvalue()


def validation(loss: float = 1.0, attention: bytes | None = None) -> Validation:
    return Validation(loss=loss, bleu=12.5, chrf=30.0, samples=SAMPLES, attention=attention)


def open_writer(folder: Path, step: int = 0) -> closing[TensorBoardWriter]:
    """A board for which all goes well."""
    return closing(TensorBoardWriter(folder, step, pytest.fail))


def read(folder: Path) -> Any:
    return EventAccumulator(
        str(folder), size_guidance={"scalars": 0, "images": 0, "tensors": 0}
    ).Reload()


def scalars(events: Any, tag: str) -> list[tuple[int, Any]]:
    return [(event.step, pytest.approx(event.value)) for event in events.Scalars(tag)]


def texts(events: Any, tag: str) -> list[tuple[int, str]]:
    return [
        (event.step, event.tensor_proto.string_val[0].decode())
        for event in events.Tensors(f"{tag}/text_summary")
    ]


def test_figures_are_shown_at_their_steps(tmp_path: Path) -> None:
    with open_writer(tmp_path) as tensorboard:
        tensorboard.update(50, FIGURES)
        tensorboard.update(100, FIGURES | {"loss": 1.5})
        tensorboard.validation(100, validation())
    events = read(tmp_path)
    assert scalars(events, "train/loss") == [(50, 2.0), (100, 1.5)]
    assert {tag for tag in events.Tags()["scalars"] if tag.startswith("train/")} == {
        f"train/{name}" for name in FIGURES
    }
    for name, value in (("loss", 1.0), ("perplexity", np.e), ("bleu", 12.5)):
        assert scalars(events, f"validation/{name}") == [(100, value)]


def test_samples_are_not_read_as_markdown(tmp_path: Path) -> None:
    with open_writer(tmp_path) as tensorboard:
        tensorboard.validation(100, validation())
        tensorboard.validation(200, validation())
    events = read(tmp_path)
    for number, sample in enumerate(SAMPLES, 1):
        text = (
            f"```\nsource     {sample.source}\nreference  {sample.reference}\noutput     "
            f"{sample.output}\n```"
        )
        assert texts(events, f"samples/{number}") == [(100, text), (200, text)]


def test_the_attention_heatmap_is_stored_unchanged(tmp_path: Path) -> None:
    with open_writer(tmp_path) as tensorboard:
        tensorboard.validation(100, validation(attention=png()))
        tensorboard.validation(200, validation())
    (image,) = read(tmp_path).Images("attention")
    assert (image.step, image.height, image.width) == (100, 20, 30)
    assert image.encoded_image_string.startswith(b"\x89PNG")
    with Image.open(BytesIO(image.encoded_image_string)) as picture:
        np.testing.assert_array_equal(np.asarray(picture.convert("RGB")), pixels())


@pytest.mark.parametrize("reader", [EventAccumulator, PluginEventAccumulator])
@pytest.mark.parametrize("step", [0, 100])
def test_repeated_steps_of_a_resumed_training_are_shown_once(
    tmp_path: Path, reader: Any, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Files are read in the order of their names, in which the second and a number stand: 10 before
    # 9, were both of one second.
    monkeypatch.setattr(event_file_writer, "_global_uid", event_file_writer.AtomicCounter(0))
    with open_writer(tmp_path) as tensorboard:
        for number in (50, 100, 150, 200):
            tensorboard.update(number, FIGURES)
        tensorboard.validation(100, validation())
        tensorboard.validation(200, validation())
    with open_writer(tmp_path, step) as tensorboard:
        events = reader(str(tmp_path)).Reload()
        kept = [number for number in (50, 100, 150, 200) if number <= step]
        assert shown_steps(events, "train/loss") == kept  # before there is anything new, too
        tensorboard.update(150, FIGURES)
    events.Reload()
    assert shown_steps(events, "train/loss") == [*kept, 150]
    assert shown_steps(events, "validation/loss") == kept[1:]
    if reader is PluginEventAccumulator:  # TensorBoard's own; the other forgets no text
        assert shown_steps(events, "samples/1/text_summary") == kept[1:]


def shown_steps(events: Any, tag: str) -> list[int]:
    """The steps of a curve, for either of TensorBoard's ways to read them."""
    try:
        values = events.Tensors(tag)
    except KeyError:
        values = events.Scalars(tag)
    return [event.step for event in values]


def test_each_call_flushes_the_file(tmp_path: Path) -> None:
    with open_writer(tmp_path) as tensorboard:
        tensorboard.update(50, FIGURES)
        tensorboard.validation(50, validation(attention=png()))
        events = read(tmp_path)
        assert scalars(events, "train/loss") == [(50, 2.0)]
        assert len(events.Images("attention")) == 1


def test_an_interrupted_training_closes_its_file(tmp_path: Path) -> None:
    tensorboard = TensorBoardWriter(tmp_path, 0, pytest.fail)

    def train() -> None:
        with closing(tensorboard):
            tensorboard.update(50, FIGURES)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train()
    assert tensorboard.writer is not None
    assert tensorboard.writer.file_writer is None
    assert scalars(read(tmp_path), "train/loss") == [(50, 2.0)]


def test_a_folder_that_cannot_be_made_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "tensorboard").write_text("not a folder")
    warnings: list[str] = []
    with closing(TensorBoardWriter(tmp_path / "tensorboard", 0, warnings.append)) as tensorboard:
        tensorboard.update(50, FIGURES)
        tensorboard.validation(50, validation())
    assert warnings == [
        (
            f"{tmp_path / 'tensorboard'}: cannot be written (File exists); the training continues "
            "without it"
        )
    ]


def test_an_error_in_the_thread_that_writes_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    warnings: list[str] = []
    report = threading.excepthook
    with closing(TensorBoardWriter(tmp_path, 0, warnings.append)) as tensorboard:
        monkeypatch.setattr("tensorboard.summary.writer.record_writer.RecordWriter.write", fail)
        tensorboard.update(50, FIGURES)
        tensorboard.update(100, FIGURES)
    assert warnings == [
        f"{tmp_path}: cannot be written (Read-only file system); the training continues without it"
    ]
    assert capsys.readouterr().err == ""
    assert threading.excepthook == report


def test_a_full_disk_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from torch.utils.tensorboard import SummaryWriter

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    warnings: list[str] = []
    with closing(TensorBoardWriter(tmp_path, 0, warnings.append)) as tensorboard:
        tensorboard.update(50, FIGURES)
        monkeypatch.setattr(SummaryWriter, "add_scalar", fail)
        tensorboard.update(100, FIGURES)
        monkeypatch.undo()
        tensorboard.update(150, FIGURES)
    assert warnings == [
        (
            f"{tmp_path}: cannot be written (No space left on device); the training continues "
            "without "
            "it"
        )
    ]
    assert scalars(read(tmp_path), "train/loss") == [(50, 2.0)]


@pytest.fixture(scope="module")
def modules() -> set[str]:
    """What is imported by those that do not train: `translate`, and all that stands in the module
    of the board.
    """
    code = (
        "import sys, nmt.commands.translate, nmt.extras.tensorboard.listener; print(*sys.modules)"
    )
    return set(
        subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True
        ).stdout.split()
    )


@pytest.mark.parametrize("name", ["tensorboard", "torch.utils.tensorboard", "matplotlib", "PIL"])
def test_other_commands_do_not_import(modules: set[str], name: str) -> None:
    assert name not in modules
