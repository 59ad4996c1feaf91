"""Frequent words that tell two languages apart: the stop words that spaCy knows for one of them
alone.
"""

import importlib.util
import re
import runpy
from functools import cache
from pathlib import Path

_WORD = re.compile(r"[^\W\d_]+")


def count_words(text: str, languages: tuple[str, str]) -> tuple[int, int]:
    """How many words of `text` are frequent in the first language only, and how many in the second
    only.
    """
    first, second = map(function_words, languages)
    words = set(_WORD.findall(text.lower()))
    return len(words & first - second), len(words & second - first)


@cache
def function_words(language: str) -> frozenset[str]:
    """The stop words of a language, without contractions; empty if spaCy has none."""
    path = spacy_languages() / language / "stop_words.py"
    words = runpy.run_path(str(path))["STOP_WORDS"] if path.is_file() else ()
    return frozenset(word for word in words if _WORD.fullmatch(word))


def spacy_languages() -> Path:
    """The folder of spaCy's languages. Single files are read from it: the import of spaCy takes
    seconds.
    """
    package = importlib.util.find_spec("spacy")
    folders = package.submodule_search_locations if package else None
    return Path(next(iter(folders or ()), "")) / "lang"
