"""How likely a model finds given translations: it is made to write them, token by token, as search writes its own."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from nmt.data.batching import pad_sources
from nmt.decoding.batch_runner import run_batches
from nmt.decoding.translator import Translator
from nmt.model.translation_model import TranslationModel
from nmt.text.vocabulary import SOS, UNK

MOST_TOKENS = 1 << 13  # of a batch on its longer side, with padding

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class ScoredPair:
    """A translation, and how likely it is.

    Attributes:
        source, text: raw.
        src_tokens: S - 1 of them, as far as they are read. tokens: T - 1 of them, unknown ones as they are written. The model reads
            and writes <eos> after them.
        unknown: places of the tokens that are not in the vocabulary: it is <unk> that is scored there.
        token_log_probs: T, in nats, the last that of <eos>.
        attention: [T, S], where the model looked meanwhile.
        src_cut: whether the source was longer than decoding.max_source_tokens: what stands beyond was not read.
    """

    source: str
    text: str
    src_tokens: tuple[str, ...]
    tokens: tuple[str, ...]
    unknown: tuple[int, ...]
    token_log_probs: tuple[float, ...]
    attention: Floats
    src_cut: bool = False

    @property
    def log_prob(self) -> float:
        """Of the whole translation, in nats."""
        return sum(self.token_log_probs)

    @property
    def perplexity(self) -> float:
        """For each token, <eos> counted."""
        return perplexity(self.log_prob, len(self.token_log_probs))


def perplexity(log_prob: float, n_tokens: int) -> float:
    """exp(-log p / n)."""
    return exp(-log_prob / n_tokens)


def score_pairs(translator: Translator, pairs: Sequence[tuple[str, str]], *, free: bool = False) -> list[ScoredPair]:
    """Each (source, translation), in the same order, whatever is scored with it. A source is cut where the translator cuts it.

    Args:
        free: as in `score_batch`.

    Raises:
        TooLargeError: a pair does not fit into memory, not even alone.
    """
    longest = translator.options.max_source_tokens
    sources = translator.src_tokenizer.split_all([source for source, _ in pairs])
    read = [tokens[:longest] for tokens in sources]
    outputs = translator.tgt_tokenizer.split_all([text for _, text in pairs])
    src = [translator.src_vocabulary.ids(tokens) for tokens in read]
    tgt = [translator.tgt_vocabulary.ids(tokens) for tokens in outputs]
    found: dict[int, ScoredPair] = {}

    def make(chosen: Sequence[int]) -> list[tuple[list[float], Floats]]:
        return score_batch(translator.model, [src[i] for i in chosen], [tgt[i] for i in chosen], free=free)

    plan = _plan([(len(ids), len(src[i])) for i, ids in enumerate(tgt)], translator.options.batch)
    for i, (log_probs, attention) in run_batches(make, plan, "part it into sentences", translator.model.device):
        found[i] = ScoredPair(
            *pairs[i],
            src_tokens=tuple(read[i]),
            tokens=tuple(outputs[i]),
            unknown=tuple(place for place, known in enumerate(tgt[i]) if known == UNK),
            token_log_probs=tuple(log_probs),
            attention=attention,
            src_cut=len(sources[i]) > longest,
        )
    return [found[i] for i in range(len(pairs))]


@torch.inference_mode()
def score_batch(
    model: TranslationModel, src: Sequence[Sequence[int]], tgt: Sequence[Sequence[int]], *, free: bool = False
) -> list[tuple[list[float], Floats]]:
    """Of each translation the log-probabilities [T] of its tokens and of <eos>, and the attention [T, S].

    Ids are without special tokens.
    The model is in evaluation mode, and steps as it does in search: the numbers are those that search would give.

    Args:
        free: the token before each is not that of the translation, but what the model itself thought likeliest there, as in
            Bengio 2015.
    """
    padded, src_lengths = pad_sources(src)
    expected, lengths = pad_sources(tgt)  # [B, T], <eos> appended on this side too
    padded, expected = padded.to(model.device), expected.to(model.device)
    memory = model.encode(padded, src_lengths)
    log_probs, attention = _force(model, model.start(memory), memory, expected, free)
    rows = zip(log_probs.tolist(), attention.float().cpu().numpy(), lengths.tolist(), src_lengths.tolist(), strict=True)
    return [(row[:length], looked[:length, :src_length].copy()) for row, looked, length, src_length in rows]


def _force(model: TranslationModel, state: Any, memory: Any, expected: Tensor, free: bool) -> tuple[Tensor, Tensor]:
    """Log-probabilities of the tokens expected [B, T], and attention [B, T, S]."""
    ids, columns, looked = torch.full_like(expected[:, 0], SOS), [], []
    for following in expected.unbind(1):
        stepped = model.step(ids, state, memory)
        log_probs = functional.log_softmax(model.compute_logits(stepped.vector), dim=-1)
        columns.append(log_probs.gather(1, following.unsqueeze(1)))
        looked.append(stepped.attention)
        state, ids = stepped.state, log_probs.argmax(1) if free else following
    return torch.cat(columns, 1), torch.stack(looked, 1)


def _plan(lengths: Sequence[tuple[int, int]], batch_size: int) -> Iterator[list[int]]:
    """Pairs of like length together; `lengths` are of output and source, without <eos>."""
    batch: list[int] = []
    longest = 0
    for i in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        longest = max(longest, *lengths[i])
        if batch and (len(batch) == batch_size or (len(batch) + 1) * longest > MOST_TOKENS):
            yield batch
            batch, longest = [], max(lengths[i])
        batch.append(i)
    if batch:
        yield batch
