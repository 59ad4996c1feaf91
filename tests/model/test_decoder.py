"""Bridges, decoders and readouts against their equations in NumPy; on what their states depend."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from nmt.config.parts import BRIDGES, READOUTS
from nmt.config.schema import ModelConfig
from nmt.model.attention import Memory
from nmt.model.decoder import DecoderState
from nmt.model.encoder import Summary
from nmt.model.recurrent import RecurrentState
from nmt.model.seq2seq import Seq2Seq
from tests.model import equations
from tests.model.equations import Array

B, S, T, V = 2, 4, 3, 9


def make(**decoder: Any) -> Seq2Seq:
    torch.manual_seed(1)
    sections = {"encoder": {"hidden_size": 4}, "decoder": {"hidden_size": 6, **decoder}}
    model = Seq2Seq(
        ModelConfig.model_validate({"embedding_size": 5, "dropout": 0.0, **sections}), V, V
    ).double()
    for parameter in model.parameters():
        parameter.data.normal_(std=0.7)
    return model


def read_batch(model: Seq2Seq) -> tuple[Memory, DecoderState, Tensor]:
    """A batch with padding: the memory, the first state, and the embedded prefix [B, T, E]."""
    src, tgt = torch.randint(4, V, (B, S)), torch.randint(4, V, (B, T))
    memory = model.encode(src, torch.tensor([S, S - 2]))
    return memory, model.start(memory), model.tgt_embedding(tgt)


def attend(w: dict[str, Array], memory: Memory, row: int, query: Array) -> tuple[Array, Array]:
    """Weights and context of one query, with the general score."""
    values = memory.values[row].numpy()
    exponentials = (
        np.exp(values @ w["attention.score.weight.weight"].T @ query) * memory.mask[row].numpy()
    )
    alpha: Array = exponentials / exponentials.sum()
    return alpha, alpha @ values


def layer_of(w: dict[str, Array], name: str) -> dict[str, Array]:
    return {key.removeprefix(name): value for key, value in w.items() if key.startswith(name)}


def normalize(w: dict[str, Array], layer: int, x: Array) -> Array:
    normal: Array = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return normal * w[f"recurrent.norms.{layer}.weight"] + w[f"recurrent.norms.{layer}.bias"]


@pytest.mark.parametrize("layers", [2, 3])
@pytest.mark.parametrize(
    "stacked",
    [{}, {"residual": True, "layer_norm": True}],
    ids=["plain", "normalized and residual"],
)
@torch.no_grad()
def test_gnmt_follows_its_equations(layers: int, stacked: dict[str, bool]) -> None:
    model = make(kind="gnmt", layers=layers, **stacked)
    memory, state, embedded = read_batch(model)
    vectors, attention = model.decoder.unroll(embedded, state, memory)

    w = {name: parameter.numpy() for name, parameter in model.decoder.named_parameters()}
    for row in range(B):
        h = [hidden[row].numpy() for hidden, _ in state.recurrent.layers]
        c = [cell[row].numpy() for _, cell in state.recurrent.layers if cell is not None]
        context = np.zeros(0)
        for t in range(T):
            below = embedded[row, t].numpy()
            for layer in range(layers):
                weights = layer_of(w, f"recurrent.layers.{layer}.")
                x = np.concatenate([below, context]) if layer else below
                h[layer], c[layer] = equations.cell("lstm", weights, x, h[layer], c[layer])
                above = normalize(w, layer, h[layer]) if stacked else h[layer]
                below = below + above if stacked and layer else above
                if layer == 0:
                    alpha, context = attend(w, memory, row, below)
            np.testing.assert_allclose(attention[row, t], alpha, atol=1e-10)
            expected = np.tanh(w["readout.weight.weight"] @ np.concatenate([context, below]))
            np.testing.assert_allclose(vectors[row, t], expected, atol=1e-10)


@torch.no_grad()
def test_conditional_gru_follows_its_equations() -> None:
    model = make(kind="conditional", cell="gru", readout="deep")
    memory, state, embedded = read_batch(model)
    vectors, attention = model.decoder.unroll(embedded, state, memory)

    w = {name: parameter.numpy() for name, parameter in model.decoder.named_parameters()}
    for row in range(B):
        h = state.recurrent.top[row].numpy()
        for t in range(T):
            x = embedded[row, t].numpy()
            query, _ = equations.cell("gru", layer_of(w, "recurrent.layers.0."), x, h, h)
            alpha, context = attend(w, memory, row, query)
            h, _ = equations.cell("gru", layer_of(w, "transition.layers.0."), context, query, query)
            np.testing.assert_allclose(attention[row, t], alpha, atol=1e-10)
            total = (
                w["readout.state.weight"] @ h
                + w["readout.state.bias"]
                + w["readout.context.weight"] @ context
            )
            expected = np.tanh(total + w["readout.embedded.weight"] @ x)
            np.testing.assert_allclose(vectors[row, t], expected, atol=1e-10)


@pytest.mark.parametrize(
    ("decoder", "sees"),
    [({"kind": "luong"}, False), ({"kind": "gnmt"}, True)],
    ids=["luong", "gnmt"],
)
def test_what_the_next_state_knows_of_the_source(decoder: dict[str, Any], sees: bool) -> None:
    """After one step, the state of the top layer depends on the encoder's outputs, and that of the
    first layer does not.
    """
    model = make(layers=2, **decoder)
    memory = model.encode(torch.randint(4, V, (1, S)), torch.tensor([S]))
    start = model.start(memory)
    values = memory.values.detach().requires_grad_()
    changed = model.decoder.attention.build_memory(values, memory.mask, memory.summary)
    state: DecoderState = model.step(torch.tensor([4]), start, changed).state
    first, top = (
        torch.autograd.grad(
            state.recurrent.layers[layer][0].sum(),
            values,
            retain_graph=True,
            materialize_grads=True,
        )[0]
        for layer in (0, 1)
    )
    assert not first.any()
    assert bool(top.any()) == sees


@pytest.mark.parametrize("name", READOUTS)
def test_readouts_follow_their_equations(name: str) -> None:
    torch.manual_seed(1)
    readout = READOUTS[name].load()(4, 5, 6, 7).double()
    s, e, c = (torch.randn(B, size, dtype=torch.float64) for size in (4, 5, 6))
    w: dict[str, Any] = {key: value.detach().numpy() for key, value in readout.named_parameters()}
    state, embedded, context = s.numpy(), e.numpy(), c.numpy()
    match name:
        case "attentional":
            expected = np.tanh(np.concatenate([context, state], -1) @ w["weight.weight"].T)
        case "concat":
            expected = np.concatenate([state, context], -1)
        case "state":
            expected = state
        case _:
            t = (
                state @ w["state.weight"].T
                + w["state.bias"]
                + embedded @ w["embedded.weight"].T
                + context @ w["context.weight"].T
            )
            expected = np.tanh(t) if name == "deep" else np.maximum(t[:, 0::2], t[:, 1::2])
    result = readout(s, e, c)
    assert result.shape == (B, readout.output_size)
    np.testing.assert_allclose(result.detach(), expected, atol=1e-10)


@pytest.mark.parametrize("bridge", BRIDGES)
@pytest.mark.parametrize(("encoder_layers", "decoder_layers"), [(1, 1), (3, 2), (2, 3)])
def test_bridges_match_layers_from_the_top(
    bridge: str, encoder_layers: int, decoder_layers: int
) -> None:
    if bridge == "copy" and decoder_layers > encoder_layers:
        pytest.skip("refused when the configuration is read")
    torch.manual_seed(1)
    size = 4  # of one direction
    decoder_size = 2 * size if bridge == "copy" else size
    sections = {
        "encoder": {"hidden_size": size, "layers": encoder_layers},
        "decoder": {"hidden_size": decoder_size, "layers": decoder_layers},
    }
    module = (
        BRIDGES[bridge].load()(ModelConfig.model_validate({"bridge": bridge, **sections})).double()
    )
    last = [
        (torch.randn(B, 2 * size).double(), torch.randn(B, 2 * size).double())
        for _ in range(encoder_layers)
    ]
    first = module(Summary(last[-1][0], RecurrentState(tuple(last))))
    w: dict[str, Any] = {key: value.detach().numpy() for key, value in module.named_parameters()}
    assert len(first.layers) == decoder_layers
    for layer, state in enumerate(first.layers):
        before = last[max(0, encoder_layers - decoder_layers + layer)]
        for result, source, part in zip(state, before, ("hidden", "cell"), strict=True):
            x = source.numpy()
            if bridge == "backward":
                x = x[:, size:]  # the directions are concatenated, forward first
            if bridge == "copy":
                expected = x
            elif bridge == "zero":
                expected = np.zeros((B, size))
            else:
                expected = np.tanh(x @ w[f"{part}.{layer}.weight"].T + w[f"{part}.{layer}.bias"])
            assert result is not None
            np.testing.assert_allclose(result.detach(), expected, atol=1e-10)
