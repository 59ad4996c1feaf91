"""Text of what is kept as ids alone: the training data."""

from collections.abc import Iterator, Sequence

from nmt.text.corpus import Sequences
from nmt.text.tokenizers import Tokenizer
from nmt.text.vocabulary import Vocabulary


def restore(sentences: Sequences, tokenizer: Tokenizer, vocabulary: Vocabulary) -> Iterator[str]:
    """The sentences as text, unknown words as <unk>."""
    for i in range(len(sentences)):
        yield tokenizer.join(vocabulary.tokens(sentences[i].tolist()))


def as_known(texts: Sequence[str], tokenizer: Tokenizer, vocabulary: Vocabulary) -> list[str]:
    """Texts as `restore` would give them: comparable with training data, whose unknown words are lost."""
    return [tokenizer.join(vocabulary.tokens(vocabulary.ids(tokens))) for tokens in tokenizer.split_all(texts)]
