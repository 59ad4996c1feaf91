"""The tokenizers, sentences and warnings of an exported page in headless Chromium: those of nmt."""

import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright", reason="needs playwright")

from playwright.sync_api import Browser, Page

from nmt.config.schema import TokenizerConfig
from nmt.decoding.translator import Translation
from nmt.decoding.unknown_words import Replacement
from nmt.decoding.warnings import (
    DESCRIPTIONS,
    ITEMS_CHANGED,
    SENTENCES_LOST,
    WORDLESS,
    WarningChecker,
)
from nmt.extras.export import tokenizers as exported
from nmt.extras.export.tokenizers import sentence_rules, tokenizer_data, warning_rules
from nmt.extras.export.translate import Tokenizer as Standalone
from nmt.extras.texts.sentences import sentences
from nmt.text.tokenizers import SubwordTokenizer, Tokenizer, load_tokenizer, model_path
from nmt.text.vocabulary import Vocabulary
from tests import toy
from tests.decoding.test_warnings import ENGLISH, GERMAN
from tests.extras.analysis.test_html import needs_chromium
from tests.extras.texts.test_sentences import CASES

pytestmark = [pytest.mark.slow, needs_chromium]

SCRIPTS = Path(exported.__file__).parent / "web"
N_LINES = 5000

TEXT = """
The dog sees a tree, doesn't it? I'd've known we can't, won't, y'all, o'clock,
rock'n'roll Mr. Mrs. Dr. Prof. e.g. i.e. etc. p.m. U.S. J. R. St. No. vs. z.B. z. B.
d.h. usw. u.a. bzw. Nr. 3. geht's wär's 's ’s 'n' l'arbre d'une qu'il aujourd'hui
jusqu'à entr'ouvrir c'est-à-dire peut-être M. Mme. av. J.-C. anti-âge Anne-Marie Sr.
Ud. EE. UU. dell'anno un'ora 't zo'n auto's д-р т.ч. в т. и др. г. ул. प्रो. डॉ. כ"ץ
צה״ל د. ب. م i.v.m. p.p. ul. np. q.v. co-op COVID-19 3.5 1,000.50 10km/h 5€ $7.50
20% 12:30 1/2 3rd 4× 2+2=4 -5 °C 30°C 7kg 9-to-5 (yes) [no] {maybe} "so" „ja“ «oui»
‚na‘ http://example.org/a?b=c#d www.example.com example.net/x user@example.org @user
#tag file.txt C++ C# .NET ... …… -- — – ― ‽ !!! ?? ¿qué? ¡ya! :) :-( ;-) ^_^ <3 :D
xD (: o_O ¯\\_(ツ)_/¯ \\n & &amp; <b> İstanbul DIYARBAKIR ıI İi ΟΔΟΣ ΣΑΣ Σ. ΑΣ' ß ẞ
STRASSE ﬁne Ǆ ǅ ﷽ Ω Å ſo K ŉ ǰ ΐ Ա և ᾳ ᾼ ა Ა Ꭰ ꭰ 日本語です。
你好，世界！ ねえ。はい 「え」 한국어 สวัสดี
नमस्ते। हिन्दी தமிழ் العربية؟ ١. ٢. १. עברית بله می‌خواهم 🙂 👍🏽 👨‍👩‍👧 🇩🇪 ❤️ ✌ ★ ■ ￭ ▁
_ __ a_b <unk> <s> a\u0301 scho\u0308n \u0301x q\u0323\u0307 ﹍ ﬀ 𝔘𝔫𝔦 𝟙 ² ½ Ⅳ 1. 2.
3. Milk Bread Then He It. "Stop!" Tom She.It Hi!Go ASP.NET I. A: b; "End." 'x.' He's
(He
"""
WORDS = [*TEXT.split(), "и т.д.", "д-р филол. наук", "Αγ. Γρ."]  # exceptions with spaces
SPACES = [" "] * 30 + ["", "", "", "\u00a0", "\u3000", "\u2009", "\t", "\n", "\n\n", "\x1c", "\x85"]
SPACES += [
    "\u200b",
    "\ufeff",
    "\u00ad",
    "\u200d",
    "\u2028",
    "\r\n",
    "  ",
    "\x07",
    "\u2060",
    "-",
    ".",
]
RANGES = [(0x20, 0x7F), (0x20, 0x7F), (0x20, 0x7F), (0xA0, 0x250), (0x250, 0x400), (0x370, 0x530)]
RANGES += [(0x530, 0x700), (0x900, 0xE80), (0x10A0, 0x1100), (0x1E00, 0x2070), (0x2070, 0x2C00)]
RANGES += [
    (0x3000, 0x3100),
    (0x4E00, 0x4F00),
    (0xAC00, 0xAD00),
    (0xFB00, 0xFFF0),
    (0x1F300, 0x1F700),
]
RANGES += [(0x300, 0x370), (0x10400, 0x10450), (0x1D400, 0x1D800)]


