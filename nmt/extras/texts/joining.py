"""Joins the translations of sentences into that of a text."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from nmt.decoding.translator import Translation
from nmt.decoding.unknown_words import Replacement
from nmt.extras.texts.confidence import of_sentences
from nmt.extras.texts.marked import Marked
from nmt.text.tokenizers import SPACE, Tokenizer

MAX_WEIGHTS = 1 << 22  # of the attention of a text: 16 MB
Translated = tuple[Translation, Marked]


@dataclass(frozen=True)
class JoinedTranslation(Translation):
    """The translation of a text of several sentences. sentences: theirs."""

    sentences: tuple[Translation, ...] = ()


def join(
    source: str,
    parts: Sequence[Translated],
    gaps: Sequence[Marked],
    tokenizers: tuple[Tokenizer, Tokenizer],
) -> Translated:
    """The translation of a text of several sentences, and the same with its marks.

    The sentences attend to themselves. The weights of <eos> have one column at the end; a text of
    very many words has no attention. A row of <eos> is only there if all sentences are complete;
    the log-probabilities of the others count with the token before, so that `log_prob` is the sum.

    Args:
        gaps: what stands between two sentences.
    """
    translations = [translation for translation, _ in parts]
    pieces = [
        piece for gap, (_, marked) in zip(gaps, parts[1:], strict=True) for piece in (gap, marked)
    ]
    marked = Marked.joined([parts[0][1], *pieces])
    is_complete = all(translation.complete for translation in translations)
    log_probs, replaced, rest, column = list[float](), list[Replacement](), 0.0, 0
    for translation in translations:
        for each in translation.replaced:
            shifted = None if each.src_position is None else each.src_position + column
            position = each.position + len(log_probs)
            replaced.append(replace(each, position=position, src_position=shifted))
        size = len(translation.tokens)
        log_probs += translation.token_log_probs[:size]
        rest += sum(translation.token_log_probs[size:])
        if log_probs and translation is not translations[-1]:
            log_probs[-1], rest = log_probs[-1] + rest, 0.0
        column += len(translation.src_tokens)
    if is_complete:
        log_probs.append(rest)
    is_read = any(each.read is not None for each in translations)
    listed = [{"source": each.source, "text": each.text, **each.facts} for each in translations]
    return (
        JoinedTranslation(
            source=source,
            text=marked.written,
            src_tokens=_tokens([each.src_tokens for each in translations], tokenizers[0]),
            tokens=_tokens([each.tokens for each in translations], tokenizers[1]),
            score=sum(each.score for each in translations),
            log_prob=sum(each.log_prob for each in translations),
            token_log_probs=tuple(log_probs),
            attention=_attention(translations, len(log_probs), column + 1),
            complete=is_complete,
            src_cut=any(each.src_cut for each in translations),
            replaced=tuple(replaced),
            read=" ".join(each.read or each.source for each in translations) if is_read else None,
            warnings=tuple(dict.fromkeys(w for each in translations for w in each.warnings)),
            facts={"sentences": listed, **of_sentences(translations)},
            is_known=all(each.is_known for each in translations),
            sentences=tuple(translations),
        ),
        marked,
    )


def _attention(
    translations: Sequence[Translation], n_rows: int, n_columns: int
) -> NDArray[np.float32]:
    """That of the sentences, block by block."""
    if n_rows * n_columns > MAX_WEIGHTS:
        return np.zeros((0, 1), np.float32)
    attention = np.zeros((n_rows, n_columns), np.float32)
    row = column = 0
    for translation in translations:
        is_last = translation is translations[-1]
        own = translation.attention[: n_rows - row if is_last else len(translation.tokens)]
        height, width = len(own), len(translation.src_tokens)
        attention[row : row + height, column : column + width] = own[:, :-1]
        attention[row : row + height, -1] = own[:, -1]
        row, column = row + height, column + width
    return attention


def _tokens(parts: Sequence[Sequence[str]], tokenizer: Tokenizer) -> tuple[str, ...]:
    """All tokens; each sentence begins a word."""
    tokens: list[str] = []
    for part in parts:
        first = "".join(part[:1])
        is_glued = bool(tokens) and " " not in tokenizer.join([tokens[-1], first])
        tokens += [SPACE + first if is_glued and first else first, *part[1:]] if part else []
    return tuple(tokens)
