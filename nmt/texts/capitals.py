"""Gives a text in CAPITALS the case that the training data has."""

from nmt.text.tokenizers import has_letters
from nmt.text.vocabulary import WordFrequencies

MARGIN = 2.0  # nats: many words begin sentences, and have capital letters as often as not


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
