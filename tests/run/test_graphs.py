"""The graphs of a checkpoint: made once, made again after the weights changed, and damaged ones."""

import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from safetensors.numpy import load_file, save_file

from nmt.decoding.onnx_model import CHECK, OnnxModel
from nmt.decoding.torch_model import TorchModel
from nmt.errors import NmtWarning
from nmt.files import read_json, record_checksums, sha256_of, write_json
from nmt.model.lexicon import LEXICON
from nmt.run import graphs as module
from nmt.run.folder import find_checkpoint
from nmt.run.graphs import graphs_folder, load_graphs, weights_digest
from nmt.run.load import load_translator
from tests.conftest import Run
from tests.decoding.test_torch_model import NumpyReadout

Edit = Callable[[Path], object]
SENTENCE = "The dog sees the tree."
ONCE = "makes the graphs that translating needs"
NAMES = ("encoder.onnx", "step.onnx", "output.onnx", CHECK)


@pytest.fixture
def bare(run: Path) -> Path:
    """A run without graphs."""
    shutil.rmtree(graphs_folder(find_checkpoint(run), "int8"))
    return run


@pytest.fixture
def graphs(run: Path) -> Path:
    """The folder of the graphs."""
    return graphs_folder(find_checkpoint(run), "int8")


def times(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}


def test_graphs_are_made_once(nmt: Run, folder: Path, bare: Path) -> None:
    words = ["translate", "--run", bare, SENTENCE]
    expected = nmt.prints("translate", "--run", folder / "run", SENTENCE)
    first = nmt(*words)
    checkpoint = find_checkpoint(bare)
    assert (first.status, first.out) == (0, expected)
    assert first.err == f"nmt: warning: {checkpoint}: {ONCE}\n"
    before = times(graphs_folder(checkpoint, "int8"))
    assert before.keys() == {*NAMES, "graphs.json"}
    assert nmt.prints(*words) == expected
    precision = ["--set", "decoding.precision=float32"]
    assert nmt(*words, *precision).err.count(ONCE) == 1
    assert nmt.prints(*words, *precision) == expected
    assert times(graphs_folder(checkpoint, "int8")) == before


def test_graphs_of_other_weights_are_made_again(run: Path) -> None:
    checkpoint = find_checkpoint(run)
    before, digest = load_graphs(run, checkpoint, "int8"), weights_digest(checkpoint)
    path = checkpoint / "model.safetensors"
    tensors = load_file(path)
    tensors["output.logits.bias"] = tensors["output.logits.bias"][::-1].copy()
    save_file(tensors, path)
    record_checksums(checkpoint, {path.name: sha256_of(path)})
    assert weights_digest(checkpoint) != digest
    with pytest.warns(NmtWarning, match=ONCE):
        after = load_graphs(run, checkpoint, "int8")
    numbers = []
    for model in (before, after, load_graphs(run, checkpoint, "int8")):
        memory, state = model.encode([[4, 5]])
        numbers.append(model.log_probs(model.step(np.array([2]), state, memory).vectors))
    assert not np.allclose(numbers[0], numbers[1], atol=1e-3)
    np.testing.assert_array_equal(numbers[1], numbers[2])