def fuzzed(n: int, seed: int, words: list[str] = WORDS) -> list[str]:
    """Lines of words, parts of words, and characters that Python and the browser know."""
    chance = random.Random(seed)

    def character() -> str:
        while not (text := chr(chance.randrange(*chance.choice(RANGES)))).isprintable():
            pass
        return text

    def piece() -> str:
        kind, word = chance.random(), chance.choice(words)
        if kind < 0.7:
            return word
        if kind < 0.8:
            return chance.choice(
                [word.upper(), word.lower(), word.capitalize(), word[1:], word[:-1]]
            )
        if kind < 0.9:
            return word + chance.choice(words)
        return "".join(character() for _ in range(chance.randint(1, 4)))

    return [
        "".join(piece() + chance.choice(SPACES) for _ in range(chance.randint(0, 12)))
        for _ in range(n)
    ]


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    """The scripts on an empty page; none of them may fail."""
    problems = list[str]()
    page = browser.new_page()
    page.on("pageerror", lambda error: problems.append(str(error)))
    for name in ("tokenizer.js", "warnings.js"):
        page.add_script_tag(path=SCRIPTS / name)
    yield page
    page.close()
    assert problems == []


def make(folder: Path, kind: Any, language: str = "de", lowercase: bool = False) -> Tokenizer:
    config = TokenizerConfig(kind=kind, lowercase=lowercase, size=1200)
    if kind in ("bpe", "unigram"):
        texts = [text for pair in toy.sentence_pairs() for text in pair] + WORDS * 3
        model_path(folder, "src").write_bytes(SubwordTokenizer.learn(texts, config))
    return load_tokenizer(config, language, "src", folder)


def differing(page: Page, tokenizer: Tokenizer, lines: list[str]) -> list[tuple[Any, Any]]:
    """What nmt gives for a line, and what the page gives: normalized, tokens, joined tokens."""
    settings = tokenizer.settings()
    page.evaluate(
        "([settings, data]) => { globalThis.tokenizer = new Tokenizer(settings, data); }",
        [settings, tokenizer_data(tokenizer)],
    )
    alone = Standalone(**settings)  # without a model, it joins only
    shuffled = random.Random(2)
    expected = []
    for line, tokens in zip(lines, tokenizer.split_all(lines), strict=True):
        mixed = shuffled.sample(tokens, len(tokens))
        expected.append(
            [
                tokenizer.normalize(line),
                tokens,
                tokenizer.join(tokens),
                mixed,
                tokenizer.join(mixed),
                alone.surface_forms(line, tokens),
            ]
        )
    found = page.evaluate(
        """lines => lines.map(([line, mixed]) => {
            const tokens = tokenizer.split(line);
            return [tokenizer.normalize(line), tokens, tokenizer.join(tokens), mixed,
                    tokenizer.join(mixed), tokenizer.surfaceForms(line, tokens)];
        })""",
        [[line, each[3]] for line, each in zip(lines, expected, strict=True)],
    )
    return [pair for pair in zip(expected, found, strict=True) if pair[0] != pair[1]]


@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize(
    ("kind", "language"),
    [
        ("bpe", "de"),
        ("unigram", "de"),
        ("characters", "de"),
        ("words", "en"),
        ("words", "de"),
        ("words", "fr"),
        ("words", "ru"),
        ("words", "tr"),
    ],
)
def test_lines_are_split_and_joined_as_by_nmt(
    page: Page, tmp_path: Path, kind: str, language: str, lowercase: bool
) -> None:
    tokenizer = make(tmp_path, kind, language, lowercase)
    assert differing(page, tokenizer, fuzzed(N_LINES, seed=3))[:3] == []


def test_a_long_word_is_split(page: Page, tmp_path: Path) -> None:
    lines = ["tree" * 1250, "ab" * 2500, "a" * 5000]
    for kind in ("bpe", "unigram", "words"):
        assert differing(page, make(tmp_path, kind), lines) == []


