"""Which source word each output word was made from, read off the attention: pairs of words, as Pharaoh writes them ("0-0 1-2").

Words are what white space parts, in the source and in the output as they are written; tokens, of whatever tokenizer, are parts of
them. Attention is no alignment: it says what the decoder read before it wrote a word (Koehn and Knowles 2017, 3.5).
"""

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from nmt.decoding.translation import Translation
from nmt.text.tokenizers import Tokenizer

Join = Callable[[Sequence[str]], str]


def align(
    translation: Translation, tokenizers: tuple[Tokenizer, Tokenizer], threshold: float | None = None
) -> list[tuple[int, int]]:
    """Pairs (source word, output word), counted from 0, by source word.

    Args:
        tokenizers: (source, target).
        threshold: all pairs of at least this weight; None for the heaviest source word of each output word, or none where <eos>
            is heavier.
    """
    if translation.attention is None:
        return []
    src_tokenizer, tgt_tokenizer = tokenizers
    columns = _source_words(translation, src_tokenizer)
    rows = words_of(_written(translation), tgt_tokenizer.join)
    weights = word_weights(translation.attention[: len(rows)], rows, columns)
    if threshold is not None:
        found = weights[:, :-1] >= threshold
    else:
        heaviest = weights.argmax(1)
        found = (np.arange(weights.shape[1] - 1) == heaviest[:, None]) & (weights[:, :-1] > 0)
    return sorted((int(column), int(row)) for row, column in zip(*found.nonzero(), strict=True))


def to_pharaoh(pairs: Sequence[tuple[int, int]]) -> str:
    """One line."""
    return " ".join(f"{source}-{output}" for source, output in pairs)


def words_of(tokens: Sequence[str], join: Join) -> list[int]:
    """The word that each token is part of, counted from 0; -1 for a token that nothing is written of.

    How a tokenizer marks its words is its own affair: a token is part of the last word that is there when it has been joined.
    """
    texts = [join(tokens[:end]) for end in range(len(tokens) + 1)]
    return [len(text.split()) - 1 if text != before else -1 for before, text in pairwise(texts)]


def word_weights(attention: NDArray[np.float32], rows: Sequence[int], columns: Sequence[int]) -> NDArray[np.float32]:
    """The attention between words: the sum over a source word's tokens, the mean over an output word's.

    Args:
        attention: [T, S]; the last column belongs to <eos>.
        rows: [T], the word of each output token. columns: [S - 1], that of each source token. -1 is part of none.

    Returns:
        [output words, source words + 1], the last column for <eos>.
    """
    n_rows, n_columns = max(rows, default=-1) + 1, max(columns, default=-1) + 1
    in_row = np.equal.outer(np.arange(n_rows), rows).astype(np.float32)  # [output words, T]
    in_column = np.equal.outer(np.arange(n_columns + 1), [*columns, n_columns]).astype(np.float32)  # [source words + 1, S]
    means: NDArray[np.float32] = in_row @ attention @ in_column.T / np.maximum(in_row.sum(1, keepdims=True), 1)
    return means


def _source_words(translation: Translation, tokenizer: Tokenizer) -> list[int]:
    """As `words_of`, in the source as it was given: a word that consists of invisible characters has no tokens, but counts."""
    visible = [place for place, word in enumerate(translation.source.split()) if tokenizer.normalize(word)]
    return [visible[word] if word >= 0 else -1 for word in words_of(translation.src_tokens, tokenizer.join)]


def _written(translation: Translation) -> list[str]:
    """The output's tokens as they are written, "" where an unknown word was left out."""
    instead = {one.position: one.token for one in translation.replaced}
    return [instead.get(position, token) for position, token in enumerate(translation.tokens)]
