"""Packed products against plain ones in double precision."""

import pickle
from collections.abc import Callable, Iterator
from copy import deepcopy

import numpy as np
import pytest
import torch
from torch import nn

from nmt.decoding import pack
from nmt.decoding.pack import PackedLinear


def test_the_operators_work_here() -> None:
    assert (
        PackedLinear.of(nn.Linear(4, 5)).packed is not None
    ) == torch.backends.mkldnn.is_available()


@pytest.mark.parametrize("available", [True, False])
@pytest.mark.parametrize("rows", [1, 2, 5, 16, 17, 31, 64, 70])
@pytest.mark.parametrize("size", [50, 3001])
def test_the_product_is_that_of_the_layer(
    size: int, rows: int, available: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    available = available and torch.backends.mkldnn.is_available()
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: available)
    torch.manual_seed(1)
    linear, inputs = nn.Linear(64, size), torch.randn(rows, 64)
    with torch.inference_mode():
        expected = inputs.double() @ linear.weight.double().t() + linear.bias.double()
        outputs = PackedLinear.of(linear)(inputs)
        assert PackedLinear.of(linear)(inputs.view(1, rows, 64)).shape == (1, rows, size)
    np.testing.assert_allclose(outputs, expected, atol=1e-5)


def test_other_precisions_are_not_packed() -> None:
    linear, inputs = nn.Linear(6, 7).double(), torch.randn(3, 6, dtype=torch.double)
    assert torch.equal(PackedLinear.of(linear)(inputs), linear(inputs))


@pytest.fixture
def fresh_probe() -> Iterator[None]:
    pack.operators_work.cache_clear()
    yield
    pack.operators_work.cache_clear()


def _missing(*_: object) -> torch.Tensor:
    raise AttributeError("no such operator")


def _failing(*_: object) -> torch.Tensor:
    raise RuntimeError("not implemented for this processor")


def _wrong(rows: torch.Tensor, _packed: torch.Tensor, _bias: torch.Tensor | None) -> torch.Tensor:
    return torch.zeros(len(rows), 6)


@pytest.mark.parametrize(
    ("name", "broken"), [("_reorder", _missing), ("_multiply", _failing), ("_multiply", _wrong)]
)
@pytest.mark.usefixtures("fresh_probe")
def test_without_working_operators_products_are_ordinary(
    name: str, broken: Callable[..., torch.Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pack, name, broken)
    linear, inputs = nn.Linear(16, 30), torch.randn(5, 16)
    layer = PackedLinear.of(linear)
    assert layer.packed is None
    assert torch.equal(layer(inputs), linear(inputs))


@pytest.mark.parametrize("clone", [deepcopy, lambda layer: pickle.loads(pickle.dumps(layer))])  # noqa: S301
def test_a_packed_layer_can_be_copied_and_pickled(
    clone: Callable[[PackedLinear], PackedLinear],
) -> None:
    layer, inputs = PackedLinear.of(nn.Linear(16, 30)), torch.randn(5, 16)
    other = clone(layer)
    assert other.weight.data_ptr() != layer.weight.data_ptr()
    assert (other.packed is None) == (layer.packed is None)
    with torch.inference_mode():
        assert torch.equal(other(inputs), layer(inputs))
