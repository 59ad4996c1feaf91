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
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt

from nmt.data.splitting import Fingerprints, Kind, are_among
from nmt.errors import DataError, NmtWarning
from nmt.text.tokenizers import WORD_CHARACTERS, Side
from nmt.text.vocabulary import SPECIALS, Vocabulary

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
MIN_SHARE = 0.07  # of a side that is in another language, for a warning

# Signs that a text is not as people write it: what, pattern, least part of the sentences, remedy.
NOT_RAW = (
    (
        "HTML entities",
        r"&(?:#\d+|#[xX][\da-fA-F]+|[A-Za-z]\w+);",
        0.02,
        "undo them with Python's html.unescape",
    ),
    ("marks of subword-nmt", r"\S@@(?: |$)", 0.02, "join it with `sed -r 's/(@@ )|(@@ ?$)//g'`"),
    ("marks of SentencePiece", r"(?:^| )▁\w", 0.02, "join it with `sed 's/ //g; s/▁/ /g'`"),
    # One such word may be Maltese.
    ("marks of byte-level BPE", r" Ġ\w+ Ġ", 0.02, "join it with `sed 's/ //g; s/Ġ/ /g'`"),
    ("marks of the OpenNMT tokenizer", "￭", 0.02, "join it with `sed 's/ *￭ *//g'`"),
    ("marks of WordPiece", r"\S ##\w", 0.02, "join it with `sed 's/ ##//g'`"),
    (
        "doubled or escaped quotation marks",
        r'""|\\"',
        0.02,
        "write all cells in one way (RFC 4180)",
    ),
    ("marks of the ends of words", "</w>", 0.02, "join it with `sed 's/ //g; s#</w># #g'`"),
    (
        "words split by a tokenizer",
        r"\w [.,。，、](?: |$)| @-@ ",
        0.2,
        "detokenize it with sacremoses",
    ),
)

LETTERS = re.compile(rf"(?:(?![\d_])[{WORD_CHARACTERS}])+")
_WORD = re.compile(r"\w{3,}|\d+")
_PLACEHOLDER = re.compile(r"%[\w().$*#-]*")  # "s" and "d" are words of many languages


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
        right += src_right + tgt_right
        wrong += src_wrong + tgt_wrong
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

    present = similarity(0)
    z_scores = {}
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
        guess, share = find_other_language(texts, language)
        if share:
            part = f"at least {share:.0%} of " if share < 0.6 else ""
            _warn(
                f"{name}: {part}the {language} sentences are perhaps in another language (they "
                f"look like {guess}); check data.direction and `columns`"
            )


def check_raw_text(name: str, pairs: Sequence[Pair], languages: tuple[str, str]) -> None:
    """Warn if a side of a sample was prepared for another program: split, or escaped."""
    for language, texts in zip(languages, zip(*pairs, strict=True), strict=False):
        for what, pattern, least, remedy in NOT_RAW:
            found = [text for text in texts if re.search(pattern, text)]
            if len(found) >= max(5, least * len(texts)):
                _warn(
                    f"{name}: {len(found) / len(texts):.0%} of the {language} sentences have "
                    f"{what}, for example {found[0][:80]!r}; nmt needs raw text: "
                    f"{remedy}, or take the original text"
                )
                break


def check_repetition(name: str, pairs: Sequence[Pair], languages: tuple[str, str]) -> None:
    """Warn if one text stands beside many different sentences, in place of their translations."""
    for language, texts in zip(languages, zip(*dict.fromkeys(pairs), strict=True), strict=False):
        text, count = Counter(texts).most_common(1)[0]
        if count >= 20 and count > 0.02 * len(pairs):
            _warn(
                f"{name}: {text[:80]!r} is the {language} side of {count / len(pairs):.0%} of the "
                "pairs, each with another sentence; if it stands for missing translations, remove "
                "these pairs"
            )