def test_a_run_that_cannot_be_written_has_graphs_in_memory(
    nmt: Run, folder: Path, bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> None:
        raise OSError(30, "Read-only file system", str(path))

    monkeypatch.setattr(module, "new_folder", refuse)
    expected = nmt.prints("translate", "--run", folder / "run", SENTENCE)
    for _ in range(2):
        found = nmt("translate", "--run", bare, SENTENCE)
        assert (found.status, found.out, found.err.count("\n")) == (0, expected, 1)
        assert ONCE in found.err
    assert not [*bare.rglob("*.onnx")]


def test_another_vocabulary_is_noticed(nmt: Run, run: Path) -> None:
    for path in run.rglob("checksums.json"):
        path.unlink()
    with (run / "tgt.vocab.txt").open("a", encoding="utf-8") as file:
        file.write("Katze\t1\n")
    text = f"{find_checkpoint(run)}: its graphs do not fit the vocabularies of the run"
    nmt.refuses(text, "translate", "--run", run, SENTENCE)


def test_a_run_without_weights_translates(nmt: Run, folder: Path, run: Path) -> None:
    expected = nmt.prints("translate", "--run", folder / "run", SENTENCE)
    checkpoint = find_checkpoint(run)
    digest = weights_digest(checkpoint)
    (checkpoint / "model.safetensors").unlink()
    assert weights_digest(checkpoint) == digest
    for path in (run, checkpoint):
        assert nmt.prints("translate", "--run", path, SENTENCE) == expected
    text = (
        f"{checkpoint}: has neither weights nor graphs for decoding.precision=float32; copy or "
        "export the run again, or set another precision"
    )
    nmt.refuses(text, "translate", "--run", run, "--set", "decoding.precision=float32", SENTENCE)
    shutil.rmtree(graphs_folder(checkpoint, "int8"))
    nmt.refuses("has neither weights nor graphs", "translate", "--run", run, SENTENCE)
    assert weights_digest(checkpoint) == ""


@pytest.mark.filterwarnings("error")
def test_a_processor_whose_sums_overflow_computes_in_float32(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As x86 without VNNI does in onnxruntime."""
    checkpoint = find_checkpoint(run)
    module.make_graphs(run, checkpoint, "float32")
    expected = OnnxModel(
        {name: (graphs_folder(checkpoint, "float32") / name).read_bytes() for name in NAMES[:3]}
    )
    monkeypatch.setattr(module, "computes_exactly", lambda check: not check)
    for function in (load_graphs, module.make_graphs):
        with pytest.warns(NmtWarning, match="computes in float32: on this processor") as found:
            model = function(run, checkpoint, "int8")
        assert len(found) == 1
        assert isinstance(model, OnnxModel)
        memory, state = model.encode([[4, 5]])
        vectors = model.step(np.array([2]), state, memory).vectors
        np.testing.assert_array_equal(model.log_probs(vectors), expected.log_probs(vectors))


def test_a_part_that_graphs_cannot_express_is_computed_by_torch(
    nmt: Run, folder: Path, bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["--n-best", 3, "--set", "decoding.precision=float32", SENTENCE]
    expected = nmt("translate", "--run", folder / "run", *words).out
    monkeypatch.setattr("nmt.model.decoder.AttentionalReadout", NumpyReadout)
    assert nmt("translate", "--run", bare, *words).out == expected
    model = load_translator(bare).model
    assert isinstance(model, TorchModel)
    assert isinstance(model.model.decoder.readout, NumpyReadout)
    assert not [*bare.rglob("*.onnx")]


# --- Damaged graphs, and those of a stranger; tests/test_security.py has links and pipes


def forged(change: Edit, name: str) -> Edit:
    """With the checksums of the changed file."""

    def edit(folder: Path) -> None:
        change(folder / name)
        summary = read_json(folder / "graphs.json")
        summary["sha256"][name] = sha256_of(folder / name)
        write_json(folder / "graphs.json", summary)

    return edit


def summary_with(**values: Any) -> Edit:
    def edit(folder: Path) -> None:
        write_json(folder / "graphs.json", {**read_json(folder / "graphs.json"), **values})

    return edit


def with_entry(name: str, folder: Path) -> None:
    digests = read_json(folder / "graphs.json")["sha256"]
    summary_with(sha256={**digests, name: digests["step.onnx"]})(folder)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


def truncate_file(name: str, folder: Path) -> None:
    truncate(folder / name)


def with_tensor(path: Path, location: str = "") -> None:
    """A tensor of 4 TB, or one in another file."""
    model = onnx.load(path)
    del model.graph.node[:], model.graph.initializer[:]
    tensor = model.graph.initializer.add(name="w", data_type=onnx.TensorProto.FLOAT)
    tensor.dims.extend([9] if location else [10**6, 10**6])
    if location:
        tensor.data_location = onnx.TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=location)
    path.write_bytes(model.SerializeToString())


CHANGED = "damaged, its content has changed since nmt wrote it; delete the folder graphs-int8"
SUMMARY = "graphs.json: damaged; delete its folder, and nmt makes it again"
HOSTILE: dict[str, tuple[Edit, str]] = {
    **{f"truncated {name}": (partial(truncate_file, name), CHANGED) for name in NAMES},
    "no graph": (
        lambda folder: (folder / "step.onnx").unlink(),
        "step.onnx: cannot be read (No such file or directory); delete the folder graphs-int8",
    ),
    "huge graph": (lambda folder: os.truncate(folder / "step.onnx", 10**10), CHANGED),
    "no content": (lambda folder: (folder / "graphs.json").write_bytes(b""), SUMMARY),
    "nested": (lambda folder: (folder / "graphs.json").write_text("[" * 100_000), SUMMARY),
    "edited": (
        lambda folder: (folder / "graphs.json").write_bytes(
            (folder / "graphs.json").read_bytes().replace(b'"sha256"', b'"sha255"')
        ),
        SUMMARY,
    ),
    "list": (summary_with(sha256=["step.onnx"]), SUMMARY),
    "no names": (summary_with(sha256={}), SUMMARY),
    "no digest": (summary_with(model=None), SUMMARY),
    "path": (partial(with_entry, "../model.safetensors"), SUMMARY),
    "absolute path": (partial(with_entry, "/etc/passwd"), SUMMARY),
    "forged graph": (forged(truncate, "step.onnx"), "step.onnx: cannot be loaded ("),
    "forged check": (forged(truncate, CHECK), f"{CHECK}: cannot be loaded ("),
    "other graph": (
        forged(lambda path: shutil.copy(path.with_name("output.onnx"), path), "step.onnx"),
        "step.onnx: does not fit the other files of the run (",
    ),
    "lexicon": (
        forged(lambda path: path.write_bytes(b"\xff" * 40), LEXICON),
        f"{LEXICON}: cannot be loaded (",
    ),
    "huge tensor": (forged(with_tensor, "step.onnx"), "step.onnx: cannot be loaded ("),
    "tensor of a file": (
        forged(partial(with_tensor, location="/etc/passwd"), "step.onnx"),
        CHANGED,
    ),
}


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize(("edit", "text"), HOSTILE.values(), ids=HOSTILE)
def test_graphs_from_a_stranger(nmt: Run, run: Path, graphs: Path, edit: Edit, text: str) -> None:
    edit(graphs)
    result = nmt("translate", "--run", run, SENTENCE)
    assert (result.status, result.out, result.err.count("\n")) == (1, "", 1)
    assert text in result.err
