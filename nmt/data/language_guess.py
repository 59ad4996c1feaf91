"""Guesses the language of texts: from their script, or else from the stop words that spaCy lists
for each language.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import cache

from nmt.data.function_words import function_words, spacy_languages

# Scripts that one language uses, by the first word of Unicode's names of their characters.
SCRIPTS = {
    "HIRAGANA": "ja",
    "KATAKANA": "ja",
    "CJK": "zh",
    "HANGUL": "ko",
    "THAI": "th",
    "GREEK": "el",
    "HEBREW": "he",
    "GEORGIAN": "ka",
    "ARMENIAN": "hy",
}
MIN_SCRIPT_SHARE = (
    0.2  # of the letters; Japanese is recognized by its kana among Chinese characters
)
MIN_WORD_SCORE = 0.04
MIN_MARGIN = 1.3  # of the best language over the next one


def guess_language(texts: Iterable[str]) -> str | None:
    """The code of the language of `texts`, for example "en"; None if it is not clear. A few hundred
    words are enough.
    """
    text = " ".join(texts).lower()
    return _guess_by_script(text) or _guess_by_words(re.findall(r"[^\W\d_]+", text))


def language_of_name(name: str) -> str | None:
    """The code of a language by its code or English name: "DE" or "German" gives "de"; None for
    another text.
    """
    word = name.strip().lower()
    names = _names()
    return word if word in names.values() else names.get(word)


def _guess_by_script(text: str) -> str | None:
    scripts = Counter(
        unicodedata.name(letter, "").split(" ")[0] for letter in text if letter.isalpha()
    )
    total = scripts.total()
    return next(
        (
            language
            for script, language in SCRIPTS.items()
            if total and scripts[script] / total >= MIN_SCRIPT_SHARE
        ),
        None,
    )


def _guess_by_words(words: list[str]) -> str | None:
    """The language whose stop words are most frequent; a word that many languages have counts
    less.
    """
    if not words:
        return None
    scores: Counter[str] = Counter()
    for word, count in Counter(words).items():
        languages = _languages_by_stop_word().get(word, ())
        for language in languages:
            scores[language] += count / len(languages) / len(words)  # type: ignore[assignment]  # Counter expects whole numbers
    best, second = [*scores.most_common(2), ("", 0.0), ("", 0.0)][:2]
    return best[0] if best[1] >= MIN_WORD_SCORE and best[1] >= MIN_MARGIN * second[1] else None


@cache
def _languages_by_stop_word() -> dict[str, list[str]]:
    languages: dict[str, list[str]] = {}
    for path in sorted(spacy_languages().glob("*/stop_words.py")):
        for word in function_words(path.parent.name):
            languages.setdefault(word.lower(), []).append(path.parent.name)
    return languages


@cache
def _names() -> dict[str, str]:
    """English name -> code, from the names of spaCy's classes."""
    pattern = re.compile(r'__all__ = \["(\w+)"')
    matches = {
        path.parent.name: pattern.search(path.read_text("utf-8"))
        for path in spacy_languages().glob("*/__init__.py")
    }
    return {match[1].lower(): code for code, match in matches.items() if match and code != "xx"}
