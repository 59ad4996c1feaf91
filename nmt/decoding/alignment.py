"""Word alignment from attention: pairs of words.

Words are separated by white space, in the source and in the output as written; tokens of any
tokenizer are parts of words. Attention is not alignment: it shows what the decoder read before it
wrote a word (Koehn and Knowles 2017, 3.5).
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmt.decoding.translation import Translation, with_replacements
from nmt.text.tokenizers import Tokenizer


def align(
    translation: Translation, tokenizers: tuple[Tokenizer, Tokenizer]
) -> list[tuple[int, int]]:
    """Pairs (source word, output word), counted from 0, sorted by source word: for each output word
    the source word with the largest weight, or none if <eos> has the largest weight.

    Args:
        tokenizers: (source, target).
    """
    if not translation.has_attention:
        return []
    if sentences := translation.sentences:
        src_words = _first_words(translation.source, [each.source for each in sentences])
        tgt_words = _first_words(translation.text, [each.text for each in sentences])
        pairs = {
            (src_word + column, tgt_word + row)
            for each, src_word, tgt_word in zip(sentences, src_words, tgt_words, strict=True)
            for column, row in align(each, tokenizers)
        }
        return sorted(pairs)
    src_tokenizer, tgt_tokenizer = tokenizers
    # A word of the source without tokens, of invisible letters, counts.
    visible = [
        index
        for index, word in enumerate(translation.source.split())
        if src_tokenizer.normalize(word)
    ]
    columns = [
        visible[place] if place >= 0 else -1
        for place in token_to_word(translation.src_tokens, src_tokenizer.join)
    ]
    rows = token_to_word(written_tokens(translation), tgt_tokenizer.join)
    weights = word_weights(translation.attention[: len(rows)], rows, columns)
    peaks = weights.argmax(1)
    aligned = (np.arange(weights.shape[1] - 1) == peaks[:, None]) & (weights[:, :-1] > 0)
    return sorted((int(column), int(row)) for row, column in zip(*aligned.nonzero(), strict=True))


def _first_words(text: str, parts: Sequence[str]) -> list[int]:
    """The number of the word of a text in which each part begins; parts may touch each other."""
    starts = [word.start() for word in re.finditer(r"\S+", text)]
    position, words = 0, []
    for part in parts:
        start = max(text.find(part, position), position)
        words.append(max(bisect_right(starts, start) - 1, 0))
        position = start + len(part)
    return words


def translation_to_dict(
    translation: Translation, tokenizers: tuple[Tokenizer, Tokenizer]
) -> dict[str, Any]:
    """All about a translation but its source, for JSON; arguments as in `align`."""
    return {
        "text": translation.text,
        "tokens": translation.tokens,
        "score": translation.score,
        "log_prob": translation.log_prob,
        "token_log_probs": translation.token_log_probs,
        "alignment": align(translation, tokenizers),
        "replaced": [asdict(replacement) for replacement in translation.replaced],
        "complete": translation.complete,
    }


def written_tokens(translation: Translation) -> list[str]:
    """The tokens of the text: unknown ones are replaced, and "" if they were left out."""
    return with_replacements(translation.tokens, translation.replaced)


def token_to_word(tokens: Sequence[str], join: Callable[[Sequence[str]], str]) -> list[int]:
    """The index of the word that each token belongs to; -1 for a token that adds no text.

    This works for any tokenizer: a token belongs to the last word of the text of all tokens up to
    it.
    """
    places, start, n_before, before = list[int](), 0, 0, ""
    for position, token in enumerate(tokens):
        text = join(tokens[start : position + 1])
        words = text.split()
        places.append(n_before + len(words) - 1 if text != before else -1)
        if len(words) > 1 and words[-1] == join([token]):
            # It begins a word: what comes does not depend on the words before, and texts are long.
            start, n_before, text = position, n_before + len(words) - 1, words[-1]
        before = text
    return places


def word_weights(
    attention: NDArray[np.float32], rows: Sequence[int], columns: Sequence[int]
) -> NDArray[np.float32]:
    """Attention between words: the sum over a source word's tokens, the mean over an output word's.

    Args:
        attention: [T, S]; the last column belongs to <eos>.
        rows: [T], the word of each output token. columns: [S - 1], the word of each source token.
            -1 is no word.

    Returns:
        [output words, source words + 1], the last column for <eos>.
    """
    n_rows, n_columns = max(rows, default=-1) + 1, max(columns, default=-1) + 1
    in_row = np.equal.outer(np.arange(n_rows), rows).astype(np.float32)  # [output words, T]
    in_column = np.equal.outer(np.arange(n_columns + 1), [*columns, n_columns]).astype(
        np.float32
    )  # [source words + 1, S]
    means: NDArray[np.float32] = (
        in_row @ attention @ in_column.T / np.maximum(in_row.sum(1, keepdims=True), 1)
    )
    return means
