"""An update waits for a GPU only once, at its end. Tensors on the `meta` device have no content:
reading one fails.
"""

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import torch

from nmt.data.batches import read_batches
from nmt.training.loop import Training, add_gradients
from nmt.training.loss import Loss
from tests.training.test_loop import make_config, make_corpus, make_model, make_update

META = torch.device("meta")

LUONG = {"decoder": {"hidden_size": 64}}
FEEDING = {"decoder": {"hidden_size": 64, "input_feeding": True}}
BAHDANAU = {
    "decoder": {"kind": "bahdanau", "readout": "maxout", "hidden_size": 64},
    "attention": {"score": "additive"},
}
COVERAGE = {**LUONG, "attention": {"kind": "coverage", "score": "additive"}}
LOCAL = {**LUONG, "attention": {"kind": "local_p"}}
HEADS = {**LUONG, "attention": {"score": "dot", "heads": 2}}
LEXICAL = {**LUONG, "lexical_bias": 3}


@pytest.mark.parametrize(
    ("kind", "forcing"),
    [
        *((kind, {"start": 0.5}) for kind in (LUONG, FEEDING, BAHDANAU, COVERAGE, LOCAL, HEADS)),
        (LEXICAL, {}),
        *((kind, {}) for kind in (LUONG, BAHDANAU)),
        (LUONG, {"start": 0.5, "per": "sentence"}),
        (LUONG, {"start": 0.0}),
    ],
    ids=str,
)
def test_an_update_does_not_wait_for_the_gpu(
    kind: dict[str, Any], forcing: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        torch, "autocast", lambda *_, **__: nullcontext()
    )  # which knows no such device
    keys = {"teacher_forcing": forcing, "label_smoothing": 0.1, "coverage_loss": 0.5}
    keys |= {"alignment_loss": 0.5} if "lexical_bias" in kind else {}
    config = make_config(
        model={"embedding_size": 32, "encoder": {"hidden_size": 32}, "dropout": 0.1, **kind},
        training=keys,
    )
    corpus, sources = make_corpus(60, seed=4)
    alike = np.array([index for index, source in enumerate(sources) if len(source) == 5])
    assert len(alike) > 4
    batches = [batch.to(META) for batch in read_batches(corpus, [alike[:4], alike[4:]])]
    training = Training.of(make_model(config).to(META), corpus, config)
    loss = Loss(training.model, config.training)
    ratio = config.training.teacher_forcing.start
    sums = add_gradients(loss, training, make_update(batches), ratio)
    assert (sums.shape, sums.device) == ((3,), META)
    assert all(
        parameter.grad is not None and parameter.grad.device == META
        for parameter in training.model.parameters()
    )
