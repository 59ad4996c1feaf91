"""Lines without words: there is nothing to translate in numbers, dots and emoji, so they are
copied.
"""

from nmt.text.vocabulary import Vocabulary


def has_letters(text: str) -> bool:
    return any(map(str.isalpha, text))


class WordlessLines:
    """Knows which lines are copied: those without letters.

    Two kinds are translated after all: all lines, if the training data is mostly numbers or signs;
    and a line with a character beyond ASCII that the source language has and the target language
    lacks, such as "。" on the way into English.

    Args:
        source, target: with the counts of the training data.

    Attributes:
        are_copied: False if the training data is mostly numbers or signs.
        only_source: the characters that the source language has and the target language lacks.
    """

    def __init__(self, source: Vocabulary, target: Vocabulary) -> None:
        counted = zip(source, source.counts, strict=True)
        n_words = sum(count for token, count in counted if has_letters(token))
        self.are_copied = n_words >= sum(source.counts) / 2
        self.only_source = {*"".join(source)} - {*"".join(target)}

    def __contains__(self, text: str) -> bool:
        if not self.are_copied or has_letters(text):
            return False
        return text.isascii() or self.only_source.isdisjoint(text)
