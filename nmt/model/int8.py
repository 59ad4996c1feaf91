"""Graphs with products in 8-bit integers, made of the graphs in float32.

A product of rows x and weights W becomes y = s_x s_W (round(x / s_x) round(W / s_W)), with a scale
s_x for each row of x, and s_W for each column of W: the largest absolute value, divided by 127. So
a row has the same result in any batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

DOMAIN = "com.microsoft"  # of onnxruntime's own operators
MIN_SIDE = 64  # smaller matrices stay in float32: their products take no time
SMALLEST_SCALE = 1e-9
ZERO = 128  # which stands for 0 in unsigned integers

Array = NDArray[Any]


def to_int8(graph: bytes) -> bytes:
    """The graph with all large products with constant matrices in 8-bit integers."""
    model = onnx.load_from_string(graph)
    rewriting = _Rewriting({tensor.name: tensor for tensor in model.graph.initializer})
    constants = [node for node in model.graph.node if node.op_type == "Constant"]
    rewriting.tensors |= {node.output[0]: node.attribute[0].t for node in constants}
    for node in model.graph.node:
        rewriting.add(node)
    used = {name for node in rewriting.nodes for name in node.input}
    kept = [tensor for tensor in model.graph.initializer if tensor.name in used]
    del model.graph.node[:], model.graph.initializer[:]
    model.graph.node.extend(rewriting.nodes)
    model.graph.initializer.extend([*kept, *rewriting.added.values()])
    model.opset_import.append(helper.make_opsetid(DOMAIN, 1))
    return model.SerializeToString()  # type: ignore[no-any-return]


@dataclass
class _Rewriting:
    """The nodes and tensors of the new graph.

    Attributes:
        tensors: the constants of the old graph. added: further constants.
        rounded: the rounded form of each input and its largest numbers, by the name of the
            input.
    """

    tensors: dict[str, onnx.TensorProto]
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    added: dict[str, onnx.TensorProto] = field(default_factory=dict)
    rounded: dict[str, tuple[str, str]] = field(default_factory=dict)

    def add(self, node: onnx.NodeProto) -> None:
        """Add a node of the old graph, or what takes its place."""
        weight = self.tensors.get(node.input[1]) if len(node.input) > 1 else None
        is_product = node.op_type in ("Gemm", "MatMul")
        if weight is None or not is_product or len(weight.dims) != 2 or min(weight.dims) < MIN_SIDE:
            self.nodes.append(node)
            return
        matrix = numpy_helper.to_array(weight)
        if any(each.name == "transB" and each.i for each in node.attribute):
            matrix = matrix.T
        name, output = node.input[1], node.output[0]
        scales = np.maximum(np.abs(matrix).max(0), SMALLEST_SCALE) / np.float32(127)
        integers = np.round(matrix / scales).astype(np.int8)
        rows, largest = self.round_rows(node.input[0])
        inputs = [
            rows,
            self.constant(f"{name}/int8", integers),
            self.constant("int8/share", np.float32(1 / 127)),
            self.constant(f"{name}/scales", scales.astype(np.float32)),
            self.constant("int8/zero", np.uint8(ZERO)),
        ]
        product = self.node("MatMulIntegerToFloat", inputs, f"{output}/product", domain=DOMAIN)
        if len(node.input) > 2:  # the bias of Gemm
            scaled = self.node("Mul", [product, largest], f"{output}/scaled")
            self.node("Add", [scaled, node.input[2]], output)
        else:
            self.node("Mul", [product, largest], output)

    def round_rows(self, name: str) -> tuple[str, str]:
        """The names of the rounded rows of an input, and of their largest numbers [..., 1]."""
        if name not in self.rounded:
            sizes = self.node("Abs", [name], f"{name}/absolute")
            largest = self.node("ReduceMax", [sizes], f"{name}/largest", axes=[-1], keepdims=1)
            smallest = self.constant("int8/smallest", np.float32(SMALLEST_SCALE))
            above = self.node("Max", [largest, smallest], f"{name}/above")
            divided = self.node("Div", [name, above], f"{name}/divided")
            share = self.constant("int8/share", np.float32(1 / 127))
            zero = self.constant("int8/zero", np.uint8(ZERO))
            rows = self.node("QuantizeLinear", [divided, share, zero], f"{name}/int8")
            self.rounded[name] = rows, above
        return self.rounded[name]

    def node(self, operator: str, inputs: Sequence[str], output: str, **options: Any) -> str:
        """Add a node, and return the name of its output."""
        self.nodes.append(helper.make_node(operator, inputs, [output], **options))
        return output

    def constant(self, name: str, value: Any) -> str:
        """Add a constant once, and return its name."""
        if name not in self.added:
            self.added[name] = numpy_helper.from_array(np.ascontiguousarray(value), name)
        return name


def check_graph() -> bytes:
    """A graph without inputs: `error`, the largest difference between products of onnxruntime in
    8-bit integers and the exact ones. It is not 0 on a processor whose sums of two products
    saturate at 16 bits.
    """
    rows = np.full((4, 256), 255, np.uint8)
    matrix = np.full((256, 64), 127, np.int8)
    matrix[:, ::2] = -128
    exact = rows.astype(np.float32) @ matrix.astype(np.float32)
    constants = {
        "rows": rows,
        "matrix": matrix,
        "one": np.float32(1),
        "zero": np.uint8(0),
        "exact": exact,
    }
    product = ["rows", "matrix", "one", "one", "zero"]
    nodes = [
        helper.make_node("MatMulIntegerToFloat", product, ["product"], domain=DOMAIN),
        helper.make_node("Sub", ["product", "exact"], ["difference"]),
        helper.make_node("Abs", ["difference"], ["absolute"]),
        helper.make_node("ReduceMax", ["absolute"], ["error"], keepdims=0),
    ]
    error = helper.make_tensor_value_info("error", TensorProto.FLOAT, [])
    tensors = [numpy_helper.from_array(np.asarray(each), name) for name, each in constants.items()]
    graph = helper.make_graph(nodes, "check", [], [error], tensors)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()  # type: ignore[no-any-return]
