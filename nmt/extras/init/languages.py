"""The language of a text, and names and codes of languages, as headers, records and names of files
have them.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import cache

from nmt.data.languages import (
    LETTERS,
    SCRIPTS,
    SHORT_CODES,
    languages_by_stop_word,
    spacy_languages,
)
from nmt.text.tokenizers import NO_SPACES

# The codes of three letters that corpora have.
LONG_CODES = """
    ara arb bul ces cmn dan deu dut ell eng est fas fin fra fre ger heb hin hun ind ita jpn kor lav
    lit nld nob pol por ron rum rus slk slv spa srp swe tha tur ukr vie zho
"""
CODES = (*SHORT_CODES.split(), *LONG_CODES.split())
# Names of languages in themselves, and of English, German and French in some others.
NAMES = {
    "en": "englisch anglais inglés inglese inglês engels angielski английский 英語 英语 英文 영어",
    "de": "deutsch allemand alemán tedesco duits niemiecki немецкий ドイツ語 德语 德文 독일어",
    "fr": "français französisch francés francese frans francuski французский フランス語 法语",
    "es": "español spanisch espagnol",
    "it": "italiano italienisch italien",
    "pt": "português portugiesisch portugais",
    "nl": "nederlands niederländisch néerlandais",
    "pl": "polski polnisch polonais",
    "ru": "русский russisch russe",
    "zh": "中文 汉语 漢語 chinesisch chinois",
    "ja": "日本語 japanisch japonais",
    "ko": "한국어",
    "ar": "العربية",
    "cs": "čeština",
    "da": "dansk",
    "el": "ελληνικά",
    "fi": "suomi",
    "hu": "magyar",
    "ro": "română",
    "sv": "svenska",
    "tr": "türkçe",
    "uk": "українська",
}
_UNSPACED = re.compile(f"[{NO_SPACES}]")


def language_of_name(name: str) -> str | None:
    """The code of a language by its code or name, also with a region or as the last part of a name:
    "de-AT", "German (Austria)", "Deutsch", "translation.de" and "text_de" give "de"; "deu_Latn"
    gives "deu".
    """
    word = name.strip().lower().rpartition(".")[2]
    first, last = re.split(r"[-_]| *\(", word)[0], re.split(r"[_(]", word)[-1].rstrip(")")
    codes = {code: code for code in (*CODES, *_names().values())}
    return next(filter(None, map((codes | _names()).get, (first, word, last))), None)


def pair_of_name(name: str, guesses: Sequence[str | None]) -> Sequence[str | None]:
    """The two languages in the name of a file, "ui.en-ar.tsv", if they fit what is known of them;
    else the guesses.
    """
    for found in re.finditer(r"(?<![a-z])([a-z]{2,3})[-_]([a-z]{2,3})(?![a-z])", name.lower()):
        pair = found.groups()
        fits = all(guess in (None, code) for guess, code in zip(guesses, pair, strict=True))
        if fits and {*pair} <= {*CODES}:
            return pair
    return guesses


@cache
def english_names() -> dict[str, str]:
    """Code -> name, such as "Ancient Greek": those of spaCy's classes."""
    matches = {
        path.parent.name: re.search(r'__all__ = \["(\w+)"', path.read_text("utf-8"))
        for path in spacy_languages().glob("*/__init__.py")
    }
    return {
        code: re.sub("(?<=[a-z])(?=[A-Z])", " ", match[1])
        for code, match in matches.items()
        if match and code != "xx"
    }


@cache
def _names() -> dict[str, str]:
    """Name -> code."""
    english = {name.replace(" ", "").lower(): code for code, name in english_names().items()}
    return english | {name: code for code, names in NAMES.items() for name in names.split()}


def has_no_spaces(texts: list[str]) -> bool:
    """Whether most letters are of scripts without spaces between words, and few spaces are there: a
    text may have been split into words before.
    """
    text = " ".join(texts)
    n_unspaced = len(_UNSPACED.findall(text))
    return n_unspaced > 0.3 * len(text) and text.count(" ") - len(texts) < 0.15 * n_unspaced


def guess_language(texts: Iterable[str]) -> str | None:
    """The code of the language of `texts`, for example "en"; None if it is not clear.

    Stop words tell where most texts have some: the texts of menus have few, and the words of other
    languages that happen to be spelled like one of them would decide.
    """
    texts = [text.lower() for text in texts]
    scripts = Counter(
        SCRIPTS.get(unicodedata.name(letter, "").split(" ")[0])
        for letter in "".join(texts)
        if letter.isalpha()
    )
    # Japanese has its kana among Chinese characters.
    for language, share in {**dict.fromkeys(SCRIPTS.values(), 0.2), "ja": 0.05}.items():
        if scripts[language] > share * scripts.total():
            return language
    n_words = 0
    n_texts: Counter[str] = Counter()
    found: defaultdict[str, set[str]] = defaultdict(set)
    scores: defaultdict[str, float] = defaultdict(float)  # a stop word of many languages says less
    for text in texts:
        words = LETTERS.findall(text)
        n_words += len(words)
        of_text = set[str]()
        for word in words:
            languages = languages_by_stop_word().get(word, ())
            of_text.update(languages)
            for language in languages:
                scores[language] += 1 / len(languages)
                found[language].add(word)
        n_texts.update(of_text)
    best, second = [*sorted(scores, key=scores.__getitem__, reverse=True), "", ""][:2]
    share = n_texts[best] / max(1, len(texts))
    is_usual = share >= 0.8 or (share >= 0.4 and len(found[best]) >= 8)
    is_clear = scores[best] >= max(0.04 * n_words, 1.3 * scores[second])
    return best if is_usual and is_clear else None
