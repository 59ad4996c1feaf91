"""Decoders and readouts against their equations in NumPy; what the states of decoders depend on."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from nmt.config.parts import READOUTS
from nmt.config.schema import ModelConfig
from nmt.model.attention import Memory
from nmt.model.decoder import DecoderState
from nmt.model.seq2seq import Seq2Seq

Array = NDArray[np.float64]
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


def sigma(x: Array) -> Array:
    result: Array = 1 / (1 + np.exp(-x))
    return result


def lstm(w: dict[str, Array], layer: int, x: Array, h: Array, c: Array) -> tuple[Array, Array]:
    parts = (
        w[f"recurrent.layers.{layer}.{name}_l0"]
        for name in ("weight_ih", "bias_ih", "weight_hh", "bias_hh")
    )
    weight_ih, bias_ih, weight_hh, bias_hh = parts
    i, f, g, o = np.split(x @ weight_ih.T + bias_ih + h @ weight_hh.T + bias_hh, 4, -1)
    cell = sigma(f) * c + sigma(i) * np.tanh(g)
    return sigma(o) * np.tanh(cell), cell


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
    assert state.recurrent.cell is not None
    for row in range(B):
        h, c = (list(part[row].numpy()) for part in (state.recurrent.hidden, state.recurrent.cell))
        context = np.zeros(0)
        for t in range(T):
            below = embedded[row, t].numpy()
            for layer in range(layers):
                h[layer], c[layer] = lstm(
                    w,
                    layer,
                    np.concatenate([below, context]) if layer else below,
                    h[layer],
                    c[layer],
                )
                above = normalize(w, layer, h[layer]) if stacked else h[layer]
                below = below + above if stacked and layer else above
                if layer == 0:
                    alpha, context = attend(w, memory, row, below)
            np.testing.assert_allclose(attention[row, t], alpha, atol=1e-10)
            expected = np.tanh(w["readout.weight.weight"] @ np.concatenate([context, below]))
            np.testing.assert_allclose(vectors[row, t], expected, atol=1e-10)


def gru(w: dict[str, Array], stack: str, x: Array, h: Array) -> Array:
    parts = (
        w[f"{stack}.layers.0.{name}_l0"]
        for name in ("weight_ih", "bias_ih", "weight_hh", "bias_hh")
    )
    weight_ih, bias_ih, weight_hh, bias_hh = parts
    (r, z, n), (r_h, z_h, n_h) = (
        np.split(part, 3) for part in (x @ weight_ih.T + bias_ih, h @ weight_hh.T + bias_hh)
    )
    new: Array = np.tanh(n + sigma(r + r_h) * n_h)
    result: Array = (1 - sigma(z + z_h)) * new + sigma(z + z_h) * h
    return result


@torch.no_grad()
def test_conditional_gru_follows_its_equations() -> None:
    model = make(kind="conditional", cell="gru", readout="deep")
    memory, state, embedded = read_batch(model)
    vectors, attention = model.decoder.unroll(embedded, state, memory)

    w = {name: parameter.numpy() for name, parameter in model.decoder.named_parameters()}
    for row in range(B):
        h = state.recurrent.top[row].numpy()
        for t in range(T):
            query = gru(w, "recurrent", embedded[row, t].numpy(), h)
            alpha, context = attend(w, memory, row, query)
            h = gru(w, "transition", context, query)
            np.testing.assert_allclose(attention[row, t], alpha, atol=1e-10)
            total = (
                w["readout.state.weight"] @ h
                + w["readout.state.bias"]
                + w["readout.context.weight"] @ context
            )
            expected = np.tanh(total + w["readout.embedded.weight"] @ embedded[row, t].numpy())
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
            state.recurrent.hidden[:, layer].sum(),
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
    assert torch.autograd.gradcheck(readout, tuple(x.requires_grad_() for x in (s, e, c)))
