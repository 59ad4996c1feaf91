"""Recurrent layers: each against its equations in NumPy, and whole sequences against single
steps.
"""

import numpy as np
import pytest
import torch

from nmt.config.parts import CELLS as CELL_ROWS
from nmt.config.parts import having
from nmt.config.schema import Cell
from nmt.model.recurrent import CELLS, RecurrentLayer, drop_weights

B, T, H = 3, 5, 4
LENGTHS = torch.tensor([3, 5, 1])
NAMES: list[Cell] = list(CELLS)


def make(name: Cell, input_size: int = 6, *, bidirectional: bool = False) -> RecurrentLayer:
    torch.manual_seed(1)
    layer = CELLS[name](input_size, H, bidirectional).double()
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter)
    return layer


def draw(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def sigma(x: np.ndarray) -> np.ndarray:
    result: np.ndarray = 1 / (1 + np.exp(-x))
    return result


def numpy_step(
    name: Cell, layer: RecurrentLayer, x: np.ndarray, h: np.ndarray, c: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    w = {key: value.detach().numpy() for key, value in layer.named_parameters()}
    if name == "sru":
        w = {key.removeprefix("directions.0."): value for key, value in w.items()}
        products = w["project.weight"] @ x
        f = sigma(products[H : 2 * H] + w["forget_cell"] * c + w["forget_bias"])
        r = sigma(products[2 * H : 3 * H] + w["reset_cell"] * c + w["reset_bias"])
        cell = f * c + (1 - f) * products[:H]
        return r * cell + (1 - r) * np.sqrt(3) * (products[3 * H :] if len(x) != H else x), cell
    of_x, of_h = w["weight_ih_l0"] @ x + w["bias_ih_l0"], w["weight_hh_l0"] @ h + w["bias_hh_l0"]
    if name == "elman":
        return np.tanh(of_x + of_h), c
    if name == "gru":
        (r, z, n), (r_h, z_h, n_h) = of_x.reshape(3, H), of_h.reshape(3, H)
        z = sigma(z + z_h)
        return (1 - z) * np.tanh(n + sigma(r + r_h) * n_h) + z * h, c
    i, f, g, o = (of_x + of_h).reshape(4, H)
    cell = sigma(f) * c + sigma(i) * np.tanh(g)
    return sigma(o) * np.tanh(cell), cell


def test_literal_and_classes_agree() -> None:
    assert set(having(CELL_ROWS, "cell_state")) == {
        name for name, cell in CELLS.items() if cell.has_cell_state
    }


@pytest.mark.parametrize("input_size", [6, H])
@pytest.mark.parametrize("name", NAMES)
def test_a_sequence_follows_the_equations_step_by_step(name: Cell, input_size: int) -> None:
    layer, inputs, hidden, cell = (
        make(name, input_size),
        draw(B, T, input_size),
        draw(B, H),
        draw(B, H),
    )
    state = (hidden, cell if layer.has_cell_state else None)
    with torch.no_grad():
        outputs, last = layer.run(inputs, state=state)
        for t in range(T):
            state = layer.step(inputs[:, t], state)
            torch.testing.assert_close(outputs[:, t], state[0])
        for row in range(B):
            h, c = hidden[row].numpy(), cell[row].numpy()
            for t in range(T):
                h, c = numpy_step(name, layer, inputs[row, t].numpy(), h, c)
                np.testing.assert_allclose(outputs[row, t], h, atol=1e-10)
    torch.testing.assert_close(last[0], outputs[:, -1])
    assert (last[1] is None) == (not layer.has_cell_state)
    if last[1] is not None and state[1] is not None:
        torch.testing.assert_close(last[1], state[1])


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_padding_changes_nothing(name: Cell, bidirectional: bool) -> None:
    layer, inputs = make(name, bidirectional=bidirectional), draw(B, T, 6)
    with torch.no_grad():
        outputs, last = layer.run(inputs, LENGTHS)
        for row, length in enumerate(LENGTHS.tolist()):
            alone, alone_last = layer.run(inputs[row : row + 1, :length], LENGTHS[row : row + 1])
            torch.testing.assert_close(outputs[row, :length], alone[0], atol=1e-12, rtol=0)
            assert (outputs[row, length:] == 0).all()
            for part, alone_part in zip(last, alone_last, strict=True):
                if part is not None and alone_part is not None:
                    torch.testing.assert_close(part[row], alone_part[0], atol=1e-12, rtol=0)
    if bidirectional:  # the backward direction ends at the first position
        torch.testing.assert_close(last[0][:, H:], outputs[:, 0, H:])


def test_the_backward_direction_of_sru_reads_the_sentence_backwards() -> None:
    layer, inputs = make("sru", bidirectional=True), draw(B, T, 6)
    forward, backward = layer.get_submodule("directions.0"), layer.get_submodule("directions.1")
    backward.load_state_dict(forward.state_dict())
    with torch.no_grad():
        outputs, _ = layer.run(inputs)
        reverse, _ = layer.run(inputs.flip(1))
    torch.testing.assert_close(outputs[..., H:], reverse.flip(1)[..., :H])


@pytest.mark.parametrize("lengths", [None, LENGTHS])
@pytest.mark.parametrize("name", NAMES)
def test_gradients(name: Cell, lengths: torch.Tensor | None) -> None:
    layer, inputs = make(name, bidirectional=lengths is not None), draw(B, T, 6).requires_grad_()
    parameters = tuple(layer.parameters())

    def results(inputs: torch.Tensor, *_: torch.Tensor) -> list[torch.Tensor]:
        outputs, (hidden, cell) = layer.run(inputs, lengths)
        return [outputs, hidden] if cell is None else [outputs, hidden, cell]

    assert torch.autograd.gradcheck(results, (inputs, *parameters))


def test_the_forget_gate_of_an_lstm_starts_open() -> None:
    layer = CELLS["lstm"](3, H, bidirectional=True)
    for name, parameter in layer.named_parameters():
        if name.startswith("bias"):
            assert parameter.tolist() == [
                float(name.startswith("bias_ih") and H <= unit < 2 * H) for unit in range(4 * H)
            ]


@pytest.mark.parametrize("lengths", [None, LENGTHS])
@pytest.mark.parametrize("name", ["lstm", "gru", "elman"])
def test_dropout_of_recurrent_weights_is_a_layer_with_other_weights(
    name: Cell, lengths: torch.Tensor | None
) -> None:
    """The same zeros and the same scale at all steps, whether the layer runs fused or step by step;
    and in the gradients.
    """
    layer, other, inputs = (
        make(name, bidirectional=True),
        make(name, bidirectional=True),
        draw(B, T, 6),
    )
    before = {key: value.clone() for key, value in layer.state_dict().items()}
    torch.manual_seed(3)
    with drop_weights(layer, 0.25):
        outputs, _ = layer.run(inputs, lengths)
        state = (draw(B, H), draw(B, H) if layer.has_cell_state else None)
        step, _ = layer.step(inputs[:, 0], state)
    torch.manual_seed(3)
    masks = {}
    for key, value in other.named_parameters():
        if key.startswith("weight_hh"):
            masks[key] = torch.nn.functional.dropout(torch.ones_like(value), 0.25)
            assert set(masks[key].unique().tolist()) == {0.0, 4 / 3}
            value.data *= masks[key]
    assert set(masks) == {"weight_hh_l0", "weight_hh_l0_reverse"}
    expected, _ = other.run(inputs, lengths)
    torch.testing.assert_close(outputs, expected)
    torch.testing.assert_close(step, other.step(inputs[:, 0], state)[0])
    outputs.sum().backward()
    expected.sum().backward()
    for (key, value), reference in zip(layer.named_parameters(), other.parameters(), strict=True):
        assert value.grad is not None
        assert reference.grad is not None
        torch.testing.assert_close(value.grad, reference.grad * masks.get(key, torch.ones(())))
    assert all(torch.equal(value, before[key]) for key, value in layer.state_dict().items())
    assert torch.equal(
        layer.run(inputs, lengths)[0], make(name, bidirectional=True).run(inputs, lengths)[0]
    )  # only inside the context
    with drop_weights(layer.eval(), 0.25):
        assert torch.equal(
            layer.run(inputs, lengths)[0], make(name, bidirectional=True).run(inputs, lengths)[0]
        )


def test_an_error_restores_the_weights() -> None:
    layer, inputs = make("lstm"), draw(B, T, 6)
    before, _ = layer.run(inputs)
    with pytest.raises(ValueError, match="stop"), drop_weights(layer, 0.5):
        raise ValueError("stop")
    assert torch.equal(layer.run(inputs)[0], before)


@pytest.mark.parametrize("name", NAMES)
def test_mixed_precision(name: Cell) -> None:
    torch.manual_seed(1)
    layer, inputs, state = (
        CELLS[name](6, H),
        torch.randn(B, T, 6),
        (torch.randn(B, H), torch.randn(B, H)),
    )
    before = (state[0], state[1] if layer.has_cell_state else None)
    exact, _ = layer.run(inputs, state=before)
    with torch.autocast("cpu", torch.bfloat16):
        rounded = before[0].bfloat16(), None if before[1] is None else before[1].bfloat16()
        outputs, _ = layer.run(inputs.bfloat16(), state=rounded)
    torch.testing.assert_close(outputs.float(), exact, atol=0.1, rtol=0)
