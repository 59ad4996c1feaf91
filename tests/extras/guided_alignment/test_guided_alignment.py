"""Guided alignment."""

import numpy as np
import pytest
import torch

from nmt.config.load import config_from_dict
from nmt.data.batches import build_batch
from nmt.errors import ConfigError
from nmt.extras.guided_alignment.loss import alignment_loss
from nmt.model.lexical_bias import LexicalBias
from nmt.model.seq2seq import Decoded
from nmt.text.vocabulary import EOS


def test_the_loss_follows_the_equation() -> None:
    batch = build_batch([[5, 6, 7], [8]], [[4, 5], [6, 7, 8, 9]])
    lexicon = {(5, 4): 0.75, (5, 6): 0.25, (6, 5): 1.0, (7, 4): 0.5, (EOS, EOS): 1.0}
    ids, probabilities = torch.zeros(11, 13, dtype=torch.long), torch.zeros(11, 13)
    for (x, y), probability in lexicon.items():
        ids[x, y], probabilities[x, y] = y, probability
    bias = LexicalBias(11, 13, 13)
    bias.fill(ids, probabilities)
    torch.manual_seed(1)
    attention = torch.rand(2, 5, 4, dtype=torch.float64)
    expected = 0.0
    for b, (src, tgt) in enumerate([([5, 6, 7, EOS], [4, 5, EOS]), ([8, EOS], [6, 7, 8, 9, EOS])]):
        for t, y in enumerate(tgt):
            links = np.array([lexicon.get((x, y), 0.0) for x in src])
            links *= [
                np.exp(-4 * abs((t + 1) / len(tgt) - (j + 1) / len(src))) for j in range(len(src))
            ]
            if links.sum():
                expected -= (
                    links / links.sum() * np.log(attention[b, t, : len(src)].numpy())
                ).sum()
    value = alignment_loss(Decoded(attention, attention, bias.look_up(batch.src)), batch).item()
    assert value == pytest.approx(expected, rel=1e-7)


def test_it_needs_a_lexicon() -> None:
    values = {"name": "x", "training": {"alignment_loss": 1.0}, "model": {"lexical_bias": 0}}
    with pytest.raises(ConfigError, match=r"alignment_loss, model.lexical_bias: guided alignment"):
        config_from_dict(values)
