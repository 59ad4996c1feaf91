"""Signs in a sample of pairs that a file is not what it seems: a side in another language, text
that was prepared for another program, one text in place of translations.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from itertools import islice

from nmt.data.checks import warn
from nmt.data.formats import named
from nmt.data.languages import (
    LETTERS,
    SAME_WORDS,
    SCRIPTS,
    SHORT_CODES,
    function_words,
    languages_by_stop_word,
)
from nmt.data.reading import Pair, Source

MAX_PAIRS = 2000  # of a sample

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

_PLACEHOLDER = re.compile(r"%[\w().$*#-]*")  # "s" and "d" are words of many languages


def check_sample(source: Source, languages: tuple[str, str]) -> None:
    """Warn of such signs in pairs of a source, which are evenly spaced."""
    start, stop, name = source.part.start, source.part.stop, named(source.files)
    step = -(-(stop - start) // MAX_PAIRS)
    pairs = [*islice(source.pairs.stream(), start, stop, step)]
    check_languages(name, pairs, languages)
    check_raw_text(name, pairs, languages)
    check_repetition(name, pairs, languages)


def check_languages(name: str, pairs: Sequence[Pair], languages: tuple[str, str]) -> None:
    """Warn if a side of a sample seems to be in another language, or the sides are the same."""
    if sum(src == tgt for src, tgt in pairs) > len(pairs) / 2:
        warn(
            f"{name}: in most pairs, source and target are the same text; check `columns` or "
            "`files`"
        )
    for language, texts in zip(languages, zip(*pairs, strict=True), strict=False):
        guess, share = find_other_language(texts, language)
        if share:
            part = f"at least {share:.0%} of " if share < 0.6 else ""
            warn(
                f"{name}: {part}the {language} sentences are perhaps in another language (they "
                f"look like {guess}); check data.direction and `columns`"
            )


def check_raw_text(name: str, pairs: Sequence[Pair], languages: tuple[str, str]) -> None:
    """Warn if a side of a sample was prepared for another program: split, or escaped."""
    for language, texts in zip(languages, zip(*pairs, strict=True), strict=False):
        for what, pattern, least, remedy in NOT_RAW:
            found = [text for text in texts if re.search(pattern, text)]
            if len(found) >= max(5, least * len(texts)):
                warn(
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
            warn(
                f"{name}: {text[:80]!r} is the {language} side of {count / len(pairs):.0%} of the "
                "pairs, each with another sentence; if it stands for missing translations, remove "
                "these pairs"
            )


def find_other_language(texts: Sequence[str], language: str) -> tuple[str, float]:
    """Another language than the stated one, and the share of the texts that are clearly in it; 0 if
    there is no evidence for one.
    """
    votes = Counter(code for text in texts for code in sorted(_other_languages(text, language)))
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
