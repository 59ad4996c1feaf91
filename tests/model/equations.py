"""The equations of attention scores and cells in NumPy. A part without an equation fails."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def sigma(x: Array) -> Array:
    result: Array = 1 / (1 + np.exp(-x))
    return result


def score(name: str, weights: Mapping[str, Array], q: Array, h: Array) -> float:
    """e_j for one query and one encoder state."""
    match name:
        case "dot":
            return float(h @ q)
        case "general":  # torch keeps W^T: the projection of h
            return float(h @ weights["weight.weight"].T @ q)
        case "concat":
            inner = weights["weight.weight"] @ np.concatenate([q, h])
            return float(weights["v.weight"][0] @ np.tanh(inner))
        case "additive":
            inner = weights["query_weight.weight"] @ q + weights["value_weight.weight"] @ h
            return float(weights["v.weight"][0] @ np.tanh(inner + weights["value_weight.bias"]))
        case "concat_shared":
            return float(weights["v.weight"][0] @ np.tanh(weights["weight.weight"] @ (q + h)))
        case "linear":
            both = np.concatenate([q, h])
            return float(weights["weight.weight"][0] @ both + weights["weight.bias"][0])
        case _:
            raise AssertionError(name)


def cell(
    name: str, weights: Mapping[str, Array], x: Array, h: Array, c: Array
) -> tuple[Array, Array]:
    """The hidden state and the cell state after a step of a layer of torch; x [..., I]."""
    of_x = x @ weights["weight_ih_l0"].T + weights["bias_ih_l0"]
    of_h = h @ weights["weight_hh_l0"].T + weights["bias_hh_l0"]
    match name:
        case "elman":
            return np.tanh(of_x + of_h), c
        case "gru":
            (r, z, n), (r_h, z_h, n_h) = np.split(of_x, 3, -1), np.split(of_h, 3, -1)
            kept = sigma(z + z_h)
            return (1 - kept) * np.tanh(n + sigma(r + r_h) * n_h) + kept * h, c
        case "lstm":
            i, f, g, o = np.split(of_x + of_h, 4, -1)
            after = sigma(f) * c + sigma(i) * np.tanh(g)
            return sigma(o) * np.tanh(after), after
        case _:
            raise AssertionError(name)
