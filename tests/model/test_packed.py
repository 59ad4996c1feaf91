"""Packed matrices against plain products in double precision, and whole models against themselves unpacked."""

import pickle
from collections.abc import Callable
from copy import deepcopy

import numpy as np
import pytest
import torch
from torch import nn

from nmt.model.packed import PackedLinear
from nmt.model.seq2seq import Seq2Seq
from nmt.sections import ModelConfig


def test_it_is_packed_here() -> None:
    assert (PackedLinear.of(nn.Linear(4, 5)).packed is not None) == torch.backends.mkldnn.is_available()


@pytest.mark.parametrize("available", [True, False])
@pytest.mark.parametrize("rows", [1, 2, 5, 31, 64, 70])
@pytest.mark.parametrize("size", [50, 3001])
def test_the_product_is_that_of_the_layer(size: int, rows: int, available: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    available = available and torch.backends.mkldnn.is_available()
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: available)
    torch.manual_seed(1)
    linear, inputs = nn.Linear(64, size), torch.randn(rows, 64)
    with torch.inference_mode():
        expected = inputs.double() @ linear.weight.double().t() + linear.bias.double()
        outputs = PackedLinear.of(linear)(inputs)
        assert PackedLinear.of(linear)(inputs.view(1, rows, 64)).shape == (1, rows, size)
    np.testing.assert_allclose(outputs, expected, atol=1e-5)


def test_other_precisions_are_multiplied_as_they_are() -> None:
    linear, inputs = nn.Linear(6, 7).double(), torch.randn(3, 6, dtype=torch.double)
    assert torch.equal(PackedLinear.of(linear)(inputs), linear(inputs))


@pytest.mark.parametrize("clone", [deepcopy, lambda layer: pickle.loads(pickle.dumps(layer))])  # noqa: S301
def test_it_can_be_copied_and_sent_elsewhere(clone: Callable[[PackedLinear], PackedLinear]) -> None:
    layer, inputs = PackedLinear.of(nn.Linear(16, 30)), torch.randn(5, 16)
    other = clone(layer)
    assert other.weight.data_ptr() != layer.weight.data_ptr()
    assert (other.packed is None) == (layer.packed is None)
    with torch.inference_mode():
        assert torch.equal(other(inputs), layer(inputs))


@pytest.mark.parametrize("tie", ["none", "target"])
def test_a_packed_model_says_the_same_and_leaves_the_other_as_it_is(tie: str) -> None:
    torch.manual_seed(1)
    config = ModelConfig.model_validate({"embedding_size": 8, "tie_embeddings": tie, "decoder": {"hidden_size": 12}})
    model = Seq2Seq(config, 20, 30).eval()
    vectors, ids = torch.randn(5, model.decoder.readout.output_size), torch.tensor([4, 9, 3])
    with torch.inference_mode():
        packed = model.pack()
        torch.testing.assert_close(packed.scores(vectors), model.scores(vectors))
        torch.testing.assert_close(packed.output.log_probs(vectors), model.output.log_probs(vectors))
        torch.testing.assert_close(packed.output.loss(vectors, torch.arange(5)), model.output.loss(vectors, torch.arange(5)))
        torch.testing.assert_close(packed.restrict(ids).scores(vectors), model.scores(vectors)[:, ids])
    layers = [one.output.get_submodule("logits") for one in (model, packed)]
    assert [type(layer) for layer in layers] == [nn.Linear, PackedLinear]
    assert layers[0].get_parameter("weight").data_ptr() == layers[1].get_parameter("weight").data_ptr()  # what it can it shares
    assert packed.state_dict().keys() == model.state_dict().keys()


def test_an_adaptive_output_layer_is_packed_as_it_is() -> None:
    model = Seq2Seq(ModelConfig.model_validate({"embedding_size": 8, "output": "adaptive"}), 20, 30)
    assert model.pack().output is model.output
