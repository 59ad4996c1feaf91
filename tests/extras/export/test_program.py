"""Graphs as programs for the page, and weights in fewer bytes."""

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from nmt.config.parts import ATTENTIONS, BRIDGES, CELLS, DECODERS, OUTPUTS, READOUTS, SCORES
from nmt.config.schema import ModelConfig
from nmt.errors import ConfigError
from nmt.extras.export.program import to_program
from nmt.extras.export.store import Store, compact
from nmt.model.graphs import make_graphs
from tests.extras.export.models import CASES, build_model


def test_the_cases_have_all_parts() -> None:
    defaults = ModelConfig()

    def used(section: str, key: str) -> set[Any]:
        return {
            case.get(section, {}).get(key, getattr(getattr(defaults, section), key))
            for case in CASES.values()
        }

    assert used("encoder", "cell") == used("decoder", "cell") == {*CELLS}
    assert used("attention", "score") == {*SCORES}
    assert used("attention", "kind") == {*ATTENTIONS}
    assert (used("decoder", "kind"), used("decoder", "readout")) == ({*DECODERS}, {*READOUTS})
    assert {case.get("bridge", defaults.bridge) for case in CASES.values()} == {*BRIDGES}
    assert {case.get("output", defaults.output) for case in CASES.values()} == {*OUTPUTS}


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
    files = make_graphs(
        build_model(**CASES["luong lstm, lexical bias of words"], embedding_size=500)
    )
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
