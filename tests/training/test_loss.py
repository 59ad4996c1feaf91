"""The training objective."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt.config.parts import LOSS_TERMS
from nmt.config.schema import ModelConfig, TrainingConfig
from nmt.data.batches import Batch, SoftTargets, build_batch
from nmt.model.seq2seq import Decoded, Seq2Seq
from nmt.plugins import Part
from nmt.training.loss import Loss


def make(**values: Any) -> tuple[Seq2Seq, Batch]:
    torch.manual_seed(1)
    sections = {
        "embedding_size": 6,
        "encoder": {"hidden_size": 4},
        "decoder": {"hidden_size": 7},
        "attention": {"kind": "coverage", "score": "additive"},
        "dropout": 0.0,
        **values,
    }
    model = Seq2Seq(ModelConfig.model_validate(sections), 11, 13).double()
    return model, build_batch([[5, 6, 7], [8]], [[4, 5], [6, 7, 8, 9]])


def loss_of(model: Seq2Seq, batch: Batch, **config: Any) -> tuple[Tensor, Tensor]:
    objective, nll = Loss(model, TrainingConfig(**config))(batch)
    return objective, nll


class WithTerm(TrainingConfig):
    mass: float = 0.5


def mass(decoded: Decoded, batch: Batch) -> Tensor:
    return (decoded.attention.sum(-1) * batch.tgt_mask).sum()


def test_the_objective_adds_a_term_with_its_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    model, batch = make()
    plain, plain_nll = loss_of(model, batch)
    monkeypatch.setitem(LOSS_TERMS, "mass", Part(f"{__name__}:mass"))
    objective, nll = Loss(model, WithTerm())(batch)
    assert nll.item() == plain_nll.item()
    assert (objective - plain).item() == pytest.approx(0.5 * batch.n_tokens)


def test_soft_targets_share_the_objective_with_the_words() -> None:
    model, batch = make()
    ids = torch.stack([torch.randperm(13)[:3] for _ in range(batch.n_tokens)])
    soft = replace(
        batch,
        soft_targets=SoftTargets(ids, torch.full((batch.n_tokens, 3), 0.25, dtype=torch.float64)),
    )
    plain, nll = loss_of(model, batch)
    assert loss_of(model, soft)[0].item() == plain.item()
    objective, soft_nll = loss_of(model, soft, distillation=0.5, label_smoothing=0.1)
    smoothed, _ = loss_of(model, batch, label_smoothing=0.1)
    vectors = model(batch.src, batch.src_lengths, batch.tgt_in).vectors
    log_probs = model.output.log_probs(vectors.flatten(0, 1)[batch.token_positions])
    expected = -0.25 * log_probs.gather(1, ids).sum() - 0.25 / 13 * log_probs.sum()
    assert objective.item() == pytest.approx((0.5 * smoothed + 0.5 * expected).item(), rel=1e-10)
    assert soft_nll.item() == pytest.approx(nll.item(), rel=1e-10)


@pytest.mark.parametrize(
    "kind",
    [{}, {"attention": {"kind": "local_p"}}, {"attention": {"score": "dot"}}],
    ids=str,
)
def test_padding_changes_neither_loss_nor_gradient(kind: dict[str, Any]) -> None:
    sizes = {"encoder": {"hidden_size": 4}, "decoder": {"hidden_size": 8}}
    model, batch = make(**sizes, **kind)
    model.zero_grad()
    together, _ = loss_of(model, batch)
    together.backward()
    gradients = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    total = 0.0
    for src, tgt in (([5, 6, 7], [4, 5]), ([8], [6, 7, 8, 9])):
        alone, _ = loss_of(model, build_batch([src], [tgt]))
        alone.backward()
        total += alone.item()
    assert together.item() == pytest.approx(total, abs=1e-10)
    for name, gradient in gradients.items():
        torch.testing.assert_close(gradient, model.get_parameter(name).grad, atol=1e-10, rtol=0)
