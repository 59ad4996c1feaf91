"""Joins the translations of the sentences of a text into that of the text."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmt.decoding.translation import Translation
from nmt.text.tokenizers import SPACE, Tokenizer
from nmt.texts.marked import Marked

MAX_WEIGHTS = 1 << 22  # of the attention of a text: 16 MB


class TranslatedText(NamedTuple):
    """A translation, and its text with the marks apart."""

    translation: Translation
    marked: Marked


def join(
    source: str,
    parts: Sequence[TranslatedText],
    gaps: Sequence[Marked],
    tokenizers: tuple[Tokenizer, Tokenizer],
) -> TranslatedText:
    """The translation of a text of several sentences, and the same with its marks.

    The sentences attend to themselves. The weights of <eos> have one column at the end; a text of
    very many words has no attention. A row of <eos> is only there if all sentences are complete;
    the log-probabilities of the others count with the token before, so that `log_prob` is the sum.

    Args:
        gaps: what stands between two sentences.
    """
    translations = [part.translation for part in parts]
    first, *others = (part.marked for part in parts)
    between = map(Marked.outer, gaps)
    marked = Marked.joined([first, *chain.from_iterable(zip(between, others, strict=True))])
    is_complete = all(each.complete for each in translations)
    log_probs = _log_probs(translations, has_end=is_complete)
    heights = (min(len(each.tokens), len(each.token_log_probs)) for each in translations)
    columns = [*accumulate((len(each.src_tokens) for each in translations), initial=0)]
    # Where the attention of each begins in that of the text.
    corners = [*zip(translations, accumulate(heights, initial=0), columns, strict=False)]
    whole = Translation(
        source=source,
        text=marked.written,
        src_tokens=_tokens([each.src_tokens for each in translations], tokenizers[0]),
        tokens=_tokens([each.tokens for each in translations], tokenizers[1]),
        score=sum(each.score for each in translations),
        log_prob=sum(each.log_prob for each in translations),
        token_log_probs=log_probs,
        attention=_attention(corners, len(log_probs), columns[-1] + 1),
        complete=is_complete,
        src_cut=any(each.src_cut for each in translations),
        replaced=tuple(
            replace(
                each,
                position=each.position + row,
                src_position=None if each.src_position is None else each.src_position + column,
            )
            for translation, row, column in corners
            for each in translation.replaced
        ),
        model_input=" ".join(each.model_input or each.source for each in translations)
        if any(each.model_input is not None for each in translations)
        else None,
        warnings=tuple(dict.fromkeys(w for each in translations for w in each.warnings)),
        facts=_facts(translations),
        is_known=all(each.is_known for each in translations),
        sentences=tuple(translations),
    )
    return TranslatedText(whole, marked)


def _log_probs(translations: Sequence[Translation], *, has_end: bool) -> tuple[float, ...]:
    """Those of all tokens; has_end: and of <eos> at the end."""
    log_probs = list[float]()
    rest = 0.0  # of <eos> of the sentences before
    for index, translation in enumerate(translations, 1):
        size = len(translation.tokens)
        log_probs += translation.token_log_probs[:size]
        rest += sum(translation.token_log_probs[size:])
        if log_probs and index < len(translations):
            log_probs[-1] += rest
            rest = 0.0
    return (*log_probs, rest) if has_end else tuple(log_probs)


def _facts(translations: Sequence[Translation]) -> dict[str, Any]:
    """Those of each sentence, and the lowest confidence."""
    listed = [{"source": each.source, "text": each.text, **each.facts} for each in translations]
    judged = [each.facts for each in translations if "confidence" in each.facts]
    lowest = min(judged, key=lambda facts: facts["confidence"], default={})
    return {
        "sentences": listed,
        **{key: value for key, value in lowest.items() if key in ("confidence", "read")},
    }


def _attention(
    corners: Sequence[tuple[Translation, int, int]], n_rows: int, n_columns: int
) -> NDArray[np.float32]:
    """That of the sentences, block by block, each with the row and column where it begins."""
    if n_rows * n_columns > MAX_WEIGHTS:
        return np.zeros((0, 1), np.float32)
    attention = np.zeros((n_rows, n_columns), np.float32)
    for index, (translation, row, column) in enumerate(corners, 1):
        is_last = index == len(corners)
        own = translation.attention[: n_rows - row if is_last else len(translation.tokens)]
        block = attention[row : row + len(own)]
        block[:, column : column + len(translation.src_tokens)] = own[:, :-1]
        block[:, -1] = own[:, -1]
    return attention


def _tokens(parts: Sequence[Sequence[str]], tokenizer: Tokenizer) -> tuple[str, ...]:
    """All tokens; each sentence begins a word."""
    tokens: list[str] = []
    for part in parts:
        first = "".join(part[:1])
        is_glued = bool(tokens) and " " not in tokenizer.join([tokens[-1], first])
        tokens += [SPACE + first if is_glued and first else first, *part[1:]] if part else []
    return tuple(tokens)
