"""Graphs of ONNX as programs for web/runtime.js: no protocol buffers, and weights in 8 bits."""

import re
from pathlib import Path
from typing import Any, Literal

import numpy as np
import onnx
from onnx import helper, numpy_helper

from nmt.errors import ConfigError
from nmt.extras.export.storage import Array, narrow, quantize

RUNTIME = Path(__file__).with_name("web") / "runtime.js"
OPERATORS = {*re.findall(r"^  ([A-Z]\w+): ", RUNTIME.read_text(encoding="utf-8"), re.MULTILINE)}
# operator -> its inputs that are rows of numbers, which take little room
ROWS = {"Linear": (1,), "LSTM": (1, 2), "GRU": (1, 2), "RNN": (1, 2), "Gather": (0,)}
Weights = Literal["int8", "float32"]


def to_program(model: onnx.ModelProto, weights: Weights) -> tuple[dict[str, Any], bytes]:
    """A graph for the runtime: what becomes JSON, and the bytes of its tensors.

    A product with constant weights becomes the operator `Linear`, which has a row of weights for
    each output. The step of the decoder has one more output: `logits` [N, V].

    Raises:
        ConfigError: the runtime lacks an operator of the graph.
    """
    graph, tensors = model.graph, _Tensors(weights == "int8")
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    outputs = [output.name for output in graph.output]
    nodes = []
    for node in graph.node:
        attributes = {item.name: helper.get_attribute_value(item) for item in node.attribute}
        if node.op_type == "Constant":
            constants[node.output[0]] = numpy_helper.to_array(attributes["value"])
            continue
        operator, inputs = _simplified(node, attributes, constants)
        if operator not in OPERATORS:
            raise ConfigError(f"{operator}: a page cannot compute this operator of the model")
        for i, name in enumerate(inputs):
            if name in constants:
                inputs[i] = tensors.add(name, constants[name], i in ROWS.get(operator, ()))
        nodes.append((operator, inputs, [*node.output], attributes))
        if "best_ids" in node.output:
            nodes.append(("Identity", inputs[:1], ["logits"], {}))
            outputs.append("logits")
    inputs = [given.name for given in graph.input]
    program = {"inputs": inputs, "outputs": outputs, "tensors": tensors.entries, "nodes": nodes}
    return program, bytes(tensors.data)


def _simplified(
    node: onnx.NodeProto, attributes: dict[str, Any], constants: dict[str, Array]
) -> tuple[str, list[str]]:
    """The operator of the runtime and its inputs; changes attributes and adds constants."""
    operator, inputs = node.op_type, [*node.input]
    if operator == "ConstantOfShape":
        operator, inputs = "Expand", [f"{node.output[0]} (value)", *inputs]
        constants[inputs[0]] = numpy_helper.to_array(attributes.pop("value")).reshape(())
    elif operator == "Gemm" or (operator == "MatMul" and inputs[1] in constants):
        operator = "Linear"
        if not attributes.get("transB"):
            name = f"{inputs[1]} (transposed)"
            constants[name], inputs[1] = constants[inputs[1]].T, name
    attributes |= {
        key: text.decode() for key, text in attributes.items() if isinstance(text, bytes)
    }
    return operator, inputs


class _Tensors:
    """The constants of a program, in one sequence of bytes."""

    def __init__(self, in_int8: bool) -> None:
        self.in_int8, self.data = in_int8, bytearray()
        self.entries: dict[str, dict[str, Any]] = {}

    def add(self, name: str, array: Array, are_rows: bool) -> str:
        """Store a constant once; returns its name in the program."""
        name += " (rows)" * are_rows
        if name not in self.entries:
            entry: dict[str, Any] = {"dims": array.shape}
            array = array.astype({"f": "float32", "b": "bool"}.get(array.dtype.kind, "int64"))
            if are_rows and array.dtype == np.int64:
                array = narrow(array)
            elif are_rows and array.ndim > 1 and self.in_int8:
                array, scales = quantize(array)
                entry["scales"] = self._place(scales)
            self.entries[name] = entry | {"type": array.dtype.name, "at": self._place(array)}
        return name

    def _place(self, array: Array) -> int:
        self.data.extend(bytes(-len(self.data) % 8) + array.tobytes())
        return len(self.data) - array.nbytes
