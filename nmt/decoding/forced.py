"""Forced decoding: the probability of given translations, written token by token."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmt.data.padding import cut_batches, pad_with_eos
from nmt.decoding.model import TranslationModel
from nmt.decoding.translator import Translator, run_batches
from nmt.evaluation.scores import perplexity
from nmt.text.vocabulary import SOS, UNK

MAX_FORCED_TOKENS = 1 << 13  # of a batch: pairs x length of the longest source or translation


@dataclass(frozen=True)
class ScoredPair:
    """A source, a given translation, and its probability.

    Attributes:
        source, text: raw.
        tokens: T - 1 tokens of the translation, unknown ones as written. The model writes <eos>
            after them.
        unknown: positions of tokens that are not in the vocabulary; their probability is that of
            <unk>.
        token_log_probs: T, in nats, the last for <eos>.
        src_cut: whether the source was truncated at decoding.max_source_tokens.
    """

    source: str
    text: str
    tokens: tuple[str, ...]
    unknown: tuple[int, ...]
    token_log_probs: tuple[float, ...]
    src_cut: bool = False

    @property
    def log_prob(self) -> float:
        """Of the whole translation, in nats."""
        return sum(self.token_log_probs)

    @property
    def perplexity(self) -> float:
        """Per token, <eos> counted."""
        return perplexity(-self.log_prob / len(self.token_log_probs))

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "source": self.source,
            "text": self.text,
            "tokens": self.tokens,
            "unknown": self.unknown,
            "token_log_probs": self.token_log_probs,
            "src_cut": self.src_cut,
            "log_prob": self.log_prob,
            "n_tokens": len(self.token_log_probs),
            "perplexity": self.perplexity,
        }


def score_pairs(translator: Translator, pairs: Sequence[tuple[str, str]]) -> list[ScoredPair]:
    """Score each (source, translation), independently of the others; cuts long sources.

    Raises:
        TooLargeError: a pair does not fit into memory, even alone.
    """
    max_tokens = translator.options.max_source_tokens
    all_src_tokens = translator.src_tokenizer.split_all([source for source, _ in pairs])
    all_tokens = translator.tgt_tokenizer.split_all([text for _, text in pairs])
    src = [translator.src_vocabulary.ids(tokens[:max_tokens]) for tokens in all_src_tokens]
    tgt = [translator.tgt_vocabulary.ids(tokens) for tokens in all_tokens]

    def score(indices: Sequence[int]) -> list[list[float]]:
        return score_batch(translator.model, [src[i] for i in indices], [tgt[i] for i in indices])

    order = sorted(range(len(pairs)), key=lambda i: (len(tgt[i]), len(src[i])))
    lengths = [max(len(tgt[i]), len(src[i])) for i in order]
    batches = [
        order[part]
        for part in cut_batches(
            lengths, max_items=translator.options.batch, max_padded=MAX_FORCED_TOKENS
        )
    ]
    results: dict[int, ScoredPair] = {}
    for i, log_probs in run_batches(
        score, batches, "split it into sentences", translator.model.threads
    ):
        results[i] = ScoredPair(
            *pairs[i],
            tokens=tuple(all_tokens[i]),
            unknown=tuple(position for position, index in enumerate(tgt[i]) if index == UNK),
            token_log_probs=tuple(log_probs),
            src_cut=len(all_src_tokens[i]) > max_tokens,
        )
    return [results[i] for i in range(len(pairs))]


def score_batch(
    model: TranslationModel, src: Sequence[Sequence[int]], tgt: Sequence[Sequence[int]]
) -> list[list[float]]:
    """The log-probabilities [T] of the tokens and <eos> of each pair.

    Args:
        model: it makes the same steps as in search, so the numbers are the same.
        src, tgt: ids without special tokens.
    """
    targets, lengths = pad_with_eos(tgt)  # [B, T], <eos> appended as in the source
    memory, state = model.encode(src)
    rows, ids = np.arange(len(src)), np.full(len(src), SOS)
    columns = list[NDArray[np.float64]]()
    for target in targets.T:
        output = model.step(ids, state, memory)
        log_probs = model.log_probs(output.vectors)
        columns.append(log_probs[rows, target].astype(np.float64))
        state, ids = output.state, target
    rows_and_lengths = zip(np.stack(columns, 1).tolist(), lengths.tolist(), strict=True)
    return [log_probs[:length] for log_probs, length in rows_and_lengths]