def find_other_language(texts: Sequence[str], language: str) -> tuple[str, float]:
    """Another language than the stated one, and the share of the texts that are clearly in it; 0 if
    there is no evidence for one.
    """
    votes = Counter(chain.from_iterable(_other_languages(text, language) for text in texts))
    guess, count = votes.most_common(1)[0] if votes else ("", 0)
    own = SAME_WORDS.get(language, language)
    if own not in SCRIPTS.values() and len(function_words(own)) < 50:
        # Few words say little; the words of a language without a list may be those of a relative,
        # and a code of three letters may be another one for the same language. A code that does not
        # exist, such as "cz" for "cs", is a mistake, so the guess counts.
        is_code = own in SHORT_CODES.split()
        if len(own) == 3 or (is_code and guess not in SCRIPTS.values()):
            return guess, 0
    share = count / max(1, len(texts))
    return guess, share if count >= 10 and share >= MIN_SHARE else 0


def _other_languages(text: str, language: str) -> set[str]:
    """The languages whose script or frequent words a text has, and clearly not the stated one's."""
    scripts = Counter(
        unicodedata.name(letter, "").split(" ")[0] for letter in text if letter.isalpha()
    )
    n_kana, n_chinese = scripts["HIRAGANA"] + scripts["KATAKANA"], scripts["CJK"]
    if language == "ja" and n_kana + n_chinese:
        return {"zh"} if not n_kana and n_chinese >= 8 else set()
    if language == "zh" and n_chinese and n_kana < 0.2 * n_chinese:
        return set()
    own = SAME_WORDS.get(language, language)
    if any(code == own and scripts[script] for script, code in SCRIPTS.items()):
        return set()
    most = max(SCRIPTS, key=lambda script: scripts[script])
    if scripts[most] > max(1, 0.5 * scripts.total() - n_kana):
        return {"ja" if n_kana > 0.2 * n_chinese else SCRIPTS[most]}
    counts = Counter(
        code
        for word in set(LETTERS.findall(_PLACEHOLDER.sub("", text.lower())))
        for code in languages_by_stop_word().get(word, ())
    )
    n_own = max(counts[language], counts[own])
    return {code for code, count in counts.items() if count >= max(n_own + 2, 1.5 * n_own)}


def check_held_out(
    names: Mapping[str, str],
    fingerprints: Mapping[str, Callable[[Kind], Fingerprints]],
    without: Mapping[str, Sequence[int]],
) -> None:
    """Check dev and test sets from their own files: all translated, no pairs of another set.

    Args:
        names: of the files.
        fingerprints: read those of each set, see `reading.Pairs`; the training data first.
        without: the numbers of the pairs of each set that lack a translation.

    Raises:
        DataError: no pair of a set has a translation.
    """
    train, *held_out = fingerprints
    for index, name in enumerate(held_out):
        if len(without[name]) == len(fingerprints[name]("pair")):
            raise DataError(
                f"{names[name]}: no sentence in it has a translation; check data.{name}"
            )
        if without[name]:
            _warn(
                f"{names[name]}: {len(without[name]):,} pairs have a side that is empty or stands "
                f"for a missing translation (the first: pair {without[name][0]:,}); correct them"
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


def check_subwords(vocabularies: Mapping[Side, Vocabulary], size: int) -> None:
    """Warn if most learned pieces are too rare in the training data to be learned."""
    # All characters are pieces; for more, ten tokens each: a guess that few are then rare.
    n_characters = max(len({*chain(*[*each][len(SPECIALS) :])}) for each in vocabularies.values())
    n_tokens = min(sum(each.counts[len(SPECIALS) :]) for each in vocabularies.values())
    better = math.ceil(max(1.3 * n_characters, n_tokens / 10) / 10) * 10
    for side, vocabulary in vocabularies.items():
        counts = vocabulary.counts[len(SPECIALS) :]
        n_rare = sum(count < 3 for count in counts)
        if n_rare > len(counts) / 2 and better < 0.9 * size:
            _warn(
                f"tokenizer.size: {size:,} is too large for this data: {n_rare:,} of the "
                f"{len(counts):,} {side} subwords occur fewer than three times in the training "
                f"data; set it to about {better:,}"
            )
            break


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


def _warn(text: str) -> None:
    warnings.warn(text, NmtWarning, stacklevel=3)
