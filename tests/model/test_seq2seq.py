"""The whole model: padding changes nothing, and the fast path, the loop and single steps agree."""

from itertools import product
from typing import Any

import pytest
import torch

from nmt.config import ModelConfig
from nmt.model.seq2seq import Seq2Seq

SRC_V, TGT_V = 11, 13
SRC_LENGTHS = torch.tensor([5, 2, 4])

KINDS: dict[str, dict[str, Any]] = {
    "luong": {"decoder": {"kind": "luong", "hidden_size": 7}},
    "luong input feeding": {"decoder": {"kind": "luong", "hidden_size": 7, "input_feeding": True, "readout_size": 5}},
    "luong concat readout": {"decoder": {"kind": "luong", "hidden_size": 7, "readout": "concat"}},
    "luong without attention": {"decoder": {"kind": "luong", "hidden_size": 7}, "attention": {"score": "none"}},
    "bahdanau": {"decoder": {"kind": "bahdanau", "hidden_size": 7, "readout": "state"}, "attention": {"score": "additive"}},
    "bahdanau deep": {"decoder": {"kind": "bahdanau", "hidden_size": 7, "readout": "deep"}, "attention": {"score": "additive"}},
    "bahdanau maxout": {"decoder": {"kind": "bahdanau", "hidden_size": 7, "readout": "maxout"}, "attention": {"score": "concat"}},
    "stacked": {"encoder": {"hidden_size": 4, "layers": 2}, "decoder": {"hidden_size": 7, "layers": 3}},
    "tied": {"decoder": {"hidden_size": 7}, "tie_embeddings": "target"},
}
CELLS = ["lstm", "gru", "elman"]


def make(kind: str, cell: str, *, bidirectional: bool = True, dropout: float = 0.0) -> Seq2Seq:
    torch.manual_seed(2)
    values: dict[str, Any] = {"embedding_size": 6, "encoder": {"hidden_size": 4}, "dropout": dropout, **KINDS[kind]}
    values["encoder"] = {**values["encoder"], "cell": cell, "bidirectional": bidirectional}
    values["decoder"] = {**values["decoder"], "cell": cell}
    return Seq2Seq(ModelConfig.model_validate(values), SRC_V, TGT_V).double()


def make_batch() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(3)
    return torch.randint(4, SRC_V, (3, 5)), torch.randint(4, TGT_V, (3, 6))


@pytest.mark.parametrize(("kind", "cell", "bidirectional"), list(product(KINDS, CELLS, [True, False])))
def test_a_sentence_in_a_padded_batch_is_as_if_alone(kind: str, cell: str, bidirectional: bool) -> None:
    model = make(kind, cell, bidirectional=bidirectional)
    src, tgt = make_batch()
    together = model(src, SRC_LENGTHS, tgt)
    for row, length in enumerate(SRC_LENGTHS.tolist()):
        alone = model(src[row : row + 1, :length], SRC_LENGTHS[row : row + 1], tgt[row : row + 1])
        torch.testing.assert_close(together.vectors[row : row + 1], alone.vectors, atol=1e-12, rtol=0)
        torch.testing.assert_close(together.attention[row : row + 1, :, :length], alone.attention, atol=1e-12, rtol=0)
        assert (together.attention[row, :, length:] == 0).all()


@pytest.mark.parametrize(("kind", "cell"), list(product(KINDS, CELLS)))
def test_padding_gets_no_gradient_and_gives_none(kind: str, cell: str) -> None:
    model = make(kind, cell)
    src, tgt = make_batch()
    gradients = []
    for filler in (5, 9):  # whatever stands on padding
        padded = torch.where(torch.arange(5) < SRC_LENGTHS.unsqueeze(1), src, filler)
        model.zero_grad()
        model.output(model(padded, SRC_LENGTHS, tgt).vectors).logsumexp(-1).sum().backward()
        gradients.append({name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None})
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradient, gradients[1][name], atol=1e-12, rtol=0)


@pytest.mark.parametrize(("kind", "cell"), list(product(KINDS, CELLS)))
def test_unrolling_equals_single_steps(kind: str, cell: str) -> None:
    model = make(kind, cell)
    src, tgt = make_batch()
    decoded = model(src, SRC_LENGTHS, tgt)
    memory = model.encode(src, SRC_LENGTHS)
    state = model.start(memory)
    for position in range(tgt.shape[1]):
        output = model.step(tgt[:, position], state, memory)
        state = output.state
        torch.testing.assert_close(output.vector, decoded.vectors[:, position], atol=1e-12, rtol=0)
        torch.testing.assert_close(output.attention, decoded.attention[:, position], atol=1e-12, rtol=0)


@pytest.mark.parametrize(("kind", "cell"), list(product(KINDS, CELLS)))
def test_the_loop_fed_gold_has_the_loss_and_gradients_of_the_fast_path(kind: str, cell: str) -> None:
    model = make(kind, cell)
    src, tgt = make_batch()
    results = []
    for gold in (None, torch.ones_like(tgt, dtype=torch.bool)):
        model.zero_grad()
        decoded = model(src, SRC_LENGTHS, tgt, gold)
        loss, _ = model.output.loss(decoded.vectors.flatten(0, 1), tgt.flatten())
        loss.backward()
        results.append((loss, {name: p.grad for name, p in model.named_parameters() if p.grad is not None}))
    (fast, fast_gradients), (loop, loop_gradients) = results
    torch.testing.assert_close(fast, loop, atol=1e-10, rtol=0)
    assert fast_gradients.keys() == loop_gradients.keys()
    for name, gradient in fast_gradients.items():
        torch.testing.assert_close(gradient, loop_gradients[name], atol=1e-10, rtol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_without_gold_the_model_reads_its_own_outputs(kind: str) -> None:
    model = make(kind, "lstm")
    src, tgt = make_batch()
    gold = torch.zeros_like(tgt, dtype=torch.bool)
    free = model(src, SRC_LENGTHS, tgt, gold)
    own = model.output(free.vectors).argmax(-1)
    fed = torch.cat([tgt[:, :1], own[:, :-1]], 1)
    torch.testing.assert_close(free.vectors, model(src, SRC_LENGTHS, fed).vectors, atol=1e-10, rtol=0)


def test_selecting_rows_of_memory_and_state_is_translating_those_sentences() -> None:
    model = make("luong input feeding", "lstm")
    src, tgt = make_batch()
    memory = model.encode(src, SRC_LENGTHS)
    state = model.step(tgt[:, 0], model.start(memory), memory).state
    whole = model.step(tgt[:, 1], state, memory)
    rows = torch.tensor([2, 0, 0])
    some = model.step(tgt[rows, 1], state.select(rows), memory.select(rows))
    torch.testing.assert_close(some.vector, whole.vector[rows])


def test_dropout_acts_in_training_alone() -> None:
    model = make("stacked", "gru", dropout=0.5)
    src, tgt = make_batch()
    assert not torch.equal(model(src, SRC_LENGTHS, tgt).vectors, model(src, SRC_LENGTHS, tgt).vectors)
    model.eval()
    assert torch.equal(model(src, SRC_LENGTHS, tgt).vectors, model(src, SRC_LENGTHS, tgt).vectors)


def test_tied_embeddings_are_one_parameter() -> None:
    model = make("tied", "lstm")
    assert model.output.logits.weight is model.tgt_embedding.weight
