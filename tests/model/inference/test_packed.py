"""Packed matrices against plain products in double precision, and whole models against themselves unpacked."""

import pickle
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from nmt.config.schema import ModelConfig
from nmt.data.batching import pad_sources
from nmt.model import seq2seq
from nmt.model.inference.packed import PackedLinear
from nmt.model.seq2seq import Seq2Seq


def test_it_is_packed_here() -> None:
    assert (PackedLinear.of(nn.Linear(4, 5)).packed is not None) == torch.backends.mkldnn.is_available()


@pytest.mark.parametrize("available", [True, False])
@pytest.mark.parametrize("rows", [1, 2, 5, 16, 17, 31, 64, 70])
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


SECTIONS: list[dict[str, Any]] = [
    {},
    {"tie_embeddings": "target"},
    {"decoder": {"cell": "gru", "input_feeding": True}, "encoder": {"cell": "gru"}},
    {"decoder": {"cell": "elman", "layers": 2, "layer_norm": True, "residual": True}, "encoder": {"cell": "elman"}},
    {"decoder": {"layers": 3, "input_feeding": True, "readout": "deep"}},
    {"decoder": {"kind": "bahdanau", "cell": "gru", "readout": "maxout"}, "attention": {"score": "additive"}},
    {"decoder": {"kind": "bahdanau", "readout": "state"}, "tie_embeddings": "target"},
    {"output": "adaptive"},
]


def model_of(sections: dict[str, Any]) -> Seq2Seq:
    torch.manual_seed(1)
    sizes = {"embedding_size": 8, "decoder": {"hidden_size": 12, **sections.get("decoder", {})}}
    return Seq2Seq(ModelConfig.model_validate({**sections, **sizes}), 20, 30).eval()


def log_probs(model: Seq2Seq, first: int = 2, then: tuple[int, ...] = (9, 17, 23)) -> torch.Tensor:
    """Of three steps of two sentences: [3, 2, V]."""
    memory = model.encode(*pad_sources([[4, 5, 6], [7, 8]]))
    state, ids, outputs = model.start(memory), torch.tensor([first, first]), []
    for token in then:
        output = model.step(ids, state, memory)
        outputs.append(model.output.log_probs(output.vector))
        state, ids = output.state, torch.tensor([token, token])
    return torch.stack(outputs)


@pytest.mark.parametrize("known", [True, False], ids=["with a table", "without"])
@pytest.mark.parametrize("sections", SECTIONS, ids=str)
def test_a_packed_model_says_the_same_and_leaves_the_other_as_it_is(
    sections: dict[str, Any], known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not known:
        monkeypatch.setattr(seq2seq, "MOST_KNOWN", 0)
    model = model_of(sections)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    packed = model.pack()
    assert (packed.tgt_embedding.read(torch.tensor([3])).gates is not None) == known
    with torch.inference_mode():
        torch.testing.assert_close(log_probs(packed), log_probs(model))
    assert model.state_dict().keys() == before.keys()
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name])
    assert not any(isinstance(part, PackedLinear) for part in model.modules())
    assert not any(value.requires_grad for value in packed.tgt_embedding.__dict__.values() if isinstance(value, torch.Tensor))


@pytest.mark.parametrize("sections", SECTIONS[:-1], ids=str)
@torch.inference_mode()
def test_a_packed_model_for_some_words_says_of_them_what_it_says_of_all(sections: dict[str, Any]) -> None:
    model, ids = model_of(sections), torch.tensor([0, 1, 2, 9, 17, 23, 28])
    scores = log_probs(model)[..., ids].log_softmax(-1)
    twice = model.pack().restrict(torch.arange(29)).restrict(ids)
    for short in (model.pack().restrict(ids), model.restrict(ids), twice):
        torch.testing.assert_close(log_probs(short, 2, (3, 4, 5)), scores)


def test_the_matrices_of_the_output_are_shared() -> None:
    model = model_of({"tie_embeddings": "target"})
    layers = [one.output.get_submodule("logits") for one in (model, model.pack())]
    assert [type(layer) for layer in layers] == [nn.Linear, PackedLinear]
    assert layers[0].get_parameter("weight").data_ptr() == layers[1].get_parameter("weight").data_ptr()


def test_nothing_is_drawn_so_that_a_validation_does_not_change_a_training() -> None:
    model, before = model_of({}), torch.get_rng_state()
    model.pack().restrict(torch.arange(9))
    assert torch.equal(torch.get_rng_state(), before)


def test_elsewhere_than_on_a_cpu_nothing_is_packed() -> None:
    model = model_of({}).to("meta")
    assert model.pack() is model
