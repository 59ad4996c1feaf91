"""Graphs of ONNX as programs for page/operators.js: no protocol buffers, and weights in 8 bits."""

import re
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from nmt.errors import ConfigError
from nmt.extras.export.storage import Array, Weights, compact, constants_and_nodes
from nmt.extras.page.files import read

OPERATORS = {*re.findall(r"^  ([A-Z]\w+): ", read("operators.js"), re.MULTILINE)}
# operator -> its inputs that are rows of numbers, which take little room
ROWS = {"Linear": (1,), "LSTM": (1, 2), "GRU": (1, 2), "RNN": (1, 2), "Gather": (0,)}


def to_program(model: onnx.ModelProto, weights: Weights) -> tuple[dict[str, Any], bytes]:
    """A graph for the runtime: what becomes JSON, and the bytes of its tensors.

    A product with constant weights becomes the operator `Linear`, which has a row of weights for
    each output. The step of the decoder has one more output: `logits` [N, V].

    Raises:
        ConfigError: the runtime lacks an operator of the graph.
    """
    (constants, nodes), data = constants_and_nodes(model.graph), bytearray()
    tensors, program = dict[str, dict[str, Any]](), list[tuple[str, list[str], list[str], Any]]()
    outputs = [output.name for output in model.graph.output]

    def place(array: Array) -> int:
        data.extend(bytes(-len(data) % 8) + array.tobytes())
        return len(data) - array.nbytes

    def add(name: str, are_rows: bool) -> str:
        """Store a constant once; returns its name in the program."""
        array, name = constants[name], name + " (rows)" * are_rows
        if name not in tensors:
            tensors[name] = {"dims": array.shape}
            array, scales = _stored(array, weights, are_rows)
            if scales is not None:
                tensors[name]["scales"] = place(scales)
            tensors[name] |= {"type": array.dtype.name, "at": place(array)}
        return name

    for node in nodes:
        attributes = {item.name: helper.get_attribute_value(item) for item in node.attribute}
        operator, inputs = _simplified(node, attributes, constants)
        if operator not in OPERATORS:
            raise ConfigError(f"{operator}: a page cannot compute this operator of the model")
        rows = ROWS.get(operator, ())
        inputs = [
            add(name, i in rows) if name in constants else name for i, name in enumerate(inputs)
        ]
        program.append((operator, inputs, [*node.output], attributes))
        if "best_ids" in node.output:
            program.append(("Identity", inputs[:1], ["logits"], {}))
            outputs.append("logits")
    parts = {
        "inputs": [each.name for each in model.graph.input],
        "outputs": outputs,
        "tensors": tensors,
        "nodes": program,
    }
    return parts, bytes(data)


def _stored(array: Array, weights: Weights, are_rows: bool) -> tuple[Array, Array | None]:
    """A constant in a type of the runtime, and the scales of its rows if they are integers."""
    array = array.astype({"f": "float32", "b": "bool"}.get(array.dtype.kind, "int64"))
    if are_rows and (weights == "int8" or array.dtype == np.int64):
        return compact(array)
    return array, None


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
    for key, value in attributes.items():
        attributes[key] = value.decode() if isinstance(value, bytes) else value
    return operator, inputs
