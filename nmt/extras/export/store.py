"""Tensors of a page, in few bytes."""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

Array = np.ndarray[Any, Any]
Weights = Literal["int8", "float32"]


@dataclass
class Store:
    """The bytes of tensors, one after the other.

    Attributes:
        weights: how rows of numbers are stored.
    """

    weights: Weights
    data: bytearray = field(default_factory=bytearray)

    def add(self, array: Array, are_rows: bool) -> dict[str, Any]:
        """Store a tensor in a type of the runtime; where it is, for JSON."""
        array = array.astype({"f": "float32", "b": "bool"}.get(array.dtype.kind, "int64"))
        tensor: dict[str, Any] = {"dims": array.shape}
        if are_rows and (self.weights == "int8" or array.dtype == np.int64):
            array, scales = compact(array)
            if scales is not None:
                tensor["scales"] = self._place(scales)
        return tensor | {"type": array.dtype.name, "at": self._place(array)}

    def _place(self, array: Array) -> int:
        self.data.extend(bytes(-len(self.data) % 8) + array.tobytes())
        return len(self.data) - array.nbytes


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
