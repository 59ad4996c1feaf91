"""Weights and tables of an exported graph in fewer bytes."""

from pathlib import Path
from typing import Any, Literal

import numpy as np
import onnx
from onnx import helper, numpy_helper

Array = np.ndarray[Any, Any]
Weights = Literal["int8", "float32"]


def constants_and_nodes(graph: onnx.GraphProto) -> tuple[dict[str, Array], list[onnx.NodeProto]]:
    """The constants of a graph by name, and its other nodes."""
    nodes = [node for node in graph.node if node.op_type != "Constant"]
    given = {
        node.output[0]: node.attribute[0].t for node in graph.node if node.op_type == "Constant"
    }
    given |= {tensor.name: tensor for tensor in graph.initializer}
    return {name: numpy_helper.to_array(tensor) for name, tensor in given.items()}, nodes


def compact(array: Array) -> tuple[Array, Array | None]:
    """Matrices [.., rows, columns] of float32 in int8, with scales [.., rows, 1]: their product
    differs from the matrix by half a scale at most. Integers in 16 bits, if they fit.
    """
    if array.dtype == np.float32 and array.ndim > 1:
        largest = np.abs(array).max(-1, keepdims=True)
        scales = np.maximum(largest, 1e-12).astype(np.float32) / np.float32(127)
        return np.round(array / scales).astype(np.int8), scales
    fits = array.dtype == np.int64 and array.size and array.min() >= 0 and array.max() < 2**16
    return array.astype(np.uint16) if fits else array, None


def shrink(file: Path) -> None:
    """Store the float32 matrices of a graph in int8, and tables of ids in 16 bits.

    onnxruntime makes float32 and int64 of them when it loads the graph, so that nothing becomes
    slower; with DequantizeLinear instead of Cast and Mul, it would do so in each run.
    """
    model = onnx.load(file)
    constants, nodes = constants_and_nodes(model.graph)
    tensors, conversions = dict[str, Array](), list[onnx.NodeProto]()
    for name, array in constants.items():
        stored, scales = compact(array)
        if array.size < 1000 or stored is array:
            tensors[name] = array
            continue
        small, wide = f"{name}.{stored.dtype}", name if scales is None else f"{name}.wide"
        tensors[small] = stored
        to = helper.np_dtype_to_tensor_dtype(array.dtype)
        conversions.append(helper.make_node("Cast", [small], [wide], to=to))
        if scales is not None:
            tensors[f"{name}.scales"] = scales
            conversions.append(helper.make_node("Mul", [wide, f"{name}.scales"], [name]))
    del model.graph.initializer[:], model.graph.node[:]
    model.graph.initializer.extend(numpy_helper.from_array(*item[::-1]) for item in tensors.items())
    model.graph.node.extend([*conversions, *nodes])
    onnx.save(model, file)
