"""Minimum risk training against the equations, by brute force over all translations of a tiny
vocabulary.
"""

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU

from nmt.config.schema import ModelConfig, RiskConfig
from nmt.data.batches import Batch, build_batch
from nmt.model.seq2seq import Seq2Seq
from nmt.text.vocabulary import EOS, SOS
from nmt.training import risk
from nmt.training.loop import forward_backward
from nmt.training.objective import Objective
from nmt.training.optimization import build_optimizer
from nmt.training.risk import batch_risk, expected_costs, find_candidates, sequence_log_probs
from tests.training.test_loop import make_config, make_corpus, make_model

WORDS = (4, 5)
ALL = [
    list(ids) for length in range(4) for ids in product(WORDS, repeat=length)
]  # the translations of at most three words
BATCH = build_batch([[5, 6, 7], [8]], [[4, 5], [5, 4, 4]])
GNMT = {"decoder": {"kind": "gnmt", "layers": 2, "hidden_size": 7}}
ADAPTIVE = {"output": "adaptive", "cutoffs": [3, 5]}


def make(**values: Any) -> Seq2Seq:
    torch.manual_seed(1)
    sizes = {
        "embedding_size": 6,
        "dropout": 0.0,
        "encoder": {"hidden_size": 4},
        "decoder": {"hidden_size": 7},
    }
    model = Seq2Seq(ModelConfig.model_validate({**sizes, **values}), 11, 6).double()
    if model.lexical_bias is not None:
        model.lexical_bias.fill(
            torch.tensor([[4, 5]]).expand(11, 2), torch.linspace(0, 0.5, 22).view(11, 2)
        )
    return model


def log_prob(model: Seq2Seq, batch: Batch, sentence: int, ids: list[int]) -> torch.Tensor:
    """log P(y | x), step by step."""
    length = int(batch.src_lengths[sentence])
    memory = model.encode(
        batch.src[sentence : sentence + 1, :length], batch.src_lengths[sentence : sentence + 1]
    )
    state, last, total = model.start(memory), SOS, torch.zeros((), dtype=torch.float64)
    for word in [*ids, EOS]:
        output = model.step(torch.tensor([last]), state, memory)
        total = total + model.output.log_probs(output.vector)[0, word]
        state, last = output.state, word
    return total


def bleu(ids: list[int], reference: list[int]) -> float:
    words, reference_words = (" ".join(f"w{index}" for index in row) for row in (ids, reference))
    return float(BLEU(effective_order=True).sentence_score(words, [reference_words]).score) / 100


