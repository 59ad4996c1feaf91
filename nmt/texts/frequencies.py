"""Knows a language by how frequent its words are, and which case is usual for them."""

from collections.abc import Sequence
from math import log

from nmt.decoding.translation import has_letters
from nmt.text.tokenizers import Tokenizer
from nmt.text.vocabulary import UNK, Vocabulary

MARGIN = 2.0  # nats: many words begin sentences, and have capital letters as often as not
MIN_TITLE = 4  # words that all begin with a capital letter
MIN_MARGIN = 1.0  # nats per word by which a text must be more probable in another form
MIN_CAPITALS = 0.7  # of the letters of a text in capitals


class WordFrequencies:
    """Knows a language by the frequencies of its tokens.

    Args:
        vocabulary: with the counts of the training data.
    """

    def __init__(self, tokenizer: Tokenizer, vocabulary: Vocabulary) -> None:
        self._tokenizer, self._vocabulary = tokenizer, vocabulary
        self._log_probs = unigram_log_probs(vocabulary.counts)

    def log_probs(self, texts: Sequence[str]) -> list[float]:
        """Of the tokens of each text, as if each were independent of the others."""
        all_tokens = self._tokenizer.split_all(texts)
        return [
            sum(self._log_probs[index] for index in self._vocabulary.ids(tokens))
            for tokens in all_tokens
        ]

    def known(self, text: str) -> list[bool]:
        """Of each token with letters: whether it is in the vocabulary."""
        tokens = filter(has_letters, self._tokenizer.split(text))
        return [token in self._vocabulary for token in tokens]

    def is_in_capitals(self, text: str) -> bool:
        """Whether a text, or the start of each word, is in capital letters, unlike the training
        data. Never True for scripts without case, and for acronyms, which lower case makes no more
        probable.
        """
        starts = [next(filter(str.isalpha, word)) for word in text.split() if has_letters(word)]
        n_words, is_title = len(starts), all(map(str.isupper, starts))
        n_upper, n_lower = sum(map(str.isupper, text)), sum(map(str.islower, text))
        is_upper = n_upper >= max(2, MIN_CAPITALS * (n_upper + n_lower))
        if not is_upper and not (is_title and n_words >= MIN_TITLE):
            return False
        if n_words == 1:  # "STOP!", but neither "OK!" nor "NASA"
            given, lower, capitalized = (
                self.known(form) == [True] for form in (text, text.lower(), text.capitalize())
            )
            return (lower or capitalized) and not given
        as_lower, as_given = self.log_probs([text.lower(), text])
        return as_lower - as_given > MIN_MARGIN * n_words


def unigram_log_probs(counts: Sequence[int]) -> list[float]:
    """Of each id, from its count in the training data."""
    total = max(sum(counts), 1)
    log_probs = [log(max(count, 0.5) / total) for count in counts]
    log_probs[UNK] = min(log_probs)  # <unk> may be frequent, but each unknown word is rare
    return log_probs


def usual_case(text: str, words: WordFrequencies, *, is_whole: bool) -> str:
    """Each word in lower case, the first one with a capital letter; but a word that is far more
    frequent with a capital letter, or in capitals, as it is frequent. The length stays the same.

    is_whole: or only words in CAPITALS change, if the training data has them in another case.
    """
    written = text.split(" ")
    places = [place for place, word in enumerate(written) if has_letters(word)]
    for place in places:
        word = written[place]
        if not is_whole and not (is_upper(word) and words.is_in_capitals(word)):
            continue
        forms = [word.lower(), _capitalized(word), word]
        log_probs = words.log_probs(forms)
        log_probs[0] += MARGIN
        best = forms[max(range(len(forms)), key=log_probs.__getitem__)]
        if place == places[0] and best.islower():
            best = _capitalized(best)
        written[place] = best if len(best) == len(word) else word
    return " ".join(written)


def is_upper(text: str) -> bool:
    """Whether the letters of a text, and not only the first of each word, are capitals."""
    return sum(map(str.isupper, text)) > sum(map(str.islower, text))


def _capitalized(word: str) -> str:
    """In lower case, but for the first letter."""
    first = next(index for index, letter in enumerate(word) if letter.isalpha())
    return word[:first] + word[first].upper() + word[first + 1 :].lower()
