"""Soft targets against the probabilities that each model gives to each sentence alone."""

from typing import Any

import numpy as np
import pytest
import torch

from nmt.config.schema import ModelConfig
from nmt.data.corpus import Corpus, Sequences, unpack_soft_targets
from nmt.extras.augment import soft_targets as module
from nmt.extras.augment.soft_targets import soft_targets
from nmt.model.seq2seq import Seq2Seq
from nmt.text.vocabulary import EOS, SOS
from tests.toy import sequences


def make_model(seed: int, **values: Any) -> Seq2Seq:
    torch.manual_seed(seed)
    sizes = {"embedding_size": 6, "encoder": {"hidden_size": 4}, "decoder": {"hidden_size": 7}}
    model = Seq2Seq(ModelConfig.model_validate({**sizes, **values}), 11, 13).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter)
    if model.lexical_bias is not None:
        model.lexical_bias.fill(torch.randint(4, 13, (11, 3)), torch.rand(11, 3))
    return model


@pytest.mark.parametrize("values", [{}, {"lexical_bias": 3}], ids=["plain", "lexical bias"])
@pytest.mark.parametrize("block", [3, 100])
def test_they_are_the_most_probable_words_of_the_mean(
    values: dict[str, Any], block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "N_WORDS", 5)
    monkeypatch.setattr(module, "BLOCK_PAIRS", block)
    random = np.random.default_rng(1)
    sides = [
        [random.integers(4, size, length).tolist() for length in random.integers(0, 6, 10)]
        for size in (11, 13)
    ]
    corpus = Corpus(*map(sequences, sides))
    models = [make_model(1, **values), make_model(2)]
    blocks = [*soft_targets(models, corpus)]
    assert len(blocks) == -(-10 // block)
    stored = Sequences.of_blocks(blocks)
    for pair, (src, tgt) in enumerate(zip(*sides, strict=True)):
        means = torch.zeros(len(tgt) + 1, 13)
        for model in models:
            inputs = (
                torch.tensor([[*src, EOS]]),
                torch.tensor([len(src) + 1]),
                torch.tensor([[SOS, *tgt]]),
            )
            decoded = model(*inputs)
            vectors, additions = decoded.at(torch.arange(len(tgt) + 1))
            logits = model.output(vectors)
            if additions is not None:
                for row in range(len(logits)):
                    for word, value in zip(
                        additions.ids[row].tolist(), additions.values[row], strict=True
                    ):
                        logits[row, word] += value
            means += logits.softmax(1).detach() / 2
        ids, probabilities = unpack_soft_targets(stored[pair], len(tgt) + 1)
        assert ids.shape == (len(tgt) + 1, 5)
        expected = np.sort(means.numpy(), axis=1)[:, :-6:-1]
        np.testing.assert_allclose(probabilities, expected, atol=1e-6)
        np.testing.assert_allclose(np.take_along_axis(means.numpy(), ids, 1), expected, atol=1e-6)
