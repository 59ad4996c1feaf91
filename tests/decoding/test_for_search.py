"""Whole models for search against the models they are made from."""

from typing import Any

import pytest
import torch
from torch import nn

from nmt.config.schema import ModelConfig
from nmt.data.batches import pad_sources
from nmt.decoding import for_search as module
from nmt.decoding.for_search import for_search
from nmt.decoding.pack import PackedLinear
from nmt.decoding.steps import GateTable
from nmt.model.seq2seq import Seq2Seq

SECTIONS: list[dict[str, Any]] = [
    {},
    {"tie_embeddings": "target"},
    {"decoder": {"cell": "gru", "input_feeding": True}, "encoder": {"cell": "gru"}},
    {
        "decoder": {"cell": "elman", "layers": 2, "layer_norm": True, "residual": True},
        "encoder": {"cell": "elman"},
    },
    {"decoder": {"layers": 3, "input_feeding": True, "readout": "deep"}},
    {
        "decoder": {"kind": "bahdanau", "cell": "gru", "readout": "maxout"},
        "attention": {"score": "additive"},
    },
    {"decoder": {"kind": "bahdanau", "readout": "state"}, "tie_embeddings": "target"},
    {
        "decoder": {"kind": "conditional", "cell": "gru", "readout": "deep", "layer_norm": True},
        "tie_embeddings": "target",
    },
    {
        "decoder": {"kind": "gnmt", "layers": 3, "readout": "deep", "residual": True},
        "tie_embeddings": "target",
    },
    {"decoder": {"kind": "gnmt", "layers": 2, "cell": "sru"}, "encoder": {"cell": "sru"}},
    {"decoder": {"cell": "sru", "layers": 2, "input_feeding": True}, "encoder": {"cell": "sru"}},
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
def test_a_packed_model_gives_the_same_and_does_not_change_the_original(
    sections: dict[str, Any], known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not known:
        monkeypatch.setattr(module, "MAX_TABLE_SIZE", 0)
    model = model_of(sections)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    packed = for_search(model)
    assert isinstance(packed.tgt_embedding, GateTable) == (
        known and model.decoder.recurrent.layers[0]._get_name() != "SRU"
    )
    with torch.inference_mode():
        torch.testing.assert_close(log_probs(packed), log_probs(model))
    assert model.state_dict().keys() == before.keys()
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name])
    assert not any(isinstance(part, PackedLinear) for part in model.modules())
    assert not any(
        value.requires_grad
        for value in packed.tgt_embedding.__dict__.values()
        if isinstance(value, torch.Tensor)
    )


@pytest.mark.parametrize("sections", SECTIONS[:-1], ids=str)
@torch.inference_mode()
def test_a_restricted_model_gives_the_same_logits_for_its_words(sections: dict[str, Any]) -> None:
    model, ids = model_of(sections), torch.tensor([0, 1, 2, 9, 17, 23, 28])
    scores = log_probs(model)[..., ids].log_softmax(-1)
    twice = for_search(model).restrict(torch.arange(29)).restrict(ids)
    for short in (for_search(model).restrict(ids), model.restrict(ids), twice):
        torch.testing.assert_close(log_probs(short, 2, (3, 4, 5)), scores)


def test_the_matrices_of_the_output_are_shared() -> None:
    model = model_of({"tie_embeddings": "target"})
    layers = [one.output.get_submodule("logits") for one in (model, for_search(model))]
    assert [type(layer) for layer in layers] == [nn.Linear, PackedLinear]
    assert (
        layers[0].get_parameter("weight").data_ptr() == layers[1].get_parameter("weight").data_ptr()
    )


def test_no_random_numbers_are_drawn_so_validation_does_not_change_training() -> None:
    model, before = model_of({}), torch.get_rng_state()
    for_search(model).restrict(torch.arange(9))
    assert torch.equal(torch.get_rng_state(), before)


def test_only_models_on_a_cpu_are_packed() -> None:
    model = model_of({}).to("meta")
    assert for_search(model) is model
