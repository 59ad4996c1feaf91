"""Recurrent layers: each against its equations in NumPy, and whole sequences against single
steps.
"""

import warnings

import numpy as np
import pytest
import torch

from nmt.config.parts import CELLS
from nmt.model.recurrent import RecurrentLayer
from tests.model import equations

B, T, H = 3, 5, 4
LENGTHS = torch.tensor([3, 5, 1])
NAMES = list(CELLS)


def make(name: str, *, bidirectional: bool = False) -> RecurrentLayer:
    torch.manual_seed(1)
    layer: RecurrentLayer = CELLS[name].load()(6, H, bidirectional).double()
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter)
    return layer


def draw(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64)


@pytest.mark.parametrize("name", NAMES)
def test_the_trait_of_a_cell_is_that_of_its_class(name: str) -> None:
    assert bool(CELLS[name].trait("cell_state")) == CELLS[name].load().has_cell_state


@pytest.mark.parametrize("name", NAMES)
def test_a_sequence_follows_the_equations_step_by_step(name: str) -> None:
    layer, inputs, hidden, cell = (
        make(name),
        draw(B, T, 6),
        draw(B, H),
        draw(B, H),
    )
    state = (hidden, cell if layer.has_cell_state else None)
    weights = {key: value.detach().numpy() for key, value in layer.named_parameters()}
    h, c = hidden.numpy(), cell.numpy()
    with torch.no_grad():
        outputs, last = layer.run(inputs, state=state)
        for t in range(T):
            state = layer.step(inputs[:, t], state)
            torch.testing.assert_close(outputs[:, t], state[0])
            h, c = equations.cell(name, weights, inputs[:, t].numpy(), h, c)
            np.testing.assert_allclose(outputs[:, t], h, atol=1e-10)
    torch.testing.assert_close(last[0], outputs[:, -1])
    assert (last[1] is None) == (not layer.has_cell_state)
    if last[1] is not None and state[1] is not None:
        torch.testing.assert_close(last[1], state[1])


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_padding_changes_nothing(name: str, bidirectional: bool) -> None:
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


def test_the_forget_gate_of_an_lstm_starts_open() -> None:
    layer = CELLS["lstm"].load()(3, H, bidirectional=True)
    for name, parameter in layer.named_parameters():
        if name.startswith("bias"):
            assert parameter.tolist() == [
                float(name.startswith("bias_ih") and H <= unit < 2 * H) for unit in range(4 * H)
            ]


needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")


@needs_gpu
@pytest.mark.parametrize("lengths", [[T] * B, [3, 5, 1]])
@pytest.mark.parametrize("name", NAMES)
def test_cuda_computes_a_layer_in_the_precision_of_its_weights(
    name: str, lengths: list[int]
) -> None:
    layer, inputs = make(name).float().cuda(), draw(B, T, 6).float().cuda()
    state = (draw(B, H).bfloat16().cuda(), draw(B, H).bfloat16().cuda())
    with torch.autocast("cuda", torch.bfloat16):
        before = state if layer.has_cell_state else (state[0], None)
        outputs, last = layer.run(inputs.bfloat16(), torch.tensor(lengths), before)
    assert {outputs.dtype, last[0].dtype} == {torch.float32}


@needs_gpu
@pytest.mark.parametrize("name", NAMES)
def test_cuda_is_not_waited_for(name: str) -> None:
    layers = [make(name).float().cuda(), CELLS[name].load()(H, H, False).cuda()]
    inputs, lengths = draw(B, T, 6).float().cuda(), LENGTHS
    for mode in ("default", "warn"):  # the first call prepares the weights
        torch.cuda.synchronize()
        torch.cuda.set_sync_debug_mode(mode)
        try:
            with warnings.catch_warnings(record=True) as found:
                warnings.simplefilter("always")
                outputs = inputs
                for layer in layers:
                    outputs, _ = layer.run(outputs, lengths)
        finally:
            torch.cuda.set_sync_debug_mode("default")
    assert [str(each.message) for each in found if "synchron" in str(each.message)] == []
