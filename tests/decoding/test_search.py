"""Search over models whose probabilities are written down, so that the winners can be worked out by hand."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from nmt.config import ModelConfig
from nmt.decoding.search import Hypothesis, SearchOptions, SpecialIds, extend, rank, search
from nmt.decoding.translator import SPECIAL_IDS, search_batch
from nmt.model.seq2seq import Seq2Seq
from nmt.text.batching import pad_sources
from nmt.text.vocabulary import EOS, SOS

A, B, V = 4, 5, 6
SPECIAL = SpecialIds(sos=SOS, eos=EOS, forbidden=(0, 1, 2))
Table = Callable[[int, Sequence[int]], dict[int, float]]


@dataclass(frozen=True)
class Prefixes:
    """The state of a scripted model: which sentence each row belongs to, and what was said so far."""

    sentence: Tensor
    ids: Tensor

    def select(self, rows: Tensor) -> "Prefixes":
        return Prefixes(self.sentence[rows], self.ids[rows])


def scripted(table: Table, src_lengths: Sequence[int], options: SearchOptions) -> list[list[Hypothesis]]:
    """Search where `table` gives the probabilities of the token after a prefix. Each token looks at position (prefix length)."""
    width = max(src_lengths)

    def step(ids: Tensor, state: Prefixes, memory: Prefixes) -> tuple[Tensor, Tensor, Prefixes]:
        assert torch.equal(state.sentence, memory.sentence)  # memory and state stay side by side
        prefixes = torch.cat([state.ids, ids.unsqueeze(1)], 1)
        log_probs = torch.full((len(ids), V), float("-inf"), dtype=torch.float64)
        for row, (sentence, prefix) in enumerate(zip(state.sentence.tolist(), prefixes.tolist(), strict=True)):
            for token, probability in table(sentence, prefix[1:]).items():
                log_probs[row, token] = log(probability)
        attention = torch.zeros(len(ids), width)
        attention[:, (prefixes.shape[1] - 1) % width] = torch.arange(1, len(ids) + 1).float()
        return log_probs, attention, Prefixes(state.sentence, prefixes)

    start = Prefixes(torch.arange(len(src_lengths)), torch.empty(len(src_lengths), 0, dtype=torch.long))
    return search(step, start, start, src_lengths, SPECIAL, options)


def garden_path(sentence: int, prefix: Sequence[int]) -> dict[int, float]:
    """The likelier first word leads to the less likely sentence.

    A (0.6) then <eos> (0.4) or A (0.3) or B (0.3); B (0.4) then <eos> (0.9) or A (0.1); whatever is longer ends for certain.
    So: A = 0.24, B = 0.36, A A = A B = 0.18, B A = 0.04.
    """
    return {(): {A: 0.6, B: 0.4}, (A,): {EOS: 0.4, A: 0.3, B: 0.3}, (B,): {EOS: 0.9, A: 0.1}}.get(tuple(prefix), {EOS: 1.0})


def test_greedy_takes_the_garden_path_and_a_beam_does_not() -> None:
    ((greedy,),) = scripted(garden_path, [3], SearchOptions(beam=1, length_penalty=0))
    assert (greedy.ids, greedy.complete) == ([A], True)
    assert greedy.log_prob == pytest.approx(log(0.24))
    ((best,),) = scripted(garden_path, [3], SearchOptions(beam=2, length_penalty=0))
    assert best.ids == [B]
    assert best.log_prob == best.score == pytest.approx(log(0.36))
    assert sum(best.token_log_probs) == pytest.approx(best.log_prob)
    assert len(best.token_log_probs) == len(best.attention) == len(best.ids) + 1


def test_n_best_are_ranked() -> None:
    (found,) = scripted(garden_path, [3], SearchOptions(beam=5, n_best=5, length_penalty=0))
    assert [tuple(hypothesis.ids) for hypothesis in found][:2] == [(B,), (A,)]
    assert {tuple(hypothesis.ids) for hypothesis in found[2:4]} == {(A, A), (A, B)}
    assert found[4].ids == [B, A]
    assert [h.log_prob for h in found] == pytest.approx([log(p) for p in (0.36, 0.24, 0.18, 0.18, 0.04)])


def test_the_length_penalty_changes_the_winner() -> None:
    """log 0.36 / 2 = -0.51 for B, but log 0.18 / 3 = -0.57: B wins; with exponent 2 it is -0.26 against -0.19."""
    ((best,),) = scripted(garden_path, [3], SearchOptions(beam=5, length_penalty=1))
    assert best.ids == [B]
    ((best,),) = scripted(garden_path, [3], SearchOptions(beam=5, length_penalty=2))
    assert len(best.ids) == 2
    assert best.score == pytest.approx(log(0.18) / 9)


def test_what_never_ends_is_cut_at_the_maximum_length() -> None:
    ((found,),) = scripted(lambda *_: {A: 1.0}, [3], SearchOptions(beam=2, max_length_ratio=2))
    assert (found.ids, found.complete) == ([A] * 16, False)
    assert found.attention.shape == (16, 3)


def test_a_complete_translation_is_preferred_to_one_that_was_cut() -> None:
    def ends_seldom(sentence: int, prefix: Sequence[int]) -> dict[int, float]:
        return {A: 0.99, EOS: 0.01}

    ((found,),) = scripted(ends_seldom, [1], SearchOptions(beam=2))
    assert found.complete


def test_attention_follows_the_back_pointers() -> None:
    """Row k of the scripted attention is k + 1 at the step's position, so it tells which slot was extended."""
    ((best,),) = scripted(garden_path, [3], SearchOptions(beam=2, length_penalty=0))
    np.testing.assert_array_equal(best.attention, [[1, 0, 0], [0, 2, 0]])  # B was second when it was extended


