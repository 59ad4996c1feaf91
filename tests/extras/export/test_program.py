"""Graphs as programs for the page, and weights in fewer bytes."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from nmt.errors import ConfigError
from nmt.extras.export.program import to_program
from nmt.extras.export.store import Store, compact
from nmt.model.graphs import make_graphs
from nmt.model.seq2seq import Seq2Seq
from tests.model.test_graphs import config_of
from tests.model.test_lexical_bias import SRC_V, TGT_V


def test_quantization() -> None:
    weights = np.random.default_rng(1).normal(size=(2, 5, 40)).astype(np.float32)
    weights[1, 2] = 0
    weights[0, 1] *= 1000
    integers, scales = compact(weights)
    assert scales is not None
    assert (integers.dtype, scales.dtype, scales.shape) == (np.int8, np.float32, (2, 5, 1))
    assert (np.abs(integers * scales - weights) <= 0.5001 * scales).all()
    assert integers.max() == -integers.min() == 127


def test_programs() -> None:
    config = config_of("lexical bias").model_copy(update={"embedding_size": 500})
    files = make_graphs(Seq2Seq(config, SRC_V, TGT_V).eval())
    exact, small = Store("float32"), Store("int8")
    for store in (exact, small):
        program = to_program(files["encoder.onnx"], store)
        assert "memory.values" in program["outputs"]
        assert {tensor["type"] for tensor in program["tensors"].values()} <= {
            "Float32Array",
            "Int32Array",
            "Int8Array",
        }
    assert len(small.data) < 0.3 * len(exact.data)


def test_an_operator_that_it_lacks() -> None:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Sinh", ["x"], ["y"])], "graph", [x], [y])
    with pytest.raises(ConfigError, match=r"^Sinh: a page cannot compute this operator of the"):
        to_program(helper.make_model(graph).SerializeToString(), Store("int8"))
