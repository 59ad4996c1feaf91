"""Joins the translations of sentences into that of a text."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

import numpy as np

from nmt.decoding.translator import Translation
from nmt.extras.texts.confidence import of_sentences
from nmt.extras.texts.marked import Marked
from nmt.text.tokenizers import SPACE, Tokenizer

Translated = tuple[Translation, Marked]


def join_marked(parts: Sequence[Marked]) -> Marked:
    """One text of several."""
    starts = accumulate((len(part.text) for part in parts), initial=0)
    marks = (
        replace(mark, position=start + mark.position)
        for start, part in zip(starts, parts, strict=False)
        for mark in part.marks
    )
    return Marked("".join(part.text for part in parts), tuple(marks))


def join(
    source: str,
    parts: Sequence[Translated],
    gaps: Sequence[Marked],
    tokenizers: tuple[Tokenizer, Tokenizer],
) -> Translated:
    """The translation of a text of several sentences, and the same with its marks.

    The sentences attend to themselves. The weights of <eos> have one column at the end. A row of
    <eos> is only there if all sentences are complete; the log-probabilities of the others count
    with the token before, so that `log_prob` is the sum.

    Args:
        gaps: what stands between two sentences.
    """
    translations = [translation for translation, _ in parts]
    pieces = [parts[0][1]]
    for gap, (_, marked) in zip(gaps, parts[1:], strict=True):
        pieces += [gap, marked]
    marked = join_marked(pieces)
    is_complete = all(translation.complete for translation in translations)
    columns = [0, *accumulate(len(translation.src_tokens) for translation in translations)]
    attention = np.zeros((sum(len(each.tokens) for each in translations) + 1, columns[-1] + 1))
    log_probs, replaced, row, rest = list[float](), [], 0, 0.0
    for translation, column in zip(translations, columns, strict=False):
        size, width = len(translation.tokens), len(translation.src_tokens)
        own = translation.attention[:size]
        attention[row : row + size, column : column + width] = own[:, :-1]
        attention[row : row + size, -1] = own[:, -1]
        for each in translation.replaced:
            shifted = None if each.src_position is None else each.src_position + column
            replaced.append(replace(each, position=each.position + row, src_position=shifted))
        log_probs += translation.token_log_probs[:size]
        row += size
        rest += sum(translation.token_log_probs[size:])
        if log_probs and translation is not translations[-1]:
            log_probs[-1], rest = log_probs[-1] + rest, 0.0
    if is_complete:
        for last in translations[-1].attention[len(translations[-1].tokens) :]:
            attention[row, columns[-2] : columns[-1]], attention[row, -1] = last[:-1], last[-1]
        log_probs.append(rest)
    read = None
    if any(each.read is not None for each in translations):
        read = " ".join(each.read or each.source for each in translations)
    listed = [
        {"source": each.source, "text": each.text, **of_sentences([each])} for each in translations
    ]
    return (
        Translation(
            source=source,
            text=marked.written,
            src_tokens=_tokens([each.src_tokens for each in translations], tokenizers[0]),
            tokens=_tokens([each.tokens for each in translations], tokenizers[1]),
            score=sum(each.score for each in translations),
            log_prob=sum(each.log_prob for each in translations),
            token_log_probs=tuple(log_probs),
            attention=attention[: len(log_probs)].astype(np.float32),
            complete=is_complete,
            src_cut=any(each.src_cut for each in translations),
            replaced=tuple(replaced),
            read=read,
            warnings=tuple(dict.fromkeys(w for each in translations for w in each.warnings)),
            facts={"sentences": listed, **of_sentences(translations)},
        ),
        marked,
    )


def _tokens(parts: Sequence[Sequence[str]], tokenizer: Tokenizer) -> tuple[str, ...]:
    """All tokens; each sentence begins a word."""
    tokens: list[str] = []
    for part in parts:
        first = "".join(part[:1])
        is_glued = bool(tokens) and " " not in tokenizer.join([tokens[-1], first])
        tokens += [SPACE + first if is_glued and first else first, *part[1:]] if part else []
    return tuple(tokens)
