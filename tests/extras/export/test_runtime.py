"""The runtime in headless Chromium computes what onnxruntime computes, for all kinds of models."""

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import onnxruntime
import pytest

pytest.importorskip("playwright", reason="needs playwright")

from playwright.sync_api import Browser, Page

from nmt.extras.export.program import OPERATORS, to_program
from nmt.extras.export.store import Store
from nmt.extras.export.web_page import UNUSED, constants, lexicon_tensors
from nmt.extras.page.files import FOLDER, read
from nmt.model.graphs import make_graphs
from nmt.model.lexicon import LEXICON, Lexicon
from nmt.text.vocabulary import EOS
from tests.extras.analysis.test_html import needs_chromium
from tests.model.test_graphs import each_system, models
from tests.model.test_lexical_bias import TGT_V

Arrays = dict[str, Any]
SOURCES = [[4, 5, 6, 7, 8, 9], [9], [4, 4, 10]]
BEAM = 4
SCRIPT = """
const toBuffer = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer;
const toArray = ([type, _, text]) => new globalThis[type](toBuffer(text));
const toTensor = (sent) => ({ data: toArray(sent), dims: sent[1] });
const toSent = ({ data, dims }) =>
  [data.constructor.name, dims, btoa(String.fromCharCode(...new Uint8Array(data.slice().buffer)))];
const map = (all, change) =>
  Object.fromEntries(Object.entries(all).map(([name, value]) => [name, change(value)]));
const widen = ({ data, dims, scales }) => {
  const scaled = (value, i) => value * scales[Math.floor(i / dims.at(-1))];
  return { data: scales ? Float32Array.from(data, scaled) : data, dims };
};
const run = (program, weights, given, isWide) => {
  const graph = new Graph(program, toBuffer(weights));
  if (isWide) graph.constants = map(graph.constants, widen);
  return map(graph.run(map(given, toTensor)), toSent);
};
"""


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    page = browser.new_page()
    page.add_script_tag(content=constants())
    for name in ("kernel.js", "operators.js", "lexicon.js", "search.js"):
        page.add_script_tag(path=FOLDER / name)
    page.add_script_tag(content=SCRIPT)
    assert {*page.evaluate("Object.keys(OPERATORS)")} == OPERATORS
    yield page
    page.close()


def ask(page: Page, function: str, *arguments: Any) -> Any:
    """What a function of the page returns, as texts of JSON: playwright's own way is slow."""
    code = f"(sent) => JSON.stringify(({function})(...JSON.parse(sent)))"
    return json.loads(page.evaluate(code, json.dumps(arguments)))


def to_sent(array: Any) -> tuple[str, tuple[int, ...], str]:
    array = array.astype(np.float32) if array.dtype.name in ("int64", "bool") else array
    return (
        f"{array.dtype.name.title()}Array",
        array.shape,
        base64.b64encode(array.tobytes()).decode(),
    )


def run(
    page: Page, program: Any, weights: bytearray, given: Arrays, is_wide: bool = False
) -> Arrays:
    """Outputs of the program. is_wide: with the same weights in float32."""
    sent = {name: to_sent(array) for name, array in given.items()}
    outputs = ask(page, "run", program, base64.b64encode(weights).decode(), sent, is_wide)
    return {name: to_array(sent) for name, sent in outputs.items()}


def to_array(sent: Sequence[Any]) -> Any:
    kind, dims, text = sent
    kind = kind.removesuffix("Array").lower()
    return np.frombuffer(base64.b64decode(text), kind).reshape(dims)


