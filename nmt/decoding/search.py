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
from numpy.typing import NDArray

from nmt.config.schema import DecodingConfig
from nmt.decoding.hypothesis import (
    BeamStep,
    Candidates,
    FinishedHypothesis,
    Hypothesis,
    NBestLists,
    sample,
    trace_back,
    upper_bound,
    without_banned,
)
from nmt.decoding.model import TranslationModel
from nmt.text.vocabulary import EOS, PAD, SOS, UNK

EXTRA_TOKENS = 10  # that any translation may have beyond max_length_ratio, however short the source
FORBIDDEN = (PAD, SOS)  # never in a hypothesis


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
    memory, state = model.encode(sources)
    beams = _Beams(sources, prefixes, options, n_best, [] if steps is None else steps)
    if beams.width > 1:
        state = state.select(np.repeat(np.arange(len(sources)), beams.width))
    while len(beams):
        output = model.step(beams.last_ids, state, memory)  # 1
        candidates = beams.extend(model, output.vectors)  # 2
        parents = beams.choose(candidates, output.attention)  # 3
        beams.finish()  # 4
        rows = beams.undecided()
        if len(rows) < len(beams):  # 5
            beams.select(rows)
            memory, parents = memory.select(rows), parents[rows]
        state = output.state.select(parents.ravel())
    return trace_back(beams.steps, beams.finished, beams.src_lengths)


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
        self.max_length = np.array(max_lengths, np.float64)
        min_lengths = [
            max(int(options.min_length_ratio * len(source)), min(1, len(source)))
            for source in sources
        ]
        self.min_length = np.array(min_lengths)
        self.prefix = np.full((n_sentences, max(map(len, prefixes))), -1)
        for row, prefix in zip(self.prefix, prefixes, strict=True):
            row[: len(prefix)] = prefix
        # Random numbers [K, T] follow from the seed and the sentence alone: not from its batch or
        # the number of samples.
        self.random = [
            np.random.default_rng([options.seed, *source]).random((self.size, max_length))
            for source, max_length in zip(sources, max_lengths, strict=True)
            if self.samples
        ]
        self.sentence = np.arange(n_sentences)
        # one empty hypothesis; in sampling, K of them
        width = self.size if self.samples else 1
        self.log_prob = np.zeros((n_sentences, width))
        self.n_complete = np.zeros(n_sentences, np.int64)
        self.last_ids = np.full(n_sentences * width, SOS)
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
        is_open = self.log_prob > -np.inf
        rows = np.flatnonzero(is_open)  # [N]: only open hypotheses need candidates
        if len(rows) < is_open.size:
            vectors = vectors.select(rows)
        sentence = np.repeat(self.sentence, self.width)[rows]
        is_too_short = self.min_length[sentence] > t
        banned = np.column_stack(  # [N, M]; PAD fills it, which is banned in any case
            [np.tile(self.forbidden, (len(rows), 1)), np.where(is_too_short, EOS, PAD)]
        )
        if self.samples:
            uniform = np.stack([self.random[i][:, t] for i in self.sentence])[is_open]
            candidates = sample(model.log_probs(vectors), banned, uniform, self.options)
        else:
            # The best K + M tokens include the best K that are not banned.
            best = model.best(vectors, self.size + banned.shape[1])
            candidates = without_banned(*best, banned)
        if t < self.prefix.shape[1]:
            candidates = candidates.force(self.prefix[sentence, t], model.log_probs(vectors))
        return candidates.scatter_to_beam(is_open)

    def choose(self, candidates: Candidates, attention: NDArray[np.float32]) -> NDArray[np.int64]:
        """Keep the best K extensions of each sentence; in sampling, the one of each hypothesis.

        Args:
            attention: [b * K, S], of this step.

        Returns:
            [b, K], the rows of the model's state that the new hypotheses continue.
        """
        n, k = len(self), candidates.ids.shape[2]
        total = (self.log_prob[:, :, None] + candidates.log_probs).reshape(n, -1)  # [b, K * k]
        if self.samples:
            chosen = np.broadcast_to(np.arange(self.size), (n, self.size))
        else:
            chosen = np.argsort(-total, axis=1, kind="stable")[:, : self.size]
        rows = np.arange(n)[:, None]
        ids = candidates.ids.reshape(n, -1)[rows, chosen]
        log_probs = candidates.log_probs.reshape(n, -1)[rows, chosen]
        parents = chosen // k
        row = np.full(len(self.src_lengths), -1)
        row[self.sentence] = np.arange(n)
        weights = attention.reshape(n, self.width, -1)  # [b, K, S]
        self.steps.append(BeamStep(row, ids, parents, log_probs, weights))
        self.log_prob = self.log_prob[rows, parents] + log_probs
        self.last_ids = ids.ravel()
        return parents + weights.shape[1] * rows  # type: ignore[no-any-return]

    def finish(self) -> None:
        """Move the hypotheses that end here to the n-best lists, and free their slots."""
        t, ids = len(self.steps), self.steps[-1].ids
        complete = ids == EOS
        is_last = (self.max_length[self.sentence] <= t)[:, None]
        ends = (complete | is_last) & (self.log_prob > -np.inf)
        if not ends.any():
            return
        # Most of them cannot enter the list: skip these before the slow part.
        bound = upper_bound(self.log_prob, np.array(t), self.options)
        can_enter = ends & ((bound > self.finished.min_score[self.sentence][:, None]) | ~complete)
        for row, slot in np.argwhere(can_enter).tolist():
            sentence = int(self.sentence[row])
            log_prob = float(self.log_prob[row, slot])
            score = log_prob / t**self.options.length_penalty
            self.finished.add(
                FinishedHypothesis(
                    sentence, slot, t - 1, score, log_prob, bool(complete[row, slot])
                )
            )
        self.n_complete[self.sentence] += (complete & ends).sum(1)
        self.log_prob = np.where(ends, -np.inf, self.log_prob)

    def undecided(self) -> NDArray[np.int64]:
        """The rows of the sentences whose n-best lists may well change."""
        best, is_enough = self.log_prob.max(1), self.n_complete[self.sentence] >= self.size
        length = np.where(is_enough, len(self.steps) + 1, self.max_length[self.sentence])
        bound = upper_bound(best, length, self.options)
        is_open = (best > -np.inf) & (bound > self.finished.min_score[self.sentence])
        return np.flatnonzero(is_open)

    def select(self, rows: NDArray[np.int64]) -> None:
        """Keep only the sentences in `rows`."""
        self.sentence, self.log_prob = self.sentence[rows], self.log_prob[rows]
        self.last_ids = self.last_ids.reshape(-1, self.width)[rows].ravel()
