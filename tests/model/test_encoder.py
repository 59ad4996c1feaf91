"""The encoder and the bridges against their equations in NumPy."""

from typing import Any

import numpy as np
import pytest
import torch

from nmt.config.parts import BRIDGES
from nmt.config.schema import ModelConfig
from nmt.model.encoder import Summary
from nmt.model.recurrent import RecurrentState

B, H = 3, 4


@pytest.mark.parametrize("bridge", BRIDGES)
@pytest.mark.parametrize(("encoder_layers", "decoder_layers"), [(1, 1), (3, 2), (2, 3)])
def test_bridges_match_layers_from_the_top(
    bridge: str, encoder_layers: int, decoder_layers: int
) -> None:
    if bridge == "copy" and decoder_layers > encoder_layers:
        pytest.skip("refused when the configuration is read")
    torch.manual_seed(1)
    decoder_size = 2 * H if bridge == "copy" else H
    sections = {
        "encoder": {"hidden_size": H, "layers": encoder_layers},
        "decoder": {"hidden_size": decoder_size, "layers": decoder_layers},
    }
    module = (
        BRIDGES[bridge].load()(ModelConfig.model_validate({"bridge": bridge, **sections})).double()
    )
    hidden, cell = (torch.randn(B, encoder_layers, 2 * H, dtype=torch.float64) for _ in range(2))
    state = module(Summary(hidden[:, -1], RecurrentState(hidden, cell)))
    assert state.cell is not None
    assert state.hidden.shape == state.cell.shape == (B, decoder_layers, decoder_size)
    for layer in range(decoder_layers):
        source = max(0, encoder_layers - decoder_layers + layer)
        for result, before, part in ((state.hidden, hidden, "hidden"), (state.cell, cell, "cell")):
            x = before[:, source].numpy()
            if bridge == "backward":
                x = x[:, H:]  # the directions are concatenated, forward first
            if bridge == "copy":
                expected = x
            elif bridge == "zero":
                expected = np.zeros((B, H))
            else:
                w: dict[str, Any] = {
                    key: value.detach().numpy() for key, value in module.named_parameters()
                }
                expected = np.tanh(x @ w[f"{part}.{layer}.weight"].T + w[f"{part}.{layer}.bias"])
            np.testing.assert_allclose(result[:, layer].detach(), expected, atol=1e-10)
