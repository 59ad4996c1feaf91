"""Graphs as programs for the page, and weights in fewer bytes."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from nmt.errors import ConfigError
from nmt.extras.export.graphs import export_graphs
from nmt.extras.export.program import to_program
from nmt.extras.export.storage import compact, shrink
from tests.extras.export.test_command import CASES, build_model


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("graphs")
    model = build_model(**CASES["luong lstm, lexical bias of words"], embedding_size=500)
    export_graphs(model, folder / "encoder.onnx", folder / "step.onnx")
    return folder / "encoder.onnx", folder / "step.onnx"


def test_quantization() -> None:
    weights = np.random.default_rng(1).normal(size=(2, 5, 40)).astype(np.float32)
    weights[1, 2] = 0
    weights[0, 1] *= 1000
    integers, scales = compact(weights)
    assert scales is not None
    assert (integers.dtype, scales.dtype, scales.shape) == (np.int8, np.float32, (2, 5, 1))
    assert (np.abs(integers * scales - weights) <= 0.5001 * scales).all()
    assert integers.max() == -integers.min() == 127


def test_programs(graphs: tuple[Path, Path]) -> None:
    encoder, step = map(onnx.load, graphs)
    program, data = to_program(encoder, "float32")
    assert program["inputs"] == ["src", "src_lengths"]
    assert "logits" not in program["outputs"]
    assert len(to_program(encoder, "int8")[1]) < 0.3 * len(data)
    program, _ = to_program(step, "int8")
    (topk,) = (node for node in program["nodes"] if "best_ids" in node[2])
    assert program["outputs"][-1] == "logits"
    assert ("Identity", topk[1][:1], ["logits"], {}) in program["nodes"]


def test_an_operator_that_it_lacks() -> None:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Sinh", ["x"], ["y"])], "graph", [x], [y])
    with pytest.raises(ConfigError, match=r"^Sinh: a page cannot compute this operator of the"):
        to_program(helper.make_model(graph), "int8")


def test_a_shrunk_graph_gives_nearly_the_same(graphs: tuple[Path, Path], tmp_path: Path) -> None:
    given = {"src": np.array([[4, 5, 6, 7, 1], [9, 1, 0, 0, 0]]), "src_lengths": np.array([5, 2])}
    small = tmp_path / "encoder.onnx"
    small.write_bytes(graphs[0].read_bytes())
    shrink(small)
    assert small.stat().st_size < 0.5 * graphs[0].stat().st_size
    expected, outputs = (
        np.concatenate([np.ravel(output) for output in session.run(None, given)])  # type: ignore[arg-type]
        for session in map(onnxruntime.InferenceSession, (graphs[0], small))
    )
    np.testing.assert_allclose(outputs, expected, atol=0.1)
    assert (outputs != expected).any()
