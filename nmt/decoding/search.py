"""Beam search; greedy search (a beam of 1); sampling.

Every sentence has a beam: K slots for hypotheses of the same length. A step of the search:

1. step: the model reads the last token of each hypothesis.
2. extend: each open hypothesis gets candidates for its next token.
3. choose: the K most probable extensions of a sentence become its hypotheses. In sampling, each
   hypothesis has one extension.
4. finish: a hypothesis ends with <eos>, or at the maximum length. It gets a score, and leaves the
   beam.
5. leave: a sentence leaves the batch when no open hypothesis can enter its n-best list any more.
   Once K hypotheses are complete, it leaves when none could enter with a next token of
   probability 1 that ended it: longer ones would have to improve, and they hardly ever do.

The beam begins with one empty hypothesis. The slot of a finished hypothesis stays empty for one
step. Then the K best extensions of the open hypotheses fill the beam again. A complete hypothesis
ranks before one that was truncated at the maximum length.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nmt.config.schema import DecodingConfig
from nmt.data.batches import pad_with_eos
from nmt.decoding.candidates import Candidates, banned_ids, sample, without_banned
from nmt.decoding.hypothesis import (
    BeamStep,
    FinishedHypothesis,
    Hypothesis,
    NBestLists,
    hypothesis_score,
    trace_back,
    upper_bound,
)
from nmt.model.interface import TranslationModel
from nmt.model.output import log_norm, topk_log_probs
from nmt.text.vocabulary import EOS, PAD, SOS, UNK

EXTRA_TOKENS = 10  # that any translation may have beyond max_length_ratio, however short the source
TOLERANCE = (
    1e-9  # nats; rounding must not put the K-th best extension below its own log-probability
)
FORBIDDEN = (PAD, SOS)  # never in a hypothesis


@torch.inference_mode()
def search(
    model: TranslationModel,
    sources: Sequence[Sequence[int]],
    options: DecodingConfig,
    *,
    n_best: int = 1,
    prefixes: Sequence[Sequence[int]] | None = None,
    steps: list[BeamStep] | None = None,
) -> list[list[Hypothesis]]:
    """Translate a batch of B sentences.

    Args:
        model: in evaluation mode.
        sources: ids without special tokens.
        n_best: hypotheses per sentence, at most the beam; in sampling, the number of samples.
        prefixes: the ids that the hypotheses of each sentence start with.
        steps: an empty list that gets the steps, which also have what the beam dropped later.

    Returns:
        For each sentence its `n_best` hypotheses, best first; fewer if search found fewer.

    Raises:
        NonFiniteError: the model's output is not finite.
    """
    prefixes = prefixes if prefixes is not None else [()] * len(sources)
    words = None
    if model.choose_words is not None:
        model, words = model.choose_words(sources, prefixes)
        prefixes = [
            torch.searchsorted(words, torch.tensor(prefix, dtype=torch.long)).tolist()
            for prefix in prefixes
        ]
    padded, src_lengths = pad_with_eos(sources)
    memory = model.encode(padded.to(model.device), src_lengths)
    state = model.start(memory)
    beams = _Beams(sources, prefixes, options, n_best, [] if steps is None else steps)
    if beams.width > 1:
        rows = torch.arange(len(sources)).repeat_interleave(beams.width)
        state = state.select(rows.to(model.device))
    while len(beams):
        output = model.step(beams.last_ids.to(model.device), state, memory)  # 1
        candidates = beams.extend(model, output.vector)  # 2
        parents = beams.choose(candidates, output.attention)  # 3
        beams.finish()  # 4
        rows = beams.undecided()
        if len(rows) < len(beams):  # 5
            beams.select(rows)
            memory = memory.select(rows.to(model.device))
        state = output.state.select(parents[rows].flatten().to(model.device))
    if words is not None:
        beams.steps[:] = (step._replace(ids=words[step.ids]) for step in beams.steps)
    return trace_back(beams.steps, beams.finished, src_lengths.tolist())


class _Beams:
    """The beams of the b sentences in the batch (B at first): K slots for hypotheses of t tokens.
    Before the first step there is one slot, except in sampling; after it there are fewer than K if
    there are fewer words.

    Attributes:
        size: K.
        samples: whether this is sampling, where each hypothesis has one extension.
        max_length, min_length: [B], in tokens. prefix: [B, P], forced ids; -1 after the end of a
            prefix.
        random: for each of the B sentences [K, max_length], the numbers that samples are drawn
            with.
        sentence: [b], the index of each sentence in the original batch.
        log_prob: [b, K], of the open hypotheses; -inf in free slots.
        n_complete: [B], the complete hypotheses of each sentence.
        last_ids: [b * K], the last token of each hypothesis.
        ids_so_far: [b, K, t]; [b, K, 0] unless decoding.no_repeat_ngram is set.
        attention_sums: [b, K, S], summed over the steps; [b, K, 0] unless decoding.coverage_penalty
            is set.
        steps: t steps, for back-tracing.
        finished: the n-best lists.
    """

    def __init__(
        self,
        sources: Sequence[Sequence[int]],
        prefixes: Sequence[Sequence[int]],
        options: DecodingConfig,
        n_best: int,
        steps: list[BeamStep],
    ) -> None:
        self.options, self.steps = options, steps
        self.samples = options.search == "sampling"
        self.size = n_best if self.samples else options.beam
        n_sentences = len(sources)
        self.forbidden = (*FORBIDDEN, UNK) if options.forbid_unknown else FORBIDDEN
        self.src_lengths = [len(source) + 1 for source in sources]  # <eos> counted
        max_lengths = [
            max(int(options.max_length_ratio * src_length), len(prefix)) + EXTRA_TOKENS
            for src_length, prefix in zip(self.src_lengths, prefixes, strict=True)
        ]
        self.max_length = torch.tensor(max_lengths, dtype=torch.double)
        self.min_length = torch.tensor(
            [int(options.min_length_ratio * len(source)) for source in sources]
        )
        self.prefix = torch.full((n_sentences, max(map(len, prefixes))), -1)
        for row, prefix in zip(self.prefix, prefixes, strict=True):
            row[: len(prefix)] = torch.tensor(prefix, dtype=torch.long)
        # Random numbers [K, T] follow from the seed and the sentence alone: not from its batch or
        # the number of samples.
        self.random = [
            torch.from_numpy(
                np.random.default_rng([options.seed, *source]).random((self.size, max_length))
            )
            for source, max_length in zip(sources, max_lengths, strict=True)
            if self.samples
        ]
        self.sentence = torch.arange(n_sentences)
        # one empty hypothesis; in sampling, K of them
        width = self.size if self.samples else 1
        self.log_prob = torch.zeros(n_sentences, width, dtype=torch.double)
        self.n_complete = torch.zeros(n_sentences, dtype=torch.long)
        self.last_ids = torch.full((n_sentences * width,), SOS)
        self.ids_so_far = torch.empty(n_sentences, width, 0, dtype=torch.long)
        n_columns = max(self.src_lengths) if options.coverage_penalty else 0
        self.attention_sums = torch.zeros(n_sentences, width, n_columns, dtype=torch.double)
        self.finished = NBestLists(n_sentences, n_best)

    def __len__(self) -> int:
        """The number of sentences in the batch, b."""
        return len(self.sentence)

    @property
    def width(self) -> int:
        """The number of slots."""
        return self.log_prob.shape[1]

    def extend(self, model: TranslationModel, vectors: Any) -> Candidates:
        """Candidates [b, K, k] for the next token of each hypothesis, from its row of `vectors`."""
        t = len(self.steps)
        is_open = self.log_prob > float("-inf")
        rows = is_open.flatten().nonzero().squeeze(1)  # [N]: only open hypotheses need logits
        if len(rows) < is_open.numel():
            vectors = vectors.select(rows.to(model.device))
        sentence = self.sentence.repeat_interleave(self.width)[rows]
        ids_so_far = self.ids_so_far.flatten(0, 1)[rows]
        banned = banned_ids(
            ids_so_far,
            self.min_length[sentence] > t,
            self.forbidden,
            eos=EOS,
            ngram=self.options.no_repeat_ngram,
        )
        if self.samples:
            uniform = torch.stack([self.random[i][:, t] for i in self.sentence.tolist()])[is_open]
            logits = model.compute_logits(vectors)
            candidates = sample(logits, log_norm(logits), banned, uniform, self.options)
        else:
            candidates = self._most_probable(model, vectors, banned, is_open)
        # A hypothesis ends where everything is banned.
        forced = torch.where(candidates.has_no_candidate, EOS, -1)
        if t < self.prefix.shape[1]:
            forced = torch.where(self.prefix[sentence, t] < 0, forced, self.prefix[sentence, t])
        if (forced >= 0).any():
            logits = model.compute_logits(vectors)
            candidates = candidates.force(forced, logits, log_norm(logits))
        return candidates.scatter_to_beam(is_open)

    def _most_probable(
        self, model: TranslationModel, vectors: Any, banned: Tensor, is_open: Tensor
    ) -> Candidates:
        """At least the best K allowed tokens; those that the beam cannot take may be missing."""

        def threshold(ids: Tensor, log_probs: Tensor) -> Tensor:
            """The log-probability at which an extension is as good as the K-th best of its sentence
            so far, less a tolerance.
            """
            total = (
                self.log_prob.unsqueeze(2)
                + without_banned(ids, log_probs, banned).scatter_to_beam(is_open).log_probs
            )
            total = total.flatten(1)
            if total.shape[1] < self.size:
                return torch.full((len(ids),), float("-inf"), dtype=total.dtype)
            worst = total.topk(self.size).values[:, -1:]
            return (worst - self.log_prob)[is_open] - TOLERANCE

        # The best K + M tokens include the best K that are not banned.
        k = self.size + banned.shape[1]
        candidates = without_banned(*model.topk_log_probs(vectors, k, threshold), banned)
        if candidates.has_no_candidate.any():  # there may be allowed tokens below the threshold
            candidates = without_banned(*topk_log_probs(model.compute_logits(vectors), k), banned)
        return candidates

    def choose(self, candidates: Candidates, attention: Tensor) -> Tensor:
        """Keep the best K extensions of each sentence; in sampling, the one of each hypothesis.

        Args:
            attention: [b * K, S], of this step.

        Returns:
            [b, K], the rows of the model's state that the new hypotheses continue.
        """
        k = candidates.ids.shape[2]
        total = (self.log_prob.unsqueeze(2) + candidates.log_probs).flatten(1)  # [b, K * k]
        chosen = (
            torch.arange(self.size).expand(len(self), -1)
            if self.samples
            else total.topk(min(self.size, total.shape[1])).indices
        )
        ids, log_probs = (
            candidates.ids.flatten(1).gather(1, chosen),
            candidates.log_probs.flatten(1).gather(1, chosen),
        )
        parents = chosen // k
        row = torch.full((len(self.src_lengths),), -1)
        row[self.sentence] = torch.arange(len(self))
        weights = attention.float().cpu().unflatten(0, (len(self), -1))  # [b, K, S]
        self.steps.append(BeamStep(row, ids, parents, log_probs, weights))
        self.log_prob = self.log_prob.gather(1, parents) + log_probs
        self.last_ids = ids.flatten()
        if self.options.no_repeat_ngram is not None:
            self.ids_so_far = torch.cat(
                [_gather_slots(self.ids_so_far, parents), ids.unsqueeze(2)], 2
            )
        if self.options.coverage_penalty:
            self.attention_sums = _gather_slots(self.attention_sums + weights, parents)
        return parents.add(torch.arange(len(self)).unsqueeze(1), alpha=weights.shape[1])

    def finish(self) -> None:
        """Move the hypotheses that end here to the n-best lists, and free their slots."""
        t, ids = len(self.steps), self.steps[-1].ids
        complete = ids == EOS
        ends = (complete | (self.max_length[self.sentence] <= t).unsqueeze(1)) & (
            self.log_prob > float("-inf")
        )
        # Most of them cannot enter the list: skip these before the slow part.
        bound = upper_bound(self.log_prob, torch.tensor(t), self.options)
        can_enter = ends & (
            (bound > self.finished.min_score[self.sentence].unsqueeze(1)) | ~complete
        )
        for row, slot in can_enter.nonzero().tolist():
            sentence = int(self.sentence[row])
            log_prob = float(self.log_prob[row, slot])
            sums = (
                self.attention_sums[row, slot, : self.src_lengths[sentence]].numpy()
                if self.options.coverage_penalty
                else None
            )
            score = hypothesis_score(log_prob, t, sums, self.options)
            self.finished.add(
                FinishedHypothesis(
                    sentence, slot, t - 1, score, log_prob, bool(complete[row, slot])
                )
            )
        self.n_complete[self.sentence] += (complete & ends).sum(1)
        self.log_prob = self.log_prob.masked_fill(ends, float("-inf"))

    def undecided(self) -> Tensor:
        """The rows of the sentences whose n-best lists may well change."""
        best, max_length = self.log_prob.amax(1), self.max_length[self.sentence]
        is_enough = self.n_complete[self.sentence] >= self.size
        length = max_length.masked_fill(is_enough, len(self.steps) + 1)
        bound = upper_bound(best, length, self.options)
        is_open = (best > float("-inf")) & (bound > self.finished.min_score[self.sentence])
        return is_open.nonzero().squeeze(1)

    def select(self, rows: Tensor) -> None:
        """Keep only the sentences in `rows`."""
        self.sentence, self.log_prob, self.ids_so_far, self.attention_sums = (
            part[rows]
            for part in (self.sentence, self.log_prob, self.ids_so_far, self.attention_sums)
        )
        self.last_ids = self.last_ids.unflatten(0, (-1, self.width))[rows].flatten()


def _gather_slots(values: Tensor, parents: Tensor) -> Tensor:
    """For each slot the values [b, K, N] of its parent, `parents` [b, K]."""
    return values.gather(1, parents.unsqueeze(2).expand(-1, -1, values.shape[2]))
