"""The alternatives for a token of a translation, and how the translation continues after each."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp

import torch
from torch.nn import functional

from nmt.data.batches import pad_sources
from nmt.decoding.translator import Translation, Translator
from nmt.errors import DataError
from nmt.model.interface import TranslationModel
from nmt.text.vocabulary import EOS, PAD, SOS, SPECIALS, UNK

MIN_PROBABILITY = 0.002  # less probable tokens start nonsense
NOT_OFFERED = [PAD, UNK, SOS, EOS]


@dataclass(frozen=True)
class Alternative:
    """A translation that differs from a given one from some token on.

    Attributes:
        token: the first one that may differ. probability: of it, after the tokens before it.
        translation: the best one that starts with the tokens before it and this token.
    """

    token: str
    probability: float
    translation: Translation


def find_alternatives(
    translator: Translator, text: str, first_tokens: Sequence[str], n: int
) -> list[Alternative]:
    """The n most probable next tokens after the first ones of a translation, each with the rest.

    The most probable token comes first; the others have at least `MIN_PROBABILITY`. Special tokens
    are no alternatives, but `<unk>` may be among the first tokens.

    Raises:
        DataError: a token is not in the vocabulary, or the text is empty.
        TooLargeError: the text does not fit into memory, even alone.
    """
    vocabulary = translator.tgt_vocabulary
    for token in first_tokens:
        if token not in vocabulary and token != SPECIALS[UNK]:
            raise DataError(f"token {token!r} is not in the target vocabulary")
    (src_tokens,) = translator.src_tokenizer.split_all([text])
    src = translator.src_vocabulary.ids(src_tokens[: translator.options.max_source_tokens])
    if not src:
        raise DataError("the text is empty, so its translation has no alternatives")
    prefix = vocabulary.ids(first_tokens)
    likely = _next_tokens(translator.model, src, prefix, min(n, len(vocabulary) - len(SPECIALS)))
    offered = [likely[0], *(each for each in likely[1:] if each[1] >= MIN_PROBABILITY)]
    starts = [[*prefix, index] for index, _ in offered]
    translations = translator.continue_prefixes([text] * len(starts), starts, 1)
    tokens = vocabulary.tokens([index for index, _ in offered])
    return [
        Alternative(token, probability, best)
        for token, (_, probability), (best, *_) in zip(tokens, offered, translations, strict=True)
    ]


@torch.inference_mode()
def _next_tokens(
    model: TranslationModel, src: Sequence[int], prefix: Sequence[int], n: int
) -> list[tuple[int, float]]:
    """The n most probable target ids after those of `prefix`, with their probabilities.

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
    return [*zip(best.indices.tolist(), map(exp, best.values.tolist()), strict=True)]
