"""Beam search; greedy search is beam 1, and sampling is a beam whose hypotheses go their own ways.

A sentence has K hypotheses. At each step every live one is extended by every token, the best K of all extensions are kept, and
those that end in <eos> are set aside: they are finished, and their place in the beam stays empty. So a beam of 1 is greedy search.
Within a step all are equally long, so log-probability alone decides; what has ended is ranked by one formula (`ranking`). What had
to be cut at the maximum length comes after all that ended by itself. A sentence leaves the batch when no live hypothesis of it can
still be among those asked for.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nmt.config.schema import DecodingConfig
from nmt.decoding.candidates import Candidates, banned_ids, sample, without_banned
from nmt.decoding.hypothesis import End, Ends, Hypothesis, Trace, trace_attention, trace_back
from nmt.decoding.ranking import hypothesis_score, upper_bound
from nmt.model.topk import log_norm, topk_log_probs
from nmt.model.translation_model import TranslationModel

ROOM = 10  # tokens that any translation may have, however short the source


@dataclass(frozen=True)
class SpecialIds:
    """The ids that search must know: where a hypothesis begins and ends, and what it never contains (one id at least)."""

    sos: int
    eos: int
    forbidden: tuple[int, ...]


@dataclass(frozen=True)
class Sentence:
    """What search must know of a sentence.

    Attributes:
        src_length: S, <eos> counted.
        prefix: the ids its translations begin with.
        key: with the seed, all that its draws follow from.
    """

    src_length: int
    prefix: Sequence[int] = ()
    key: Sequence[int] = ()

    def max_length(self, options: DecodingConfig) -> int:
        """Tokens at which a hypothesis is cut; there is room after a prefix too."""
        return max(int(options.max_length_ratio * self.src_length), len(self.prefix)) + ROOM

    def min_length(self, options: DecodingConfig) -> int:
        """Tokens before which <eos> may not come."""
        return int(options.min_length_ratio * (self.src_length - 1))


@dataclass(frozen=True)
class _Live:
    """The b sentences under way after t steps, and the K hypotheses of each.

    Attributes:
        sentence: [b], their places in the batch.
        log_prob: [b, K], -inf where a hypothesis has ended, or none has begun.
        said: [b, K, t], the ids so far; empty unless n-grams may not be repeated.
    """

    sentence: Tensor
    log_prob: Tensor
    said: Tensor

    def __len__(self) -> int:
        return len(self.sentence)

    def select(self, rows: Tensor) -> "_Live":
        """The sentences in the rows [R]."""
        return _Live(self.sentence[rows], self.log_prob[rows], self.said[rows])


def search(
    model: TranslationModel,
    state: Any,
    memory: Any,
    sentences: Sequence[Sentence],
    special: SpecialIds,
    options: DecodingConfig,
    n_best: int = 1,
) -> list[list[Hypothesis]]:
    """Translate a batch.

    Args:
        state, memory: of the B `sentences`, a row each.
        n_best: hypotheses returned, at most the beam; so many are drawn in sampling.

    Returns:
        for each sentence its `n_best` hypotheses (fewer where there are no more), best first.

    Raises:
        NonFiniteError: the model's scores are not numbers.
    """
    batch = _Batch(sentences, special, options, n_best)
    traces: list[Trace] = []
    live, ids = batch.start(), torch.full((len(sentences) * batch.beam,), special.sos)
    rows = torch.arange(len(sentences)).repeat_interleave(batch.beam)
    while len(live):
        state = state.select(rows.to(model.device))
        stepped = model.step(ids.to(model.device), state, memory)
        found = batch.extend(model, stepped.vector, live, len(traces))
        traces.append(batch.choose(found, live, stepped.attention))
        live = batch.advance(live, traces)
        staying = batch.undecided(live)
        if len(staying) < len(live):
            memory = memory.select(staying.to(model.device))
        # A hypothesis goes on from the state of the one it extends.
        rows = (torch.from_numpy(traces[-1].parents)[staying] + batch.beam * staying.unsqueeze(1)).flatten()
        ids, state, live = torch.from_numpy(traces[-1].ids)[staying].flatten(), stepped.state, live.select(staying)
    return [[trace_back(traces, end, batch.src_length[end.sentence]) for end in ends] for ends in batch.ends.best]


class _Batch:
    """What does not change while a batch of B sentences is searched, and what has ended."""

    def __init__(self, sentences: Sequence[Sentence], special: SpecialIds, options: DecodingConfig, n_best: int) -> None:
        self.special, self.options = special, options
        self.samples = options.method == "sampling"
        self.beam = n_best if self.samples else options.beam
        self.src_length = [sentence.src_length for sentence in sentences]
        self.max_length = torch.tensor([float(sentence.max_length(options)) for sentence in sentences], dtype=torch.double)
        self.min_length = torch.tensor([sentence.min_length(options) for sentence in sentences])
        self.prefix = torch.full((len(sentences), max(len(sentence.prefix) for sentence in sentences)), -1)
        for row, sentence in zip(self.prefix, sentences, strict=True):
            row[: len(sentence.prefix)] = torch.tensor(sentence.prefix, dtype=torch.long)
        self.draws = [self._draw(sentence) for sentence in sentences] if self.samples else []
        self.ends = Ends(len(sentences), n_best)

    def _draw(self, sentence: Sentence) -> Tensor:
        """[K, T]: what a sample is drawn with depends neither on the batch nor on the number of samples."""
        random = np.random.default_rng([self.options.seed, *sentence.key])
        return torch.from_numpy(random.random((self.beam, sentence.max_length(self.options))))

    def start(self) -> _Live:
        """One hypothesis a sentence, the empty one; in sampling, K of them."""
        n_sentences = len(self.src_length)
        log_prob = torch.full((n_sentences, self.beam), float("-inf"), dtype=torch.double)
        log_prob[:, : self.beam if self.samples else 1] = 0
        return _Live(torch.arange(n_sentences), log_prob, torch.empty(n_sentences, self.beam, 0, dtype=torch.long))

    def extend(self, model: TranslationModel, vectors: Tensor, live: _Live, t: int) -> Candidates:
        """How the hypotheses may go on after t tokens: [b, K, k]."""
        alive = live.log_prob > float("-inf")
        rows = alive.flatten().nonzero().squeeze(1)  # [R], for what has ended needs no words
        vectors = vectors if len(rows) == len(vectors) else vectors[rows.to(vectors.device)]
        sentence = live.sentence.repeat_interleave(self.beam)[rows]
        banned = banned_ids(
            live.said.flatten(0, 1)[rows],
            self.min_length[sentence] > t,
            self.special.forbidden,
            eos=self.special.eos,
            ngram=self.options.no_repeat_ngram,
        )
        if self.samples:
            uniform = torch.stack([self.draws[i][:, t] for i in live.sentence.tolist()])[alive]
            scores = model.compute_logits(vectors)
            found = sample(scores, log_norm(scores), banned, uniform, self.options)
        else:

            def threshold(ids: Tensor, log_probs: Tensor) -> Tensor:
                """With it, a hypothesis reaches the least of the K best that its sentence has already."""
                total = live.log_prob.unsqueeze(2) + without_banned(ids, log_probs, banned).scatter_to_beam(alive).log_probs
                return (total.flatten(1).topk(self.beam).values[:, -1:] - live.log_prob)[alive]

            # The best K that are allowed are among the best K + M: no score need be overwritten.
            width = self.beam + banned.shape[1]
            found = without_banned(*model.topk_log_probs(vectors, width, threshold), banned)
            if found.has_no_candidate.any():  # perhaps there are other words, which did not reach the threshold
                found = without_banned(*topk_log_probs(model.compute_logits(vectors), width), banned)
        forced = torch.where(found.has_no_candidate, self.special.eos, -1)  # where everything is banned, the hypothesis ends
        if t < self.prefix.shape[1]:
            forced = torch.where(self.prefix[sentence, t] < 0, forced, self.prefix[sentence, t])
        if (forced >= 0).any():
            scores = model.compute_logits(vectors)
            found = found.force(forced, scores, log_norm(scores))
        return found.scatter_to_beam(alive)

    def choose(self, found: Candidates, live: _Live, attention: Tensor) -> Trace:
        """The K extensions of each sentence that are kept; in sampling, one of each hypothesis."""
        k = found.ids.shape[2]
        total = (live.log_prob.unsqueeze(2) + found.log_probs).flatten(1)  # [b, K * k]
        chosen = torch.arange(self.beam).expand(len(live), -1) if self.samples else total.topk(self.beam).indices
        ids, log_probs = (part.flatten(1).gather(1, chosen) for part in (found.ids, found.log_probs))
        position = torch.full((len(self.src_length),), -1)
        position[live.sentence] = torch.arange(len(live))
        weights = attention.float().cpu().unflatten(0, (len(live), -1))
        return Trace(position.numpy(), ids.numpy(), (chosen // k).numpy(), log_probs.numpy(), weights.numpy())

    def advance(self, live: _Live, traces: Sequence[Trace]) -> _Live:
        """The hypotheses with what was chosen; those that ended with it, by <eos> or by the maximum length, are set aside."""
        ids, parents = torch.from_numpy(traces[-1].ids), torch.from_numpy(traces[-1].parents)
        log_prob = live.log_prob.gather(1, parents) + torch.from_numpy(traces[-1].log_probs)
        complete = ids == self.special.eos
        ended = (complete | (self.max_length[live.sentence] <= len(traces)).unsqueeze(1)) & (log_prob > float("-inf"))
        # What cannot come among the best need not be looked at further; ends are many, and most are no good.
        hope = upper_bound(log_prob, torch.tensor(len(traces)), self.options)
        good = ended & ((hope > self.ends.least[live.sentence].unsqueeze(1)) | ~complete)
        for row, slot in good.nonzero().tolist():
            sentence = int(live.sentence[row])
            sums = None
            if self.options.coverage_penalty:
                sums = trace_attention(traces, sentence, slot, self.src_length[sentence]).sum(0, dtype=np.float64)
            score = hypothesis_score(float(log_prob[row, slot]), len(traces), sums, self.options)
            self.ends.add(End(sentence, score, float(log_prob[row, slot]), len(traces) - 1, slot, bool(complete[row, slot])))
        said = live.said
        if self.options.no_repeat_ngram is not None:
            said = torch.cat([said.gather(1, parents.unsqueeze(2).expand(-1, -1, said.shape[2])), ids.unsqueeze(2)], 2)
        return _Live(live.sentence, log_prob.masked_fill(ended, float("-inf")), said)

    def undecided(self, live: _Live) -> Tensor:
        """The rows of the sentences whose n best may still change."""
        top = live.log_prob.amax(1)
        hope = upper_bound(top, self.max_length[live.sentence], self.options)
        return ((top > float("-inf")) & (hope > self.ends.least[live.sentence])).nonzero().squeeze(1)
