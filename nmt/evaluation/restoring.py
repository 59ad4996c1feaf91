"""Text of what is kept as ids alone: the training data."""

from collections.abc import Iterator, Sequence

from nmt.data.corpus import Sequences
from nmt.text.tokenizers import Tokenizer
from nmt.text.vocabulary import UNK, Vocabulary

MOST_UNKNOWN = 0.25  # of the tokens of a sentence


def restore(sentences: Sequences, tokenizer: Tokenizer, vocabulary: Vocabulary) -> Iterator[str]:
    """The sentences as text, unknown words as <unk>."""
    for i in range(len(sentences)):
        yield tokenizer.join(vocabulary.tokens(sentences[i].tolist()))


def forms(texts: Sequence[str], tokenizer: Tokenizer, vocabulary: Vocabulary) -> list[tuple[str, ...]]:
    """Each text, normalised as the training data is, and, if a few of its tokens are unknown, as `restore` would give it.

    With many unknown tokens it would be taken for other sentences.
    """
    found: list[tuple[str, ...]] = []
    for text, tokens in zip(map(tokenizer.normalize, texts), tokenizer.split_all(texts), strict=True):
        ids = vocabulary.ids(tokens)
        few = 0 < ids.count(UNK) <= MOST_UNKNOWN * len(ids)
        found.append((text, tokenizer.join(vocabulary.tokens(ids))) if few else (text,))
    return found