def runs(files: Mapping[str, bytes], source: Sequence[int]) -> Iterator[tuple[str, Arrays, Arrays]]:
    """What onnxruntime makes of a sentence, and of 4 hypotheses in three steps."""
    names = ("encoder.onnx", "step.onnx", "output.onnx")
    sessions = {name: onnxruntime.InferenceSession(files[name]) for name in names}

    def compute(name: str, all_given: Arrays) -> tuple[str, Arrays, Arrays]:
        given = {item.name: all_given[item.name] for item in sessions[name].get_inputs()}
        names = [item.name for item in sessions[name].get_outputs()]
        return name, given, dict(zip(names, sessions[name].run(None, given), strict=True))

    src = np.array([[*source, EOS]])
    encoded = compute("encoder.onnx", {"src": src, "src_lengths": np.array([src.size])})
    yield encoded
    tensors = {
        name: array.repeat(BEAM, 0) if name.startswith("state.") else array
        for name, array in encoded[2].items()
    }
    if LEXICON in files:
        ids, tensors["memory.translations"] = Lexicon.of_bytes(files[LEXICON]).look_up([source])
        tensors["bias_ids"] = ids.repeat(BEAM, 0)
    for position in range(3):
        ids = (np.arange(BEAM) * 5 + position) % TGT_V
        step = compute("step.onnx", {**tensors, "ids": ids, "position": np.array(position)})
        yield step
        yield compute("output.onnx", {**tensors, **step[2], "k": np.array(1)})
        tensors |= {name.replace("next.", "state."): array for name, array in step[2].items()}


def check(outputs: Arrays, expected: Arrays, tolerance: float) -> None:
    for name, array in expected.items():
        if name in UNUSED:
            continue
        assert (name, outputs[name].shape) == (name, array.shape)
        bound = tolerance * np.abs(array[np.isfinite(array)]).max(initial=0)
        np.testing.assert_allclose(outputs[name], array, rtol=0, atol=bound, err_msg=name)


@pytest.mark.slow
@needs_chromium
@each_system
def test_models(page: Page, system: str) -> None:
    files = make_graphs(models(system)[0])
    for name, given, expected in chain.from_iterable(runs(files, source) for source in SOURCES):
        exact, small = Store("float32"), Store("int8")
        program = to_program(files[name], exact, UNUSED)
        check(run(page, program, exact.data, given), expected, 1e-4)
        program = to_program(files[name], small, UNUSED)
        outputs = run(page, program, small.data, given)
        check(outputs, run(page, program, small.data, given, is_wide=True), 1e-3)


@pytest.mark.slow
@needs_chromium
def test_the_lexicon(page: Page) -> None:
    """For each word the translations that Python finds; their order may differ."""
    for system in ("lexical bias", "lexical bias, words, coverage"):
        lexicon = models(system)[2].lexicon
        assert lexicon is not None
        store = Store("float32")
        code = """(tables, data, src) => {
          const lexicon = new Lexicon(tensorsOf(tables, toBuffer(data)));
          return Object.values(map(lexicon.lookUp(src), toSent));
        }"""
        data = lexicon_tensors(lexicon, store), base64.b64encode(store.data).decode()
        for source in SOURCES:
            found = map(to_array, ask(page, code, *data, [*source, EOS]))
            tables = [
                [{(index, p) for index, p in zip(ids, token, strict=True) if p} for token in table]
                for (ids,), (table,) in (found, lexicon.look_up([source]))
            ]
            assert tables[0] == tables[1]
            assert any(tables[0])


@pytest.mark.slow
@needs_chromium
@pytest.mark.parametrize("columns", [1, 31, 3000])
def test_products_of_the_largest_values(page: Page, columns: int) -> None:
    """Of 3000, with 15 bits the sums would not fit into int32."""
    integers = np.full((7, columns), 127, np.int8)
    integers[1::2, ::2] = -127
    scales, bias = np.arange(1, 8, dtype=np.float32) / 1000, np.arange(7, dtype=np.float32)
    x = np.ones((5, columns), np.float32) * np.array([[3], [-2], [0], [1e-9], [1e9]], np.float32)
    code = """(dims, ...arrays) => {
      const [data, scales, bias, x] = arrays.map(toArray);
      return Array.from(new Matrix({ data, scales, dims }, bias).multiply(x, 5));
    }"""
    outputs = ask(page, code, [7, columns], *map(to_sent, (integers, scales, bias, x)))
    expected = x @ (integers.T.astype(np.float64) * scales) + bias
    bound = 1e-4 * np.abs(x) @ np.abs(integers.T * scales) + 1e-5
    assert (np.abs(np.reshape(outputs, (5, 7)) - expected) <= bound).all()


def test_the_kernel_is_compiled() -> None:
    wasmtime = pytest.importorskip("wasmtime", reason="needs wasmtime")
    compiled = bytes(wasmtime.wat2wasm(read("kernel.wat")))
    without_names = compiled[: compiled.index(b"\x04name") - 3]
    assert (FOLDER / "kernel.wasm").read_bytes() == without_names
