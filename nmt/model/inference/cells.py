"""A step of a recurrent layer whose weights no longer change, for search: its products one by one, each laid out as is best.

What a word adds to the gates is always the same, so that is a table, made once for the whole vocabulary (Devlin 2017).
H units; G gates: 4 of an LSTM, 3 of a GRU, 1 of an Elman network.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from nmt.config.schema import Cell
from nmt.model.inference.sharing import LayOut, linear_of

Stepped = tuple[Tensor, Tensor | None]


class CellStep(nn.Module):
    """One step of a layer.

    Args:
        cell: its kind.
        weights: of input [G * H, I] and hidden state [G * H, H], and the bias [G * H] of each, as torch orders gates.
        lay_out: how the matrices are.
        known: so many of its inputs, the first, are not given: what they add to the gates is.
    """

    def __init__(self, cell: Cell, weights: tuple[Tensor, Tensor, Tensor, Tensor], lay_out: LayOut, known: int = 0) -> None:
        super().__init__()
        of_inputs, of_hidden, input_bias, hidden_bias = weights
        self._step = STEPS[cell]
        bias = torch.zeros_like(input_bias) if known else input_bias  # the table has it
        self.inputs = lay_out(linear_of(of_inputs[:, known:], bias)) if known < of_inputs.shape[1] else None
        self.hidden = lay_out(linear_of(of_hidden, hidden_bias))

    def forward(self, gates: Tensor | None, inputs: Tensor | None, hidden: Tensor, cell: Tensor | None) -> Stepped:
        """The next hidden [B, H], and the next cell [B, H] if there is one.

        Args:
            gates: [B, G * H], what the known inputs add to them. inputs: [B, I], the others. Where there are none, either is None.
        """
        parts = [] if gates is None else [gates]
        if self.inputs is not None:
            parts.append(self.inputs(inputs))
        return self._step(sum(parts[1:], parts[0]), self.hidden(hidden), hidden, cell)


# What of the gates, [B, G * H], comes from the input and from the state; the state: hidden and cell, [B, H] -> the next state.


def step_lstm(of_input: Tensor, of_hidden: Tensor, _hidden: Tensor, cell: Tensor | None) -> Stepped:
    """c' = sigma(f) c + sigma(i) tanh(g), h' = sigma(o) tanh(c')."""
    assert cell is not None
    i, f, g, o = (of_input + of_hidden).chunk(4, 1)
    following = (f.sigmoid() * cell).addcmul_(i.sigmoid(), _tanh(g))
    return o.sigmoid() * _tanh(following), following


def step_gru(of_input: Tensor, of_hidden: Tensor, hidden: Tensor, _cell: Tensor | None) -> Stepped:
    """h' = n + sigma(z) (h - n), n = tanh(n_x + sigma(r) n_h): the reset gate after the product (Cho 2014 has it before)."""
    (r, z, n), (r_hidden, z_hidden, n_hidden) = of_input.chunk(3, 1), of_hidden.chunk(3, 1)
    new = _tanh(torch.addcmul(n, (r + r_hidden).sigmoid(), n_hidden))
    return torch.lerp(new, hidden, (z + z_hidden).sigmoid()), None


def step_elman(of_input: Tensor, of_hidden: Tensor, _hidden: Tensor, _cell: Tensor | None) -> Stepped:
    """h' = tanh(x' + h')."""
    return _tanh(of_input + of_hidden), None


def _tanh(x: Tensor) -> Tensor:
    """2 sigma(2x) - 1, to within rounding the same: torch's own takes twice as long as these four."""
    return (x * 2).sigmoid_().mul_(2).sub_(1)


STEPS: dict[Cell, Callable[[Tensor, Tensor, Tensor, Tensor | None], Stepped]] = {
    "lstm": step_lstm,
    "gru": step_gru,
    "elman": step_elman,
}
