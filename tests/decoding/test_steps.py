"""Single steps with packed weights against NumPy."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from nmt.config.schema import Cell
from nmt.decoding.pack import PackedLinear
from nmt.decoding.steps import GateTable, build_step
from nmt.model.recurrent import CELLS, FusedLayer


@pytest.mark.parametrize("cell", ["lstm", "gru", "elman"])
@given(
    inputs=st.integers(1, 5),
    hidden=st.integers(1, 5),
    n_embedding=st.integers(0, 5),
    seed=st.integers(0, 99),
)
def test_a_step_is_that_of_the_layer(
    cell: Cell, inputs: int, hidden: int, n_embedding: int, seed: int
) -> None:
    n_embedding = min(n_embedding, inputs)
    torch.manual_seed(seed)
    layer = CELLS[cell](inputs, hidden).double()
    assert isinstance(layer, FusedLayer)
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter)
    (w, u, b, d), gates = (part.detach() for part in layer.weights), len(layer.weights[0])
    x, h, c = (torch.randn(3, size, dtype=torch.double) for size in (inputs, hidden, hidden))
    step = build_step(layer, PackedLinear.of, n_embedding)
    words = GateTable(x[:, :n_embedding], layer)(torch.arange(3)) if n_embedding else x
    fed = x[:, n_embedding:] if 0 < n_embedding < inputs else None
    with torch.inference_mode():
        following, after = step(words, fed, (h, c if cell == "lstm" else None))
    W, U, B, D, X, H, C = (part.numpy() for part in (w, u, b, d, x, h, c))
    of_x, of_h = (
        np.split(X @ W.T + B, gates // hidden, 1),
        np.split(H @ U.T + D, gates // hidden, 1),
    )

    def sigma(x: NDArray[np.float64]) -> NDArray[np.float64]:
        return 1 / (1 + np.exp(-x))

    if cell == "lstm":
        i, f, g, o = (one + other for one, other in zip(of_x, of_h, strict=True))
        kept = sigma(f) * C + sigma(i) * np.tanh(g)
        assert after is not None
        np.testing.assert_allclose(after, kept, atol=1e-12)
        expected = sigma(o) * np.tanh(kept)
    elif cell == "gru":
        r, z = (sigma(of_x[gate] + of_h[gate]) for gate in (0, 1))
        expected = (1 - z) * np.tanh(of_x[2] + r * of_h[2]) + z * H
    else:
        expected = np.tanh(of_x[0] + of_h[0])
    np.testing.assert_allclose(following, expected, atol=1e-12)
    assert (after is None) == (cell != "lstm")