@pytest.mark.parametrize("language", ["en", "de", "ja"])
def test_sentences_are_those_without_the_library(
    page: Page, monkeypatch: pytest.MonkeyPatch, language: str
) -> None:
    monkeypatch.setitem(sys.modules, "sentencex", None)  # its import fails
    texts = [case.replace("|", space) for _, case in CASES for space in (" ", "", "\n", "\t")]
    texts += ["1. Milk 2. Bread", "١. a ٢. b", "२. a ३. b", "", *fuzzed(N_LINES, seed=4)]
    expected = [[text[start:end] for start, end in sentences(text, language)] for text in texts]
    found = page.evaluate(
        """([texts, rules]) => texts.map((text) =>
            findSentences(text, rules).map(([start, end]) => text.slice(start, end)))""",
        [texts, sentence_rules(language)],
    )
    differ = [pair for pair in zip(expected, found, strict=True) if pair[0] != pair[1]]
    assert differ[:3] == []
    assert sum(len(each) > 1 for each in expected) > N_LINES / 4


def random_translations(n: int, tokenizer: Tokenizer) -> Iterator[Translation]:
    """Of sources with known and unknown words of two languages, in several cases."""
    chance = random.Random(6)
    words = [word.removeprefix("￭") for word in [*ENGLISH, *GERMAN]]
    forms: list[Callable[[str], str]] = [str, str, str.upper, str.title, str.capitalize]
    for _ in range(n):
        own = chance.choice([words[:6], words[7:13], words, [*words, *WORDS]])
        unknown = chance.sample(WORDS, 8)
        texts = [
            " ".join(chance.choice(unknown if chance.random() < 0.3 else own) for _ in range(size))
            for size in (chance.randint(0, 9), chance.randint(0, 9))
        ]
        source = chance.choice(forms)(texts[0])
        text = chance.choice([texts[1], source, texts[1] + source.lower()])
        src_tokens, tokens = tokenizer.split(source), tokenizer.split(text)
        if chance.random() < 0.3 and tokens:
            tokens = tokens[:3] * chance.randint(2, 5)
        if chance.random() < 0.1 and src_tokens:
            src_tokens = src_tokens[-2:] * chance.randint(2, 4)
        replaced = [
            Replacement(0, chance.randrange(9), "", "copied") for _ in range(chance.randint(0, 2))
        ]
        cut, complete = chance.random() < 0.1, chance.random() < 0.9
        yield Translation(
            source,
            text,
            tuple(src_tokens),
            tuple(tokens),
            src_cut=cut,
            complete=complete,
            replaced=tuple(replaced),
        )


@pytest.mark.parametrize("kind", ["words", "bpe"])
def test_warnings_are_those_of_nmt(page: Page, tmp_path: Path, kind: str) -> None:
    tokenizer = make(tmp_path, kind)
    counts = [ENGLISH, GERMAN]
    if kind == "bpe":  # pieces of the words
        counts = [
            {piece: n for word, n in words.items() for piece in tokenizer.split(word)}
            for words in counts
        ]
    vocabularies = [Vocabulary.build(each) for each in counts]
    checker = WarningChecker((tokenizer, tokenizer), (vocabularies[0], vocabularies[1]))
    translations = [*random_translations(N_LINES, tokenizer)]
    expected = [
        [
            DESCRIPTIONS[warning]
            for warning in checker.warnings(each)
            if warning not in (SENTENCES_LOST, ITEMS_CHANGED, WORDLESS)
        ]
        for each in translations
    ]
    found = page.evaluate(
        """([settings, data, vocabularies, translations, rules]) => {
            const tokenizer = new Tokenizer(settings, data);
            const languages = vocabularies.map(
                ([tokens, counts]) => wordFrequencies(tokenizer, tokens, counts));
            return translations.map((each) => warningsOf(each, rules, ...languages));
        }""",
        [
            tokenizer.settings(),
            tokenizer_data(tokenizer),
            [[[*each], each.counts] for each in vocabularies],
            [
                {
                    "source": each.source,
                    "text": each.text,
                    "srcTokens": each.src_tokens,
                    "tokens": each.tokens,
                    "srcCut": each.src_cut,
                    "complete": each.complete,
                    "replaced": [{"src_position": one.src_position} for one in each.replaced],
                }
                for each in translations
            ],
            warning_rules(),
        ],
    )
    differ = [one for one in zip(translations, expected, found, strict=True) if one[1] != one[2]]
    assert differ[:3] == []
    assert len({text for texts in expected for text in texts}) == 8