def random_table(seed: int) -> Table:
    def table(sentence: int, prefix: Sequence[int]) -> dict[int, float]:
        random = np.random.default_rng([seed, sentence, *prefix])
        p = random.dirichlet([0.7, 0.7, 0.7])
        return {EOS: float(p[0]), A: float(p[1]), B: float(p[2])}

    return table


@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.6, 1.0]))
def test_a_wide_beam_is_exhaustive_search(seed: int, length_penalty: float) -> None:
    table, longest = random_table(seed), 4

    def bounded(sentence: int, prefix: Sequence[int]) -> dict[int, float]:
        return table(sentence, prefix) if len(prefix) < longest else {EOS: 1.0}

    scores = {}
    for length in range(longest + 1):
        for ids in itertools.product((A, B), repeat=length):
            steps = [log(bounded(0, ids[:i])[token]) for i, token in enumerate([*ids, EOS])]
            scores[ids] = rank(sum(steps), length + 1, length_penalty)
    ((best,),) = scripted(bounded, [1], SearchOptions(beam=2 ** (longest + 1), length_penalty=length_penalty))
    assert tuple(best.ids) == max(scores, key=lambda ids: scores[ids])
    assert best.score == pytest.approx(max(scores.values()))


def only(table: Table, sentence: int) -> Table:
    """The table of a batch that holds nothing but `sentence`."""
    return lambda _, prefix: table(sentence, prefix)


@given(st.integers(0, 10_000), st.integers(1, 4))
def test_a_batch_is_its_sentences(seed: int, beam: int) -> None:
    table, options = random_table(seed), SearchOptions(beam=beam, n_best=beam)
    together = scripted(table, [2, 1, 4], options)
    for sentence, length in enumerate([2, 1, 4]):
        (alone,) = scripted(only(table, sentence), [length], options)
        assert [h.ids for h in together[sentence]] == [h.ids for h in alone]
        assert [h.attention.shape for h in together[sentence]] == [(len(h.ids) + h.complete, length) for h in alone]
        assert [h.score for h in together[sentence]] == pytest.approx([h.score for h in alone])


def test_extend_finds_the_best_of_all_candidates() -> None:
    torch.manual_seed(1)
    n, beam, vocabulary = 3, 4, 9
    log_probs, log_prob = torch.randn(n * beam, vocabulary), torch.randn(n, beam)
    best, parents, tokens = extend(log_probs.clone(), log_prob, (2,))
    log_probs[:, 2] = float("-inf")
    total = log_prob.unsqueeze(2) + log_probs.view(n, beam, vocabulary)
    expected, flat = total.flatten(1).topk(beam)
    torch.testing.assert_close(best, expected)
    assert torch.equal(parents * vocabulary + tokens, flat)


def make_model(**attention: Any) -> Seq2Seq:
    torch.manual_seed(4)
    sizes = {"embedding_size": 8, "encoder": {"hidden_size": 8}, "decoder": {"hidden_size": 16}, "dropout": 0.0}
    model = Seq2Seq(ModelConfig.model_validate({**sizes, "attention": attention}), 12, 12).eval()
    for parameter in model.parameters():  # far from uniform, so that sentences differ
        parameter.data.mul_(4)
    return model


@pytest.mark.parametrize(
    "attention", [{}, {"kind": "local_m"}, {"kind": "local_p", "heads": 2}, {"kind": "coverage", "score": "additive"}], ids=str
)
def test_beam_1_is_greedy_and_the_batch_does_not_matter(attention: dict[str, Any]) -> None:
    model = make_model(**attention)
    random = np.random.default_rng(1)
    sources = [random.integers(4, 12, size=length).tolist() for length in random.integers(1, 9, size=20)]
    together = search_batch(model, sources, SearchOptions(beam=1))
    for source, (found,) in zip(sources, together, strict=True):
        assert found.ids == greedy(model, source)
        assert found.attention.shape[0] == len(found.ids) + found.complete
    for beam in (1, 3):
        wide = search_batch(model, sources, SearchOptions(beam=beam))
        assert [h[0].ids for h in wide] == [search_batch(model, [source], SearchOptions(beam=beam))[0][0].ids for source in sources]


@torch.inference_mode()
def greedy(model: Seq2Seq, source: list[int]) -> list[int]:
    """One sentence, one step at a time, the likeliest token each time."""
    src, lengths = pad_sources([source])
    memory = model.encode(src, lengths)
    state, ids = model.start(memory), [SOS]
    while len(ids) - 1 < 2 * int(lengths) + 10:
        output = model.step(torch.tensor(ids[-1:]), state, memory)
        state, logits = output.state, model.output(output.vector)[0]
        logits[list(SPECIAL_IDS.forbidden)] = float("-inf")
        ids.append(int(logits.argmax()))
        if ids[-1] == EOS:
            return ids[1:-1]
    return ids[1:]
