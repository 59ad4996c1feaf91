"""Graphs as programs for the page, and weights in fewer bytes."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from nmt.errors import ConfigError
from nmt.extras.export.program import to_program
from nmt.extras.export.store import Store, compact


def test_quantization() -> None:
    weights = np.random.default_rng(1).normal(size=(2, 5, 40)).astype(np.float32)
    weights[1, 2] = 0
    weights[0, 1] *= 1000
    integers, scales = compact(weights)
    assert scales is not None
    assert (integers.dtype, scales.dtype, scales.shape) == (np.int8, np.float32, (2, 5, 1))
    assert (np.abs(integers * scales - weights) <= 0.5001 * scales).all()
    assert integers.max() == -integers.min() == 127


def test_an_operator_that_it_lacks() -> None:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Sinh", ["x"], ["y"])], "graph", [x], [y])
    with pytest.raises(ConfigError, match=r"^Sinh: a page cannot compute this operator of the"):
        to_program(helper.make_model(graph).SerializeToString(), Store("int8"))
