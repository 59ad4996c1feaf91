"""Gives a text in CAPITALS the case that the training data has."""

from nmt.decoding.translator import has_letters
from nmt.decoding.warnings import WordFrequencies

MARGIN = 2.0  # nats: many words begin sentences, and have capital letters as often as not


def usual_case(text: str, words: WordFrequencies) -> str:
    """Each word in lower case, the first one with a capital letter; but a word that is far more
    frequent with a capital letter, or in capitals, as it is frequent. The length stays the same.
    """
    written = text.split(" ")
    places = [place for place, word in enumerate(written) if has_letters(word)]
    for place in places:
        word = written[place]
        forms = [word.lower(), _capitalized(word), word]
        log_probs = words.log_probs(forms)
        log_probs[0] += MARGIN
        best = forms[max(range(len(forms)), key=log_probs.__getitem__)]
        written[place] = best if len(best) == len(word) else word
    if places and written[places[0]].islower():
        written[places[0]] = _capitalized(written[places[0]])
    return " ".join(written)


def is_upper(text: str) -> bool:
    """Whether the letters of a text, and not only the first of each word, are capitals."""
    return sum(map(str.isupper, text)) > sum(map(str.islower, text))


def _capitalized(word: str) -> str:
    """In lower case, but for the first letter."""
    first = next(index for index, letter in enumerate(word) if letter.isalpha())
    return word[:first] + word[first].upper() + word[first + 1 :].lower()
