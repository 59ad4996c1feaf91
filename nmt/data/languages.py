"""What tells languages apart: scripts, the stop words that spaCy lists, and codes."""

import importlib.util
import re
import runpy
from functools import cache
from pathlib import Path

from nmt.text.tokenizers import WORD_CHARACTERS

# Scripts that one language uses, or nearly so, by the first word of Unicode's names of their
# characters.
SCRIPTS = {
    "HIRAGANA": "ja",
    "KATAKANA": "ja",
    "CJK": "zh",
    "HANGUL": "ko",
    "THAI": "th",
    "LAO": "lo",
    "KHMER": "km",
    "MYANMAR": "my",
    "TIBETAN": "bo",
    "GREEK": "el",
    "HEBREW": "he",
    "GEORGIAN": "ka",
    "ARMENIAN": "hy",
    "TAMIL": "ta",
    "TELUGU": "te",
    "KANNADA": "kn",
    "MALAYALAM": "ml",
    "GUJARATI": "gu",
    "SINHALA": "si",
}

# Languages whose frequent words are those of another one, in spaCy's lists.
SAME_WORDS = {"sr": "hr", "bs": "hr", "sh": "hr", "no": "nb", "nn": "nb", "gl": "pt"}
SAME_WORDS |= {"yi": "he", "dz": "bo"}
SHORT_CODES = """
    aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv
    cy da de dv dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr
    ht hu hy hz ia id ie ig ii ik io is it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw
    ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no nr nv
    ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg sh si sk sl sm sn so sq
    sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh
    yi yo za zh zu
"""  # ISO 639-1

LETTERS = re.compile(rf"(?:(?![\d_])[{WORD_CHARACTERS}])+")


def count_words(text: str, languages: tuple[str, str]) -> tuple[int, int]:
    """How many words of `text` are frequent only in the first language, and only in the second."""
    first, second = map(function_words, languages)
    words = set(LETTERS.findall(text.lower()))
    return len(words & first - second), len(words & second - first)


@cache
def function_words(language: str) -> frozenset[str]:
    """The stop words of a language, without contractions; empty if spaCy has none."""
    path = spacy_languages() / language / "stop_words.py"
    words = runpy.run_path(str(path))["STOP_WORDS"] if path.is_file() else ()
    return frozenset(word for word in words if LETTERS.fullmatch(word))


def spacy_languages() -> Path:
    """The folder of spaCy's languages, to read single files: importing spaCy takes seconds."""
    package = importlib.util.find_spec("spacy")
    folders = package.submodule_search_locations if package else None
    return Path(next(iter(folders or ()), "")) / "lang"


@cache
def languages_by_stop_word() -> dict[str, list[str]]:
    """The languages that have each word among their stop words."""
    languages: dict[str, list[str]] = {}
    for path in sorted(spacy_languages().glob("*/stop_words.py")):
        for word in function_words(path.parent.name):
            languages.setdefault(word.lower(), []).append(path.parent.name)
    return languages
