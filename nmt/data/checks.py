"""Signs that a file of sentence pairs is not what the configuration says: swapped, shifted, in
another language. A language is known by its script, or by the stop words that spaCy
lists for it.
"""

import importlib.util
import math
import re
import runpy
import unicodedata
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from heapq import nlargest
from pathlib import Path

import numpy as np
import numpy.typing as npt

from nmt.data.splitting import Fingerprints, Kind, are_among, fingerprint
from nmt.errors import DataError, NmtWarning

MAX_SHIFT = 3

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

EMPTY = np.frombuffer(fingerprint(""), "<u8")[0]

_WORD, _LETTERS = re.compile(r"\w{3,}|\d+"), re.compile(r"[^\W\d_]+")

Pair = tuple[str, str]


def check_order(
    name: str,
    unit: str,
    line_range: tuple[int, int],
    languages: tuple[str, str],
    cleaned: Sequence[Pair],
    decoded: Sequence[Pair],
) -> None:
    """Raises: DataError if the languages of a chunk are swapped, or its sides are shifted.

    Args:
        unit: what a row is called. line_range: the first and the last row.
        decoded: the pairs of neighboring rows.
    """
    place = f"({unit}s {line_range[0]:,} to {line_range[1]:,})"
    if are_swapped(cleaned, languages):
        src, tgt = languages
        raise DataError(
            f"{name}: the languages are swapped: the {src} sentences are {tgt}, and the {tgt} "
            f"sentences are {src} {place}; swap `columns` or `files` of this source in the "
            "configuration, or correct the file"
        )
    if shift := find_shift(decoded):
        rows = unit if abs(shift) == 1 else f"{abs(shift)} {unit}s"
        raise DataError(
            f"{name}: the pairs are shifted: most sources belong to the target {rows} "
            f"{'below' if shift > 0 else 'above'} {place}; find the missing or added {unit} "
            "before this place, and correct the file"
        )


