"""Graphs of ONNX as programs for page/operators.js: no protocol buffers, and weights in 8 bits."""

import re
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from nmt.errors import ConfigError
from nmt.extras.export.store import Array, Store
from nmt.extras.page.files import read

OPERATORS = {*re.findall(r"^  ([A-Z]\w+): ", read("operators.js"), re.MULTILINE)}
# operator -> its inputs that are rows of numbers, which take little room
ROWS = {"Linear": (1,), "LSTM": (1, 2), "GRU": (1, 2), "RNN": (1, 2), "Gather": (0,)}


def to_program(graph: bytes, store: Store, unused: Collection[str] = ()) -> dict[str, Any]:
    """A graph for the runtime, as JSON has it; its tensors go into the store.

    A product with constant weights becomes the operator `Linear`, which has a row of weights for
    each output.

    Args:
        unused: outputs that the page does not need.

    Raises:
        ConfigError: the runtime lacks an operator of the graph.
    """
    model = onnx.load_from_string(graph)
    given = {tensor.name: tensor for tensor in model.graph.initializer}
    given |= {
        node.output[0]: node.attribute[0].t
        for node in model.graph.node
        if node.op_type == "Constant"
    }
    constants = {name: numpy_helper.to_array(tensor) for name, tensor in given.items()}
    tensors, program = dict[str, dict[str, Any]](), list[tuple[str, list[str], list[str], Any]]()

    def add(name: str, are_rows: bool) -> str:
        """Store a constant once; returns its name in the program."""
        array, name = constants[name], name + " (rows)" * are_rows
        if name not in tensors:
            tensors[name] = store.add(array.astype(np.float32), are_rows and array.ndim > 1)
        return name

    outputs = [each.name for each in model.graph.output if each.name not in unused]
    for node in _needed(model.graph.node, outputs):
        attributes = {
            item.name: helper.get_attribute_value(item)
            for item in node.attribute
            if item.type != onnx.AttributeProto.STRING  # the runtime reads none
        }
        operator, inputs = _simplified(node, attributes, constants)
        if operator not in OPERATORS:
            raise ConfigError(f"{operator}: a page cannot compute this operator of the model")
        rows = ROWS.get(operator, ())
        inputs = [
            add(name, i in rows) if name in constants else name for i, name in enumerate(inputs)
        ]
        program.append((operator, inputs, [*node.output], attributes))
    return {"outputs": outputs, "tensors": tensors, "nodes": program}


def _needed(nodes: Sequence[onnx.NodeProto], outputs: Sequence[str]) -> list[onnx.NodeProto]:
    """The nodes that compute the outputs, in order, but for the constants."""
    names, kept = {*outputs}, list[onnx.NodeProto]()
    for node in reversed(nodes):
        if node.op_type != "Constant" and not names.isdisjoint(node.output):
            names.update(node.input)
            kept.insert(0, node)
    return kept


def _simplified(
    node: onnx.NodeProto, attributes: dict[str, Any], constants: dict[str, Array]
) -> tuple[str, list[str]]:
    """The operator of the runtime and its inputs; changes attributes and adds constants."""
    operator, inputs = node.op_type, [*node.input]
    if operator == "ConstantOfShape":
        operator, inputs = "Expand", [f"{node.output[0]} (value)", *inputs]
        constants[inputs[0]] = numpy_helper.to_array(attributes.pop("value")).reshape(())
    elif operator == "Tile":
        operator = "Expand"  # of graphs.py, it repeats along axes of size 1
    elif operator == "Gemm" or (operator == "MatMul" and inputs[1] in constants):
        operator = "Linear"
        if not attributes.get("transB"):
            name = f"{inputs[1]} (transposed)"
            constants[name], inputs[1] = constants[inputs[1]].T, name
    return operator, inputs
