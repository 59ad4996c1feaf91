"""Graphs with products in 8-bit integers: near those in float32, and the same in any batch."""

from typing import Any

import numpy as np
import onnx
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from nmt.config.schema import DecodingConfig, ModelConfig
from nmt.decoding.forced import score_batch
from nmt.decoding.onnx_model import _Graph, computes_exactly
from nmt.decoding.search import search
from nmt.decoding.torch_model import TorchModel
from nmt.model.int8 import MIN_SIDE, check_graph, to_int8
from nmt.model.seq2seq import Seq2Seq
from tests.model.test_graphs import onnx_model

INPUTS, OUTPUTS = 70, MIN_SIDE
Array = NDArray[np.float32]


def graph_of(matrix: Array, bias: Array | None = None, transposed: bool = False) -> bytes:
    """rows [N, I] -> rows @ matrix + bias."""
    tensors = [numpy_helper.from_array(matrix.T.copy() if transposed else matrix, "matrix")]
    names = ["rows", "matrix"]
    if bias is not None:
        tensors.append(numpy_helper.from_array(bias, "bias"))
        names.append("bias")
    options: dict[str, Any] = {} if bias is None else {"transB": int(transposed)}
    kind = "MatMul" if bias is None else "Gemm"
    rows, product = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", size])
        for name, size in (("rows", matrix.shape[0]), ("product", matrix.shape[1]))
    )
    node = helper.make_node(kind, names, ["product"], **options)
    graph = helper.make_graph([node], "product", [rows], [product], tensors)
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()  # type: ignore[no-any-return]


def product(graph: bytes, rows: Array) -> Array:
    return _Graph("product", graph).run({"rows": rows})["product"]


@settings(max_examples=20)
@given(
    st.integers(0, 999),
    st.integers(1, 9),
    st.booleans(),
    st.booleans(),
    st.sampled_from([1e-3, 1.0, 100.0]),
)
def test_a_product_is_that_of_rounded_factors(
    seed: int, n_rows: int, with_bias: bool, transposed: bool, size: float
) -> None:
    random = np.random.default_rng(seed)
    matrix = random.normal(size=(INPUTS, OUTPUTS)).astype(np.float32)
    rows = (random.normal(size=(n_rows, INPUTS)) * size).astype(np.float32)
    rows[0] *= 1000  # its scale is not that of the others
    bias = random.normal(size=OUTPUTS).astype(np.float32) if with_bias else None
    graph = to_int8(graph_of(matrix, bias, transposed and with_bias))
    assert not {"MatMul", "Gemm"} & {
        node.op_type for node in onnx.load_from_string(graph).graph.node
    }
    s_rows = np.abs(rows).max(1, keepdims=True) / 127
    s_columns = np.abs(matrix).max(0) / 127
    expected = (np.round(rows / s_rows) @ np.round(matrix / s_columns)) * s_rows * s_columns
    expected += 0 if bias is None else bias
    # A number in the middle between two integers may be rounded to either of them.
    atol = s_rows * np.abs(matrix).max() * 2
    found = product(graph, rows)
    assert (np.abs(found - expected) <= atol + 1e-5 * np.abs(expected)).all()
    exact = rows @ matrix + (0 if bias is None else bias)
    assert (
        np.abs(found - exact) <= 0.03 * np.abs(rows).max(1, keepdims=True) * INPUTS**0.5 * 3
    ).all()


@given(st.integers(0, 999))
def test_a_row_is_the_same_alone_and_in_a_batch(seed: int) -> None:
    random = np.random.default_rng(seed)
    matrix = random.normal(size=(INPUTS, OUTPUTS)).astype(np.float32)
    rows = (random.normal(size=(50, INPUTS)) * random.exponential(size=(50, 1))).astype(np.float32)
    graph = to_int8(graph_of(matrix))
    together = product(graph, rows)
    for row in range(0, 50, 7):
        np.testing.assert_array_equal(product(graph, rows[row : row + 1])[0], together[row])
    np.testing.assert_array_equal(product(graph, rows[3:20]), together[3:20])


def test_rows_and_columns_of_zeros_stay() -> None:
    graph = to_int8(graph_of(np.zeros((INPUTS, OUTPUTS), np.float32), np.ones(OUTPUTS, np.float32)))
    np.testing.assert_array_equal(
        product(graph, np.zeros((2, INPUTS), np.float32)), np.ones((2, OUTPUTS))
    )


@pytest.mark.parametrize("shape", [(MIN_SIDE - 1, 200), (200, MIN_SIDE - 1)])
def test_small_matrices_stay_in_float32(shape: tuple[int, int]) -> None:
    graph = to_int8(graph_of(np.ones(shape, np.float32)))
    assert [node.op_type for node in onnx.load_from_string(graph).graph.node] == ["MatMul"]


def test_products_are_exact_on_this_processor() -> None:
    assert computes_exactly(check_graph())


def test_a_wrong_product_is_noticed() -> None:
    """As on a processor whose sums saturate."""
    check = onnx.load_from_string(check_graph())
    (exact,) = [tensor for tensor in check.graph.initializer if tensor.name == "exact"]
    saturated = numpy_helper.to_array(exact).clip(-(1 << 15), (1 << 15) - 1)
    exact.CopyFrom(numpy_helper.from_array(saturated, "exact"))
    assert not computes_exactly(check.SerializeToString())


# --- Whole models

SYSTEMS: dict[str, dict[str, Any]] = {
    "luong": {"decoder": {"input_feeding": True, "layers": 2}, "lexical_bias": 2},
    "bahdanau": {
        "decoder": {"kind": "bahdanau", "readout": "maxout", "cell": "gru"},
        "attention": {"kind": "coverage", "score": "additive"},
    },
    "conditional": {"decoder": {"kind": "conditional", "readout": "deep", "cell": "gru"}},
    "gnmt": {"decoder": {"kind": "gnmt", "layers": 2}},
}


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_model_gives_nearly_the_same_whatever_the_batch(system: str) -> None:
    torch.manual_seed(1)
    sections = SYSTEMS[system]
    sizes = {"embedding_size": 64, "encoder": {"hidden_size": 32}}
    decoder = {"hidden_size": 64, **sections.get("decoder", {})}
    config = ModelConfig.model_validate({**sizes, **sections, "decoder": decoder})
    seq2seq = Seq2Seq(config, 100, 300).eval()
    model, random = onnx_model(seq2seq, "int8"), np.random.default_rng(1)
    sources, targets = (
        [random.integers(4, n, size=length).tolist() for length in random.integers(1, 12, size=9)]
        for n in (100, 300)
    )
    assert model.precision == "int8"
    together = score_batch(model, sources, targets)
    for one, other in zip(
        together, score_batch(TorchModel(seq2seq), sources, targets), strict=True
    ):
        assert one == pytest.approx(other, abs=0.05)
        assert one != pytest.approx(other, abs=1e-5)
    options = DecodingConfig(beam=3)
    for source, target, scored, (best,) in zip(
        sources, targets, together, search(model, sources, options), strict=True
    ):
        (log_probs,) = score_batch(model, [source], [target])
        assert log_probs == pytest.approx(scored, abs=1e-6)
        ((alone,),) = search(model, [source], options)
        assert alone.ids == best.ids
        assert alone.score == pytest.approx(best.score, abs=1e-6)
