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

    def add(self, array: Array, are_rows: bool = False) -> dict[str, Any]:
        """Store a tensor; where it is, and its type in JavaScript, for JSON."""
        tensor: dict[str, Any] = {"dims": array.shape}
        if are_rows and self.weights == "int8":
            array, scales = compact(array)
            tensor["scales"] = self.add(scales)
        kind = "BigInt64" if array.dtype == np.int64 else array.dtype.name.title()
        return tensor | {"type": f"{kind}Array", "at": self._place(array)}

    def _place(self, array: Array) -> int:
        self.data.extend(bytes(-len(self.data) % 8) + array.tobytes())
        return len(self.data) - array.nbytes


def compact(array: Array) -> tuple[Array, Array]:
    """Matrices [.., rows, columns] of float32 in int8, with scales [.., rows, 1]: their product
    differs from the matrix by half a scale at most.
    """
    largest = np.abs(array).max(-1, keepdims=True)
    scales = np.maximum(largest, 1e-12).astype(np.float32) / np.float32(127)
    return np.round(array / scales).astype(np.int8), scales
