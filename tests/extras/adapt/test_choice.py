"""The way from the base to the trained weights, and how far to go."""

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nmt.errors import DataError
from nmt.extras.adapt.choice import (
    Change,
    Estimate,
    Scores,
    best_share,
    between,
    remarks,
    search,
)
from nmt.run.folder import find_checkpoint
from nmt.run.load import load_model

BASE = {"general": 30.0, "memory": 10.0}


def results(*pairs: tuple[float, float]) -> dict[float, Scores]:
    """Of shares of the way: 1, 1/2, 1/4 and so on."""
    return {0.5**i: {"general": pair[0], "memory": pair[1]} for i, pair in enumerate(pairs)}


@given(st.floats(0, 10), st.floats(0, 10))
def test_the_search_finds_the_longest_way_within_the_loss(slope: float, loss: float) -> None:
    found = search(lambda share: {"general": 30 - slope * share, "memory": share}, 30 - loss)
    assert 1.0 in found
    longest = min(1.0, loss / slope) if slope else 1.0
    fitting = [share for share, bleu in found.items() if bleu["general"] >= 30 - loss]
    assert longest - max(fitting, default=0.0) <= 1 / 16 + 1e-9
    assert len(found) <= 5


def test_the_best_score_of_the_memory_within_the_loss() -> None:
    measured = results((27.0, 20.0), (29.1, 17.0), (29.6, 18.0), (30.1, 12.0))
    assert best_share(measured, BASE, max_loss=3) == 1.0
    assert best_share(measured, BASE, max_loss=1) == 0.25
    assert best_share(measured, BASE, max_loss=0) == 0.125


def test_nothing_within_the_loss_or_nothing_gained() -> None:
    with pytest.raises(DataError, match=r"the least loss was 0\.05, so allow more"):
        best_share(results((29.9, 20.0), (29.95, 15.0)), BASE, max_loss=0)
    with pytest.raises(DataError, match="nothing was written; name more pairs"):
        best_share(results((30.0, 10.0), (31.0, 9.0)), BASE, max_loss=1)


scores = st.floats(0, 100)


@given(st.lists(st.tuples(scores, scores), min_size=1, max_size=5), scores)
def test_no_chosen_share_breaks_a_promise(pairs: list[tuple[float, float]], loss: float) -> None:
    measured = results(*pairs)
    fitting = [memory for general, memory in pairs if 30 - general <= loss and memory > 10]
    if fitting:
        assert measured[best_share(measured, BASE, loss)]["memory"] == max(fitting)
    else:
        with pytest.raises(DataError):
            best_share(measured, BASE, loss)


def test_what_the_test_sets_do_not_show_is_said() -> None:
    def changes(general: float, low: float) -> list[Change]:
        zero = Estimate(0, 0, 0)
        return [
            Change("general", 9, "BLEU", zero, zero, Estimate(general, general - 1, general + 1)),
            Change("memory", 9, "BLEU", zero, zero, Estimate(low + 1, low, low + 2)),
        ]

    assert [*remarks(changes(-0.9, 0.1), 1)] == []
    loss, gain = remarks(changes(-1.1, -0.1), 1), "the gain on the memory's test set may be chance"
    assert [text.partition(":")[0] for text in loss] == [
        gain,
        "on the general test set, the loss is larger than --max-loss 1",
    ]


def test_weights_between_base_and_trained(folder: Path) -> None:
    base, trained = (
        load_model(run, find_checkpoint(run)) for run in (folder / "run", folder / "other")
    )
    model = between(base, trained, 0.25)
    for new, start, end in zip(
        model.parameters(), base.parameters(), trained.parameters(), strict=True
    ):
        torch.testing.assert_close(new, 0.75 * start + 0.25 * end)
    whole = between(base, trained, 1.0)
    assert all(map(torch.equal, whole.parameters(), trained.parameters()))