def are_swapped(pairs: Sequence[Pair], languages: tuple[str, str]) -> bool:
    """Whether most of the words that only one of the languages has are on the side of the other: at
    least 80 % of at least 20 words in a sample.
    """
    right = wrong = 0
    for src, tgt in pairs[:: -(-len(pairs) // 256) or 1]:
        src_right, src_wrong = count_words(src, languages)
        tgt_wrong, tgt_right = count_words(tgt, languages)
        right, wrong = right + src_right + tgt_right, wrong + src_wrong + tgt_wrong
    return right + wrong >= 20 and wrong >= 0.8 * (right + wrong)


def find_shift(pairs: Sequence[Pair]) -> int:
    """By how many rows the targets stand too low; negative if too high; 0 if the pairs belong
    together, or it is not clear.

    A sentence and its translation have similar lengths, the same punctuation at the end, and names
    and numbers in common. The shift is the one with which they have clearly more of that (a z-test
    over the rows, at least 30).
    """
    src, tgt = ([_traits(pair[side]) for pair in pairs[:1024]] for side in (0, 1))
    rows = range(MAX_SHIFT, len(src) - MAX_SHIFT)
    if len(rows) < 30:
        return 0
    usual = float(np.median([one[0] - other[0] for one, other in zip(src, tgt, strict=True)]))

    def similarity(shift: int) -> npt.NDArray[np.float64]:
        shifted = [(src[row], tgt[row + shift]) for row in rows]
        return np.array(
            [
                -2 * abs(one[0] - other[0] - usual)
                + (one[1] == other[1])
                + min(2, len(one[2] & other[2]))
                for one, other in shifted
            ]
        )

    present, z_scores = similarity(0), {}
    for shift in (*range(-MAX_SHIFT, 0), *range(1, MAX_SHIFT + 1)):
        gain = similarity(shift) - present
        z_scores[shift] = float(gain.mean() / (gain.std() / math.sqrt(len(gain)) + 1e-9))
    best = max(z_scores, key=lambda shift: z_scores[shift])
    # Aligned files are far below 0; a random order exceeds 5 once in a million chunks.
    return best if z_scores[best] >= 5 else 0


def _traits(text: str) -> tuple[float, str, frozenset[str]]:
    """The logarithm of the length, the punctuation at the end, and the words and numbers."""
    text = text.rstrip()
    return (
        math.log(len(text) + 10),
        text[-1:] if text[-1:] in "?!.:…" else "",
        frozenset(_WORD.findall(text.lower())),
    )


def check_dropped(name: str, reasons: Mapping[str, int], n_read: int) -> None:
    """Warn if cleaning dropped most pairs."""
    if sum(reasons.values()) > n_read / 2:
        listing = ", ".join(f"{count:,} {reason}" for reason, count in reasons.items() if count)
        _warn(
            f"{name}: most of its {n_read:,} pairs are dropped: {listing}; check the file, and "
            "data.cleaning"
        )


def check_languages(name: str, pairs: Sequence[Pair], languages: tuple[str, str]) -> None:
    """Warn if a side of a sample seems to be in another language, or the sides are the same."""
    if sum(src == tgt for src, tgt in pairs) > len(pairs) / 2:
        _warn(
            f"{name}: in most pairs, source and target are the same text; check `columns` or "
            "`files`"
        )
    for language, texts in zip(languages, zip(*pairs, strict=True), strict=False):
        known, words = function_words(language), _LETTERS.findall(" ".join(texts).lower())
        n_known = sum(word in known for word in words)
        # In another language, few words are frequent in the stated one.
        if len(words) < 200 or n_known >= 0.05 * len(words):
            continue
        guess = guess_language(texts)
        if guess != language and (known or guess):
            looks = f"look like {guess}" if guess else f"have few frequent words of {language}"
            _warn(
                f"{name}: the {language} sentences are perhaps in another language (they {looks}); "
                "check data.direction and `columns`"
            )


def check_held_out(
    names: Mapping[str, str], fingerprints: Mapping[str, Callable[[Kind], Fingerprints]]
) -> None:
    """Check dev and test sets from their own files: no empty sentences, no pairs of another set.

    Args:
        names: of the files.
        fingerprints: read those of each set, see `reading.Pairs`; the training data first.

    Raises:
        DataError: all pairs of a set have an empty side.
    """
    train, *held_out = fingerprints
    for index, name in enumerate(held_out):
        is_empty = (fingerprints[name]("src") == EMPTY) | (fingerprints[name]("tgt") == EMPTY)
        if is_empty.all():
            raise DataError(
                f"{names[name]}: no sentence in it has a translation; check data.{name}"
            )
        if is_empty.any():
            _warn(
                f"{names[name]}: {int(is_empty.sum()):,} pairs have an empty side (the first: pair "
                f"{int(np.argmax(is_empty)) + 1:,}); correct them"
            )
        for other in (train, *held_out[:index]):
            is_shared = are_among(fingerprints[name]("pair"), fingerprints[other]("pair"))
            if is_shared.mean() > 0.1:
                _warn(
                    f"{names[name]}: {int(is_shared.sum()):,} of its {len(is_shared):,} pairs are "
                    f"also in data.{other}, which makes its scores worthless; take other pairs for "
                    f"data.{name}"
                )


def check_vocabulary(side: str, n_tokens: int, coverage: float) -> None:
    """Raise a DataError if no token is in the vocabulary; warn if few tokens of the dev set are."""
    remedy = "raise vocabulary.max_size, or lower vocabulary.min_frequency"
    if not n_tokens:
        raise DataError(f"the {side} vocabulary has no token; {remedy}")
    if coverage < 0.5:
        _warn(
            f"the {side} vocabulary knows only {coverage:.0%} of the tokens of the dev set; "
            f"{remedy}"
        )


def count_words(text: str, languages: tuple[str, str]) -> tuple[int, int]:
    """How many words of `text` are frequent only in the first language, and only in the second."""
    first, second = map(function_words, languages)
    words = set(_LETTERS.findall(text.lower()))
    return len(words & first - second), len(words & second - first)


@cache
def function_words(language: str) -> frozenset[str]:
    """The stop words of a language, without contractions; empty if spaCy has none."""
    path = spacy_languages() / language / "stop_words.py"
    words = runpy.run_path(str(path))["STOP_WORDS"] if path.is_file() else ()
    return frozenset(word for word in words if _LETTERS.fullmatch(word))


def spacy_languages() -> Path:
    """The folder of spaCy's languages, to read single files: importing spaCy takes seconds."""
    package = importlib.util.find_spec("spacy")
    folders = package.submodule_search_locations if package else None
    return Path(next(iter(folders or ()), "")) / "lang"


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
    n_words, n_texts, found = 0, Counter[str](), defaultdict[str, set[str]](set)
    scores: defaultdict[str, float] = defaultdict(float)  # a stop word of many languages says less
    for text in texts:
        words = _LETTERS.findall(text)
        n_words += len(words)
        of_text = set[str]()
        for word in words:
            languages = _languages_by_stop_word().get(word, ())
            of_text.update(languages)
            for language in languages:
                scores[language] += 1 / len(languages)
                found[language].add(word)
        n_texts.update(of_text)
    best, second = [*nlargest(2, scores, key=scores.__getitem__), "", ""][:2]
    share = n_texts[best] / max(1, len(texts))
    is_usual = share >= 0.8 or (share >= 0.4 and len(found[best]) >= 8)
    is_clear = scores[best] >= max(0.04 * n_words, 1.3 * scores[second])
    return best if is_usual and is_clear else None


@cache
def _languages_by_stop_word() -> dict[str, list[str]]:
    languages: dict[str, list[str]] = {}
    for path in sorted(spacy_languages().glob("*/stop_words.py")):
        for word in function_words(path.parent.name):
            languages.setdefault(word.lower(), []).append(path.parent.name)
    return languages


def _warn(text: str) -> None:
    warnings.warn(text, NmtWarning, stacklevel=3)