@pytest.mark.parametrize(
    "kind",
    [{}, GNMT, ADAPTIVE, {"lexical_bias": 2}],
    ids=["luong", "gnmt", "adaptive", "lexical bias"],
)
def test_risk_and_gradient_equal_those_by_enumeration(
    kind: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, sharpness = make(**kind), 0.6
    monkeypatch.setattr(risk, "find_candidates", lambda *_: [ALL, ALL[3:8]])
    expected = torch.zeros((), dtype=torch.float64)
    for sentence, (reference, candidates) in enumerate((([4, 5], ALL), ([5, 4, 4], ALL[3:8]))):
        powers = torch.stack(
            [(sharpness * log_prob(model, BATCH, sentence, ids)).exp() for ids in candidates]
        )
        errors = torch.tensor([1 - bleu(ids, reference) for ids in candidates], dtype=torch.float64)
        expected = expected + (len(reference) + 1) * (powers * errors).sum() / powers.sum()
    result = batch_risk(model, BATCH, RiskConfig(weight=1, sharpness=sharpness), seed=1)
    assert result.item() == pytest.approx(expected.item(), rel=1e-10)
    parameters = dict(model.named_parameters())
    gradients = torch.autograd.grad(expected, list(parameters.values()))
    for (name, _), ours, theirs in zip(
        parameters.items(),
        torch.autograd.grad(result, list(parameters.values())),
        gradients,
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs, atol=1e-10, rtol=1e-8, msg=name)


def test_the_gradient_moves_probability_to_candidates_below_the_expected_cost() -> None:
    """dR / d log P(y) = alpha Q(y) (Delta(y) - R)."""
    log_probs = torch.tensor(
        [[-1.0, -2.0, -3.0], [-1.0, -1.5, float("-inf")]], dtype=torch.float64, requires_grad=True
    )
    costs = [np.array([0.2, 0.6, 0.4]), np.array([0.9, 0.1])]
    result = expected_costs(log_probs, costs, sharpness=0.5)
    (gradient,) = torch.autograd.grad(result.sum(), log_probs)
    for row, values in enumerate(costs):
        q = np.exp(0.5 * log_probs[row, : len(values)].detach().numpy())
        q /= q.sum()
        assert result[row].item() == pytest.approx((q * values).sum())
        assert gradient[row, : len(values)].tolist() == pytest.approx(
            (0.5 * q * (values - (q * values).sum())).tolist()
        )
    assert gradient[1, 2] == 0


@given(
    st.lists(
        st.lists(st.lists(st.sampled_from(WORDS), max_size=5), min_size=1, max_size=4),
        min_size=2,
        max_size=2,
    )
)
def test_log_probs_of_candidates_are_those_of_the_steps(candidates: list[list[list[int]]]) -> None:
    model = make()
    with torch.no_grad():
        log_probs = sequence_log_probs(model, BATCH, candidates)
        for sentence, of_sentence in enumerate(candidates):
            expected = [log_prob(model, BATCH, sentence, ids).item() for ids in of_sentence]
            assert log_probs[sentence, : len(expected)].tolist() == pytest.approx(expected)
            assert (log_probs[sentence, len(expected) :] == float("-inf")).all()


@pytest.mark.parametrize("kind", ["sampling", "beam"])
def test_candidates_differ_and_depend_on_the_seed_alone(kind: str) -> None:
    model, config = (
        make(dropout=0.5).train(),
        RiskConfig.model_validate({"candidates": kind, "size": 6}),
    )
    candidates = find_candidates(model, BATCH, config, seed=1)
    assert model.training
    assert len(candidates) == 2
    for of_sentence in candidates:
        assert 1 < len(of_sentence) <= 6
        assert len({tuple(ids) for ids in of_sentence}) == len(of_sentence)
        assert not any({SOS, EOS} & {*ids} for ids in of_sentence)
    assert find_candidates(model, BATCH, config, seed=1) == candidates
    assert (find_candidates(model, BATCH, config, seed=2) == candidates) == (kind == "beam")


def test_a_failed_search_leaves_the_model_in_training_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory(*_: object, **__: object) -> None:
        raise torch.OutOfMemoryError

    monkeypatch.setattr(risk, "search", no_memory)
    model = make().train()
    with pytest.raises(torch.OutOfMemoryError):
        find_candidates(model, BATCH, RiskConfig(), seed=1)
    assert model.training


def test_the_objective_mixes_cross_entropy_and_risk_and_is_repeatable() -> None:
    corpus, _ = make_corpus(5, seed=1)
    batch = build_batch([corpus.src[i] for i in range(5)], [corpus.tgt[i] for i in range(5)])
    sums = {}
    for weight in (0.0, 0.25, 1.0):
        config = make_config(
            training={"risk": {"weight": weight, "size": 4}, "label_smoothing": 0.1}
        )
        model = make_model(config)
        optimizer = build_optimizer(model, config.training)
        sums[weight] = forward_backward(
            Objective(model, config.training), optimizer, [batch], 7, config
        )
        gradients = [
            parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None
        ]
        # The same update again, as after a resume.
        assert torch.equal(
            forward_backward(Objective(model, config.training), optimizer, [batch], 7, config),
            sums[weight],
        )
        for parameter, gradient in zip(model.parameters(), gradients, strict=True):
            assert parameter.grad is not None
            assert torch.equal(parameter.grad, gradient)
    assert sums[0.25][0].item() == pytest.approx(
        0.75 * sums[0.0][0].item() + 0.25 * sums[1.0][0].item()
    )
    assert (
        0.5 < sums[1.0][0].item() / batch.n_tokens <= 1
    )  # an untrained model is nearly always wrong
    for weight in (0.25, 1.0):
        assert sums[weight][1:].tolist() == sums[0.0][1:].tolist()  # the reported nll is plain


def test_training_lowers_the_risk() -> None:
    model = make(output="softmax")
    optimizer, config = torch.optim.Adam(model.parameters(), 0.02), RiskConfig(weight=1, size=8)
    risks = []
    for step in range(40):
        optimizer.zero_grad()
        loss = batch_risk(model, BATCH, config, seed=step)
        loss.backward()
        optimizer.step()
        risks.append(loss.item() / BATCH.n_tokens)
    assert np.mean(risks[-5:]) < np.mean(risks[:5]) / 2
