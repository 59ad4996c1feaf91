"""The alternatives for a token of a translation, and how the translation continues after each."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp

import torch
from torch.nn import functional

from nmt.data.batches import pad_sources
from nmt.decoding.translation import Translation
from nmt.decoding.translator import Translator
from nmt.errors import DataError
from nmt.model.interface import TranslationModel
from nmt.text.vocabulary import EOS, PAD, SOS, SPECIALS, UNK

MIN_PROBABILITY = 0.002  # less probable tokens start nonsense
NOT_OFFERED = [PAD, UNK, SOS, EOS]


@dataclass(frozen=True)
class Alternative:
    """A translation that differs from a given one from some token on.

    Attributes:
        token: the first token that may differ. probability: of this token after the tokens before
            it.
        translation: the best translation that starts with the tokens before it and this token.
    """

    token: str
    probability: float
    translation: Translation


def find_alternatives(
    translator: Translator, requests: Sequence[tuple[str, Sequence[str]]], n: int
) -> list[list[Alternative]]:
    """For each (text, first tokens of a translation) the n most probable next tokens, each with the
    rest of the translation.

    The most probable token comes first; the others have at least `MIN_PROBABILITY`. Special tokens
    are no alternatives, but `<unk>` may be among the first tokens.

    Raises:
        DataError: a token is not in the vocabulary, or a text is empty.
        TooLargeError: a text does not fit into memory, even alone.
    """
    max_tokens = translator.options.max_source_tokens
    max_n = min(n, len(translator.tgt_vocabulary) - len(SPECIALS))
    all_tokens = translator.src_tokenizer.split_all([text for text, _ in requests])
    owners: list[int] = []  # the index of the request of each alternative
    starts: list[list[int]] = []
    probabilities: list[float] = []
    for owner, ((_, first_tokens), src_tokens) in enumerate(zip(requests, all_tokens, strict=True)):
        src = translator.src_vocabulary.ids(src_tokens[:max_tokens])
        prefix = _prefix_ids(translator, first_tokens)
        if not src:
            raise DataError("the text is empty, so its translation has no alternatives")
        next_tokens = _next_tokens(translator.model, src, prefix, max_n)
        for rank, (index, log_prob) in enumerate(next_tokens):
            if not rank or exp(log_prob) >= MIN_PROBABILITY:
                owners.append(owner)
                starts.append([*prefix, index])
                probabilities.append(exp(log_prob))
    translations = translator.continue_prefixes([requests[owner][0] for owner in owners], starts, 1)
    tokens = translator.tgt_vocabulary.tokens([start[-1] for start in starts])
    results: list[list[Alternative]] = [[] for _ in requests]
    for owner, token, probability, (translation, *_) in zip(
        owners, tokens, probabilities, translations, strict=True
    ):
        results[owner].append(Alternative(token, probability, translation))
    return results


@torch.inference_mode()
def _next_tokens(
    model: TranslationModel, src: Sequence[int], prefix: Sequence[int], n: int
) -> list[tuple[int, float]]:
    """The n most probable target ids after those of `prefix`, with their log-probabilities.

    Args:
        src, prefix: ids without <sos> and <eos>.
    """
    padded, src_lengths = pad_sources([src])
    memory = model.encode(padded.to(model.device), src_lengths)
    state = model.start(memory)
    for index in (SOS, *prefix):
        output = model.step(torch.tensor([index], device=model.device), state, memory)
        state = output.state
    log_probs = functional.log_softmax(model.compute_logits(output.vector)[0].float(), dim=0)
    log_probs[NOT_OFFERED] = float("-inf")
    best = log_probs.topk(n)
    return [*zip(best.indices.tolist(), best.values.tolist(), strict=True)]


def _prefix_ids(translator: Translator, tokens: Sequence[str]) -> list[int]:
    for token in tokens:
        if token not in translator.tgt_vocabulary and token != SPECIALS[UNK]:
            raise DataError(f"token {token!r} is not in the target vocabulary")
    return translator.tgt_vocabulary.ids(tokens)
