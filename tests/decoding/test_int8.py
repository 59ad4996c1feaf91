"""Products in 8-bit integers against NumPy, and whole models against themselves in floats."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from nmt.config.schema import ModelConfig
from nmt.data.batches import pad_sources
from nmt.decoding import int8
from nmt.decoding.fast import for_search
from nmt.decoding.int8 import Int8Linear, check_available, round_rows
from nmt.errors import ConfigError
from nmt.model.seq2seq import Seq2Seq


@pytest.fixture(scope="module", autouse=True)
def available() -> None:
    check_available(torch.device("cpu"))


@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 99))
def test_rows_are_rounded_to_the_nearest_of_their_scale(
    outputs: int, inputs: int, seed: int
) -> None:
    weight = np.random.default_rng(seed).normal(size=(outputs, inputs)).astype(np.float32)
    rows, scales = (part.numpy() for part in round_rows(torch.from_numpy(weight)))
    assert np.abs(rows).max(1).tolist() == [127] * outputs
    assert np.all(np.abs(rows * scales[:, None] - weight) <= scales[:, None] / 2 * 1.001)


def test_a_row_of_zeros_stays() -> None:
    rows, scales = round_rows(torch.zeros(2, 3))
    assert not rows.any()
    assert torch.isfinite(scales).all()


@pytest.mark.parametrize("bias", [True, False])
def test_a_product_is_that_of_rounded_factors(bias: bool) -> None:
    torch.manual_seed(1)
    linear, inputs = nn.Linear(40, 30, bias=bias), torch.randn(5, 40)
    rows, scales = (part.numpy().astype(np.float64) for part in round_rows(linear.weight.detach()))
    # Inputs have 7 bits between the least and the most of all of them, so that no sum of products
    # overflows.
    least, most = inputs.min().item(), inputs.max().item()
    step = (most - least) / 127
    exact = np.round(inputs.numpy() / step) * step @ (rows * scales[:, None]).T
    exact += linear.bias.detach().numpy() if bias else 0
    with torch.inference_mode():
        np.testing.assert_allclose(
            Int8Linear.of(linear)(inputs),
            exact,
            atol=step * np.abs(rows * scales[:, None]).sum(1).max() / 2,
        )


def test_selected_outputs_are_the_same() -> None:
    torch.manual_seed(1)
    linear, inputs, ids = (
        Int8Linear.of(nn.Linear(16, 30)),
        torch.randn(5, 16),
        torch.tensor([0, 7, 29, 8]),
    )
    assert torch.equal(linear.select(ids)(inputs), linear(inputs)[:, ids])


def model_of(**sections: Any) -> Seq2Seq:
    torch.manual_seed(1)
    sizes = {
        "embedding_size": 24,
        "encoder": {"hidden_size": 16, **sections.pop("encoder", {})},
        "decoder": {"hidden_size": 32, **sections.pop("decoder", {})},
    }
    return Seq2Seq(ModelConfig.model_validate({**sizes, **sections}), 50, 60).eval()


@pytest.mark.parametrize(
    "sections",
    [
        {},
        {"encoder": {"cell": "gru"}, "decoder": {"cell": "gru", "input_feeding": True}},
        {
            "encoder": {"cell": "elman"},
            "decoder": {"cell": "elman", "layers": 2, "layer_norm": True},
        },
        {"decoder": {"kind": "bahdanau", "readout": "maxout"}, "attention": {"score": "additive"}},
        {"decoder": {"kind": "conditional", "readout": "deep"}},
        {"decoder": {"kind": "gnmt", "layers": 3}},
        {"tie_embeddings": "target"},
        {"output": "adaptive"},
    ],
    ids=str,
)
@torch.inference_mode()
def test_a_rounded_model_gives_nearly_the_same(sections: dict[str, Any]) -> None:
    model = model_of(**sections)

    def log_probs(model: Seq2Seq) -> torch.Tensor:
        memory = model.encode(*pad_sources([[4, 5, 6], [7, 8]]))
        state, ids, outputs = model.start(memory), torch.tensor([2, 2]), []
        for token in (9, 17, 23):
            output = model.step(ids, state, memory)
            outputs.append(model.output.log_probs(output.vector))
            state, ids = output.state, torch.tensor([token, token])
        return torch.stack(outputs)

    exact, rounded = log_probs(model), log_probs(for_search(model, "int8"))
    assert torch.equal(log_probs(model), exact)  # the original does not change
    assert not torch.equal(exact, rounded)
    assert (exact - rounded).abs().max() < 0.05
    torch.testing.assert_close(rounded.exp().sum(-1), torch.ones(3, 2))


def test_the_weights_have_8_bits() -> None:
    linear = Int8Linear.of(nn.Linear(64, 1000))
    assert linear.rows.dtype == torch.int8
    assert [name for name, _ in linear.named_parameters()] == []


def test_only_on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        ConfigError,
        match=r"decoding.precision: int8 computes on the CPU, not on cuda; use --device cpu",
    ):
        check_available(torch.device("cuda"))
    monkeypatch.setattr(torch.backends, "quantized", SimpleNamespace(engine="none"))
    with pytest.raises(
        ConfigError, match=r"decoding.precision: this build of torch cannot multiply 8-bit integers"
    ):
        int8.check_available(torch.device("cpu"))


def test_a_build_without_the_operators_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> None:
        raise AttributeError("no such operator")

    monkeypatch.setattr(int8, "_pack", missing)
    int8.operators_work.cache_clear()
    try:
        with pytest.raises(
            ConfigError,
            match=r"decoding.precision: this build of torch cannot multiply 8-bit integers",
        ):
            check_available(torch.device("cpu"))
    finally:
        int8.operators_work.cache_clear()
