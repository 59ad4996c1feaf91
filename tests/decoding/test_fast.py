"""Whole models for search against the models they are made from, and their parts against NumPy."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from nmt.config.schema import ModelConfig
from nmt.data.padding import pad_with_eos
from nmt.decoding import fast
from nmt.decoding.fast import (
    GateTable,
    Int8Linear,
    PackedLinear,
    check_int8,
    for_search,
    round_rows,
)
from nmt.errors import ConfigError
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
    {"output": "adaptive"},
]


def model_of(sections: dict[str, Any]) -> Seq2Seq:
    torch.manual_seed(1)
    sizes = {"embedding_size": 8, "decoder": {"hidden_size": 12, **sections.get("decoder", {})}}
    return Seq2Seq(ModelConfig.model_validate({**sections, **sizes}), 20, 30).eval()


def log_probs(model: Seq2Seq, first: int = 2, then: tuple[int, ...] = (9, 17, 23)) -> torch.Tensor:
    """Of three steps of two sentences: [3, 2, V]."""
    memory = model.encode(*map(torch.from_numpy, pad_with_eos([[4, 5, 6], [7, 8]])))
    state, ids, outputs = model.start(memory), torch.tensor([first, first]), []
    for token in then:
        output = model.step(ids, state, memory)
        outputs.append(model.output.log_probs(*output.vector))
        state, ids = output.state, torch.tensor([token, token])
    return torch.stack(outputs)


@pytest.mark.parametrize("known", [True, False], ids=["with a table", "without"])
@pytest.mark.parametrize("sections", SECTIONS, ids=str)
def test_a_packed_model_gives_the_same_and_does_not_change_the_original(
    sections: dict[str, Any], known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not known:
        monkeypatch.setattr(fast, "MAX_TABLE_SIZE", 0)
    model = model_of(sections)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    packed = for_search(model)
    assert isinstance(packed.tgt_embedding, GateTable) == known
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


def test_the_matrices_of_the_output_are_shared() -> None:
    model = model_of({"tie_embeddings": "target"})
    layers = [one.output.get_submodule("logits") for one in (model, for_search(model))]
    assert [type(layer) for layer in layers] == [nn.Linear, PackedLinear]
    assert (
        layers[0].get_parameter("weight").data_ptr() == layers[1].get_parameter("weight").data_ptr()
    )


def test_no_random_numbers_are_drawn_so_validation_does_not_change_training() -> None:
    model, before = model_of({}), torch.get_rng_state()
    for_search(model)
    assert torch.equal(torch.get_rng_state(), before)


def test_only_models_on_a_cpu_are_packed() -> None:
    model = model_of({}).to("meta")
    assert for_search(model) is model


@pytest.mark.parametrize("available", [True, False])
@pytest.mark.parametrize("rows", [1, 5, 16, 17, 70])
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
        outputs = PackedLinear(linear)(inputs)
        assert PackedLinear(linear)(inputs.view(1, rows, 64)).shape == (1, rows, size)
    np.testing.assert_allclose(outputs, expected, atol=1e-5)


def test_other_precisions_are_not_packed() -> None:
    linear, inputs = nn.Linear(6, 7).double(), torch.randn(3, 6, dtype=torch.double)
    assert torch.equal(PackedLinear(linear)(inputs), linear(inputs))


@pytest.fixture
def fresh_probe() -> Iterator[None]:
    probes = fast.operators_work, fast.int8_works
    for probe in probes:
        probe.cache_clear()
    yield
    for probe in probes:
        probe.cache_clear()


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("_reorder", Mock(side_effect=AttributeError("no such operator"))),
        ("_multiply", Mock(side_effect=RuntimeError("not implemented for this processor"))),
        ("_multiply", lambda rows, *_: torch.zeros(len(rows), 6)),  # a wrong product
    ],
)
@pytest.mark.usefixtures("fresh_probe")
def test_without_working_operators_products_are_ordinary(
    name: str, broken: Callable[..., torch.Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fast, name, broken)
    linear, inputs = nn.Linear(16, 30), torch.randn(5, 16)
    layer = PackedLinear(linear)
    assert layer.packed is None
    assert torch.equal(layer(inputs), linear(inputs))


# --- 8-bit integers


@pytest.fixture(scope="module", autouse=True)
def available() -> None:
    """The check also catches a warning that torch gives once."""
    check_int8(torch.device("cpu"))


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
            Int8Linear(linear)(inputs),
            exact,
            atol=step * np.abs(rows * scales[:, None]).sum(1).max() / 2,
        )


@pytest.mark.parametrize("sections", SECTIONS, ids=str)
@torch.inference_mode()
def test_a_rounded_model_gives_nearly_the_same(sections: dict[str, Any]) -> None:
    model = model_of(sections)
    exact, rounded = log_probs(model), log_probs(for_search(model, "int8"))
    assert torch.equal(log_probs(model), exact)  # the original does not change
    assert not torch.equal(exact, rounded)
    assert (exact - rounded).abs().max() < 0.05
    torch.testing.assert_close(rounded.exp().sum(-1), torch.ones(3, 2))


def test_only_on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        ConfigError,
        match=r"decoding.precision: int8 computes on the CPU, not on cuda; use --device cpu",
    ):
        check_int8(torch.device("cuda"))
    monkeypatch.setattr(torch.backends, "quantized", SimpleNamespace(engine="none"))
    with pytest.raises(
        ConfigError, match=r"decoding.precision: this build of torch cannot multiply 8-bit integers"
    ):
        check_int8(torch.device("cpu"))


@pytest.mark.usefixtures("fresh_probe")
def test_a_build_without_the_operators_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast, "_pack_int8", Mock(side_effect=AttributeError))
    with pytest.raises(ConfigError, match="this build of torch cannot multiply 8-bit integers"):
        check_int8(torch.device("cpu"))
