"""Graphs in search, and what is wrong with damaged ones. tests/model compares them with torch."""

from collections.abc import Callable
from functools import cache
from unittest.mock import Mock

import numpy as np
import onnx
import pytest

from nmt.config.schema import DecodingConfig
from nmt.decoding import onnx_model as module
from nmt.decoding.onnx_model import OnnxModel
from nmt.decoding.search import search
from nmt.decoding.torch_model import graphs_of
from nmt.errors import CheckpointError, NonFiniteError
from nmt.model.lexicon import LEXICON, Lexicon
from tests.model.test_graphs import SOURCES, models


@cache
def made() -> dict[str, bytes]:
    files = graphs_of(models("lexical bias, words, coverage")[0], "float32")
    assert files is not None
    return files


def test_parts_of_a_batch_are_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """The output layer takes some rows at a time."""
    model, options = OnnxModel(made()), DecodingConfig(beam=4)
    whole = search(model, SOURCES, options, n_best=4)
    monkeypatch.setattr(module, "CHUNK_ROWS", 3)
    for best, expected in zip(search(model, SOURCES, options, n_best=4), whole, strict=True):
        assert [each.ids for each in best] == [each.ids for each in expected]
        assert [each.score for each in best] == pytest.approx([each.score for each in expected])


@pytest.mark.parametrize(
    "text", ["bad allocation", "bfc_arena.cc:360 AllocateRawInternal Failed to allocate memory"]
)
def test_a_lack_of_memory_is_told_from_other_errors(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, refuse = OnnxModel(made()), Mock(side_effect=RuntimeError(text))
    model.encoder.session = Mock(run=refuse)
    with pytest.raises(MemoryError):
        model.encode([[4]])
    monkeypatch.setattr("onnxruntime.InferenceSession", refuse)
    with pytest.raises(MemoryError):
        OnnxModel(made())


Edit = Callable[[dict[str, bytes]], object]


def without_nodes(files: dict[str, bytes]) -> None:
    """A graph that names what it does not make."""
    graph = onnx.load_from_string(files["step.onnx"])
    del graph.graph.node[:]
    files["step.onnx"] = graph.SerializeToString()


def with_infinite_weights(files: dict[str, bytes]) -> None:
    graph = onnx.load_from_string(files["output.onnx"])
    for tensor in graph.graph.initializer:
        numbers = onnx.numpy_helper.to_array(tensor)
        tensor.CopyFrom(onnx.numpy_helper.from_array(numbers * np.float32(np.nan), tensor.name))
    files["output.onnx"] = graph.SerializeToString()


def with_lexicon(**arrays: np.ndarray) -> Edit:
    def edit(files: dict[str, bytes]) -> None:
        lexicon = Lexicon.of_bytes(files[LEXICON])
        vars(lexicon).update(arrays)
        files[LEXICON] = lexicon.to_bytes()

    return edit


DAMAGED: dict[str, tuple[Edit, str]] = {
    "truncated": (
        lambda files: files.update({"encoder.onnx": files["encoder.onnx"][:-9]}),
        r"^encoder\.onnx: cannot be loaded \(",
    ),
    "nothing": (lambda files: files.update({"step.onnx": b""}), r"^step\.onnx: cannot be loaded"),
    "other": (
        lambda files: files.update({"step.onnx": files["output.onnx"]}),
        r"^step\.onnx: does not fit the other files",
    ),
    "no nodes": (without_nodes, r"^step\.onnx: cannot be loaded \("),
    "no lexicon": (
        lambda files: files.update({LEXICON: b"\xff" * 40}),
        r"^lexicon\.safetensors: cannot be loaded \(",
    ),
    "other lexicon": (
        with_lexicon(ids=np.zeros((3, 2), np.int32)),
        r"^lexicon\.safetensors: cannot be loaded \(its numbers",
    ),
    "long tokens": (
        with_lexicon(lengths=np.full(12, 1 << 40)),
        r"^lexicon\.safetensors: cannot be loaded \(its numbers",
    ),
    "other words": (
        with_lexicon(ids=np.full((16, 3), 1 << 20, np.int32)),
        r"^output\.onnx: does not fit the other files of the run \(.*out of data bounds",
    ),
}


@pytest.mark.parametrize(("edit", "text"), DAMAGED.values(), ids=DAMAGED)
def test_damaged_files_are_one_line(edit: Edit, text: str) -> None:
    files = dict(made())
    edit(files)
    with pytest.raises(CheckpointError, match=text) as error:
        search(OnnxModel(files), SOURCES, DecodingConfig())
    assert "\n" not in str(error.value)


def test_numbers_that_are_not_finite_are_an_error() -> None:
    files = dict(made())
    with_infinite_weights(files)
    with pytest.raises(NonFiniteError, match="the model's logits are not finite"):
        search(OnnxModel(files), SOURCES, DecodingConfig())
