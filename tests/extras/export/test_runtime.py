"""The runtime in headless Chromium computes what onnxruntime computes, for all kinds of models."""

import base64
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

pytest.importorskip("playwright", reason="needs playwright")

from playwright.sync_api import Browser, Page

from nmt.extras.export.graphs import export_graphs
from nmt.extras.export.program import OPERATORS, RUNTIME, to_program
from tests.extras.analysis.test_html import needs_chromium
from tests.extras.export.test_command import CASES, TGT_V, build_model

Arrays = dict[str, Any]
SRC = np.array([[4, 5, 6, 7, 8, 9, 1], [9, 1, 0, 0, 0, 0, 0], [4, 4, 10, 1, 0, 0, 0]])
BEAM = 4
SCRIPT = """
const TYPES = { float32: Float32Array, int64: BigInt64Array, bool: Uint8Array, int8: Int8Array };
const toArray = ([type, _, values]) => TYPES[type].from(values, type === "int64" ? BigInt : Number);
const toTensor = (sent) => new Tensor(toArray(sent), sent[1]);
const toList = ({ data, dims }) => [Array.from(data, Number), dims];
const map = (all, change) =>
  Object.fromEntries(Object.entries(all).map(([name, value]) => [name, change(value)]));
const run = ([program, weights, given]) =>
  map(new Graph(program, new Uint8Array(weights).buffer).run(map(given, toTensor)), toList);
"""


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    page = browser.new_page()
    page.add_script_tag(path=RUNTIME)
    page.add_script_tag(content=SCRIPT)
    page.evaluate("startKernel()")
    assert {*page.evaluate("Object.keys(OPERATORS)")} == OPERATORS
    yield page
    page.close()


def to_sent(array: Any) -> tuple[str, tuple[int, ...], list[Any]]:
    return array.dtype.name, array.shape, array.flatten().tolist()


def run(page: Page, program: dict[str, Any], weights: bytes, given: Arrays) -> Arrays:
    sent = {name: to_sent(array) for name, array in given.items()}
    outputs = page.evaluate("run", [program, [*weights], sent])
    return {name: np.array(values).reshape(dims) for name, (values, dims) in outputs.items()}


def runs(folder: Path) -> Iterator[tuple[str, Arrays, Arrays]]:
    """What onnxruntime makes of three sentences, and of 4 hypotheses each in three steps."""
    sessions = {
        name: onnxruntime.InferenceSession(folder / f"{name}.onnx") for name in ("encoder", "step")
    }

    def compute(name: str, all_given: Arrays) -> tuple[str, Arrays, Arrays]:
        given = {item.name: all_given[item.name] for item in sessions[name].get_inputs()}
        names = [item.name for item in sessions[name].get_outputs()]
        return name, given, dict(zip(names, sessions[name].run(None, given), strict=True))

    encoded = compute("encoder", {"src": SRC, "src_lengths": np.array([7, 2, 4])})
    yield encoded
    tensors = {
        name: array.repeat(BEAM, 0) if name.startswith("state.") else array
        for name, array in encoded[2].items()
    }
    for position, k in enumerate((3, TGT_V, 2)):
        ids = (np.arange(len(SRC) * BEAM) * 5 + position) % TGT_V
        rows = np.arange(len(ids))[position:]  # words are not wanted for all
        tensors |= {"ids": ids, "rows": rows, "k": np.array(k), "position": np.array(position)}
        step = compute("step", tensors)
        yield step
        tensors |= {name.replace("next.", "state."): array for name, array in step[2].items()}


def check(outputs: Arrays, expected: Arrays, tolerance: float) -> None:
    for name, array in expected.items():
        assert (name, outputs[name].shape) == (name, array.shape)
        bound = tolerance * np.abs(array[np.isfinite(array)]).max(initial=0)
        np.testing.assert_allclose(outputs[name], array, rtol=0, atol=bound, err_msg=name)


def dequantized(program: dict[str, Any], data: bytes) -> tuple[dict[str, Any], bytes]:
    """The program with the same weights in float32."""
    tensors = dict(program["tensors"])
    for name, entry in tensors.items():
        if entry["type"] == "int8":
            dims, size = entry["dims"], int(np.prod(entry["dims"]))
            integers = np.frombuffer(data, np.int8, size, entry["at"]).reshape(dims)
            scales = np.frombuffer(data, np.float32, size // dims[-1], entry["scales"])
            data += bytes(-len(data) % 8)
            tensors[name] = {"type": "float32", "dims": dims, "at": len(data)}
            data += (integers * scales.reshape(*dims[:-1], 1)).tobytes()
    return {**program, "tensors": tensors}, data


@pytest.mark.slow
@needs_chromium
@pytest.mark.parametrize("case", CASES)
def test_models(page: Page, tmp_path: Path, case: str) -> None:
    export_graphs(build_model(**CASES[case]), tmp_path / "encoder.onnx", tmp_path / "step.onnx")
    for name, given, expected in runs(tmp_path):
        model = onnx.load(tmp_path / f"{name}.onnx")
        outputs = run(page, *to_program(model, "float32"), given)
        check(outputs, expected, 1e-4)
        if name == "step":
            ids = outputs["best_ids"].astype(int)
            logits = np.take_along_axis(outputs["logits"], ids, 1)
            np.testing.assert_array_equal(logits, outputs["best_logits"])
        small = to_program(model, "int8")
        check(run(page, *small, given), run(page, *dequantized(*small), given), 1e-3)


@pytest.mark.slow
@needs_chromium
@pytest.mark.parametrize("columns", [1, 31, 3000])
def test_products_of_the_largest_values(page: Page, columns: int) -> None:
    """Of 3000, with 15 bits the sums would not fit into int32."""
    integers = np.full((7, columns), 127, np.int8)
    integers[1::2, ::2] = -127
    scales, bias = np.arange(1, 8, dtype=np.float32) / 1000, np.arange(7, dtype=np.float32)
    x = np.ones((5, columns), np.float32) * np.array([[3], [-2], [0], [1e-9], [1e9]], np.float32)
    code = """([columns, ...arrays]) => {
      const [data, scales, bias, x] = arrays.map(toArray);
      return Array.from(new Matrix({ data, scales, dims: [7, columns] }, bias).multiply(x, 5));
    }"""
    sent = [to_sent(array) for array in (integers, scales, bias, x)]
    outputs = np.array(page.evaluate(code, [columns, *sent])).reshape(5, 7)
    expected = x @ (integers.T.astype(np.float64) * scales) + bias
    bound = 1e-4 * np.abs(x) @ np.abs(integers.T * scales) + 1e-5
    assert (np.abs(outputs - expected) <= bound).all()


def test_the_kernel_is_compiled() -> None:
    wasmtime = pytest.importorskip("wasmtime", reason="needs wasmtime")
    (kernel,) = re.findall(r"^const KERNEL =\n([^;]*);", RUNTIME.read_text(), re.MULTILINE)
    compiled = bytes(wasmtime.wat2wasm(RUNTIME.with_name("kernel.wat").read_text()))
    without_names = compiled[: compiled.index(b"\x04name") - 3]
    assert base64.b64decode("".join(re.findall('"(.*)"', kernel))) == without_names
