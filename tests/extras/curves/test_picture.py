"""The picture of a training is complete, shows the values, and prints nothing."""

import re
from collections.abc import Callable
from math import exp, log
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from nmt.errors import DataError, NmtError
from nmt.extras.curves import picture
from nmt.report import style

Event = dict[str, Any]


@pytest.fixture(scope="module", autouse=True)
def quick_pictures() -> None:
    """In place of that of all tests: pictures are drawn here."""


def train(step: int, loss: float, **values: Any) -> Event:
    """A line of the journal; `loss` is without label smoothing, the journal's own is higher."""
    figures = {
        "loss": loss + 1,
        "perplexity": exp(loss),
        "tokens_per_second": 9000.0,
        "learning_rate": 0.001 / step,
    }
    return {"event": "train", "step": step, **figures, **values}


def validation(step: int, loss: float, bleu: float, **values: Any) -> Event:
    return {
        "event": "validation",
        "step": step,
        "loss": loss,
        "bleu": bleu,
        "samples": [],
        **values,
    }


JOURNAL = [
    {"event": "lexicon", "step": 0, "tokens": 3},
    train(50, 5.0),
    train(100, 4.0),
    validation(100, 4.5, 3.0),
    train(150, 3.0),
    train(200, 2.5),
    validation(200, 2.0, 20.0),
    train(250, 2.0),
    train(300, 1.5),
    validation(300, 3.0, 25.0),
    train(350, 1.0),
    train(400, 0.5),
    validation(400, 2.5, 25.0),
]


Draw = Callable[..., Any]


@pytest.fixture
def draw(tmp_path: Path, figures: list[Figure]) -> Draw:
    """Draws events, and returns the figure that was saved."""

    def figure_of(events: list[Event], metric: str = "bleu", title: str = "small") -> Figure:
        picture.draw(events, tmp_path / "curves.png", title=title, metric=metric)
        return figures[-1]

    return figure_of


def lines_of(axes: Any) -> dict[str, list[tuple[float, float]]]:
    """The points of each curve, and of the mark of the best checkpoint."""
    return {line.get_label(): list(zip(*line.get_data(), strict=True)) for line in axes.get_lines()}


def test_the_curves_have_all_values_of_the_journal(draw: Draw) -> None:
    loss, bleu, rate = draw(JOURNAL).axes
    shown = lines_of(loss)
    steps = list(range(50, 401, 50))
    assert dict(shown["training"]) == pytest.approx(
        dict(zip(steps, (5.0, 4.0, 3.0, 2.5, 2.0, 1.5, 1.0, 0.5), strict=True))
    )
    assert shown["dev set"] == [(100, 4.5), (200, 2.0), (300, 3.0), (400, 2.5)]
    assert lines_of(bleu)["dev set"] == [(100, 3.0), (200, 20.0), (300, 25.0), (400, 25.0)]
    assert lines_of(rate)["training"] == [(step, 0.001 / step) for step in steps]


def test_titles_and_labels(draw: Draw) -> None:
    figure = draw(JOURNAL, title="$sample$")
    assert figure.get_suptitle() == "$sample$"
    assert not figure._suptitle.get_parse_math()
    assert [axes.get_ylabel() for axes in figure.axes] == [
        "loss (nats per token)",
        "BLEU (greedy)",
        "learning rate",
    ]
    assert [axes.get_xlabel() for axes in figure.axes] == ["", "", "step"]
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == [
        "training",
        "dev set",
    ]
    assert all(axes.get_xlim()[0] == 0 for axes in figure.axes)
    assert figure.axes[1].get_ylim()[0] == 0


@pytest.mark.parametrize(
    ("metric", "step", "title"),
    [
        (
            "bleu",
            400,
            "best: step 400, BLEU 25.0, dev loss 2.50",
        ),  # of two that are equal, the one with the lower loss, as in training
        ("loss", 200, "best: step 200, BLEU 20.0, dev loss 2.00"),
    ],
)
def test_the_best_checkpoint_is_marked(draw: Draw, metric: str, step: int, title: str) -> None:
    figure = draw(JOURNAL, metric)
    assert figure.axes[0].get_title() == title
    for axes in figure.axes:
        assert [step, step] in [list(line.get_xdata()) for line in axes.get_lines()]


def test_values_that_are_no_finite_number_are_left_out(draw: Draw) -> None:
    broken = [
        train(450, log(2), learning_rate="fast"),
        train(500, 800.0 - 700, perplexity=float("inf")),
    ]
    broken += [
        validation(500, float("nan"), 0.0),
        {"event": "validation", "step": 600, "bleu": None},
        {"step": 700},
    ]
    loss, _, rate = draw([*JOURNAL, *broken]).axes
    step, value = lines_of(loss)["training"][-1]
    assert step == 450
    assert value == pytest.approx(log(2))
    assert lines_of(loss)["dev set"][-1] == (400, 2.5)
    assert lines_of(rate)["training"][-2:] == [(400, 0.001 / 400), (500, 0.001 / 500)]


@pytest.mark.parametrize(
    "events",
    [JOURNAL, JOURNAL[:2], [validation(1, 9.0, 0.0)]],
    ids=["complete", "just started", "one validation"],
)
def test_it_prints_nothing_and_fits_a_phone(
    tmp_path: Path, events: list[Event], capfd: pytest.CaptureFixture[str]
) -> None:
    # Warnings are errors in this test run.
    path = tmp_path / "curves.png"
    picture.draw(events, path, title="中文 $x_1$ " * 3)
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG")
    width, height = int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
    assert width == 900
    assert 500 < height < 1400
    assert [found.name for found in tmp_path.iterdir()] == ["curves.png"]
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("suffix", style.PICTURE_FORMATS)
def test_the_same_journal_gives_the_same_file(tmp_path: Path, suffix: str) -> None:
    paths = [tmp_path / f"{number}{suffix}" for number in range(2)]
    for path in paths:
        picture.draw(JOURNAL, path, title="small")
    assert paths[0].read_bytes() == paths[1].read_bytes()


@pytest.mark.parametrize("events", [[], [{"event": "lexicon", "step": 0}]])
def test_nothing_to_draw(tmp_path: Path, events: list[Event]) -> None:
    picture.draw(events, tmp_path / "curves.png", title="empty")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        (
            "a.jpg",
            NmtError,
            "{path}: not a picture format; use a name that ends in .png, .svg, .pdf",
        ),
        ("nowhere/a.png", DataError, "{path}: the folder {path.parent} does not exist"),
        ("folder.png", DataError, "{path}: cannot be written"),
    ],
)
def test_where_it_cannot_be_written(
    tmp_path: Path, name: str, error: type[NmtError], message: str
) -> None:
    (tmp_path / "folder.png").mkdir()
    path = tmp_path / name
    with pytest.raises(error, match=f"^{re.escape(message.format(path=path))}"):
        picture.draw(JOURNAL, path, title="small")
    assert list(tmp_path.iterdir()) == [tmp_path / "folder.png"]
