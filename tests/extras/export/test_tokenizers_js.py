"""What an exported page finds in texts, in headless Chromium: what nmt finds."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright", reason="needs playwright")

from playwright.sync_api import Browser, Page

from nmt.config.schema import TokenizerConfig
from nmt.decoding.translation import Replacement, Translation, surface_forms
from nmt.extras.export import tokenizers as exported
from nmt.extras.export.web_page import constants
from nmt.extras.page.files import FOLDER
from nmt.text.tokenizers import SubwordTokenizer, Tokenizer, load_tokenizer, model_path
from nmt.text.vocabulary import Vocabulary
from nmt.texts.differences import differences
from nmt.texts.patterns import PATTERNS
from nmt.texts.sentences import split_sentences
from nmt.texts.warnings import DESCRIPTIONS, ITEMS_CHANGED, SENTENCES_LOST, WORDLESS, WarningChecker
from tests import toy
from tests.conftest import BLANK
from tests.extras.analysis.test_html import needs_chromium
from tests.extras.export.test_runtime import ask
from tests.texts.test_differences import CHANGED, KEPT
from tests.texts.test_sentences import CASES
from tests.texts.test_warnings import ENGLISH, GERMAN

pytestmark = [pytest.mark.slow, needs_chromium]

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
ODD_SPACES = "\t\n\u00a0\u3000\u2009\x1c\x85\u200b\ufeff\u00ad\u200d\u2028\x07\u2060-."
SPACES: list[str] = [*" " * 30, *[""] * 3, "  ", "\n\n", "\r\n", *ODD_SPACES]
# What Python and the browser know of blocks of 256 characters: the first digits of their codes
BLOCKS = (
    "00 00 00 01 02 03 04 05 06 09 0b 0e 10 1e 1f 20 21 22 24 27 30 4e ac fb fe ff 104 1d4 1f4 1f6"
)
CHARACTERS = [
    [char for code in range(256) if (char := chr(int(block, 16) * 256 + code)).isprintable()]
    for block in BLOCKS.split()
]


def fuzzed(n: int, seed: int) -> list[str]:
    """Lines of words, parts of words, and characters."""
    chance = random.Random(seed)

    def piece() -> str:
        word = chance.choice(WORDS)
        changed = [word.upper(), word.lower(), word.capitalize(), word[1:], word[:-1]]
        odd = "".join(chance.choice(chance.choice(CHARACTERS)) for _ in range(chance.randint(1, 4)))
        forms = [*[word] * 7, chance.choice(changed), word + chance.choice(WORDS), odd]
        return chance.choice(forms) + chance.choice(SPACES)

    return ["".join(piece() for _ in range(chance.randint(0, 12))) for _ in range(n)]


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    """The scripts on an empty page; none of them may fail."""
    problems = list[str]()
    page = browser.new_page()
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.add_script_tag(content=constants())
    for name in ("operators.js", "tokenizer.js", "sentences.js", "warnings.js", "items.js"):
        page.add_script_tag(path=FOLDER / name)
    yield page
    page.close()
    assert problems == []


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of subwords for each kind."""
    folder = tmp_path_factory.mktemp("models")
    texts = [text for pair in toy.sentence_pairs() for text in pair] + WORDS * 3
    for kind in ("bpe", "unigram"):
        model = SubwordTokenizer.learn(texts, TokenizerConfig(kind=kind, size=1200))
        (folder / kind).mkdir()
        model_path(folder / kind, "src").write_bytes(model)
    return folder


def make(models: Path, kind: Any, language: str = "de", lowercase: bool = False) -> Tokenizer:
    config = TokenizerConfig(kind=kind, lowercase=lowercase, size=1200)
    return load_tokenizer(config, language, "src", models / kind)


@pytest.mark.parametrize(
    ("kind", "language"),
    [
        ("bpe", "de"),
        ("unigram", "de"),
        ("characters", "de"),
        ("words", "en"),
        ("words", "de"),
        ("words", "fr"),
    ],
)
def test_lines_are_split_and_joined_as_by_nmt(
    page: Page, models: Path, monkeypatch: pytest.MonkeyPatch, kind: str, language: str
) -> None:
    """Half of them without upper case; the last ones are long words."""
    monkeypatch.setattr("spacy.blank", BLANK)
    lines = [*fuzzed(N_LINES, seed=3), "tree" * 1250, "ab" * 2500, "a" * 5000]
    tokenizers = [make(models, kind, language, lowercase) for lowercase in (False, True)]
    for tokenizer, own in zip(tokenizers, (lines[::2], lines[1::2]), strict=True):
        found = ask(
            page,
            """(data, lines) => {
                const tokenizer = new Tokenizer(data);
                return lines.map((line) => {
                    const tokens = tokenizer.split(line);
                    const reversed = tokens.toReversed();
                    const forms = tokenizer.surfaceForms(line, tokens);
                    return [line, tokenizer.normalize(line), tokens, tokenizer.join(tokens),
                            tokenizer.join(reversed), forms];
                });
            }""",
            exported.tokenizer_data(tokenizer),
            own,
        )
        differ = [
            (each, expected)
            for each, line, tokens in zip(found, own, tokenizer.split_all(own), strict=True)
            if each
            != (
                expected := [
                    line,
                    tokenizer.normalize(line),
                    tokens,
                    tokenizer.join(tokens),
                    tokenizer.join(tokens[::-1]),
                    surface_forms(line, tokens, tokenizer),
                ]
            )
        ]
        assert differ[:3] == []


def test_sentences_are_those_without_the_library(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The page has no such library: all ends are ends.
    monkeypatch.setattr(
        "sentencex.get_sentence_boundaries",
        lambda _, text: [{"start_index": start} for start in range(len(text) + 1)],
    )
    texts = [case.replace("|", space) for _, case in CASES for space in (" ", "", "\t")]
    texts += ["1. Milk 2. Bread", "١. a ٢. b", "२. a ३. b", "", *fuzzed(N_LINES // 2, seed=4)]
    texts = [text.replace("\n", " ") for text in texts]  # the page splits lines before
    for language in ("en", "de"):
        expected = [
            [text[start:end] for start, end in split_sentences(text, language)] for text in texts
        ]
        found = ask(
            page,
            """(texts, rules) => texts.map((text) =>
                findSentences(text, rules).map(([start, end]) => text.slice(start, end)))""",
            texts,
            exported.sentence_rules(language),
        )
        differ = [pair for pair in zip(expected, found, strict=True) if pair[0] != pair[1]]
        assert differ[:3] == []
        assert sum(len(each) > 1 for each in expected) > len(texts) / 4


def random_translation(chance: random.Random, tokenizer: Tokenizer) -> Translation:
    """Of a source with known and unknown words of two languages, in one of several cases."""
    known = chance.choice([[*ENGLISH][:6], [*GERMAN][:6], [*ENGLISH, *GERMAN], WORDS])
    choices = known * 5 + chance.choices(WORDS, k=2 * len(known))
    first, second = (" ".join(chance.sample(choices, chance.randint(0, 9))) for _ in range(2))
    source = chance.choice([str, str, str.upper, str.title, str.capitalize])(first)  # type: ignore[operator]
    text = chance.choice([second, source, second + source.lower()])
    src_tokens, tokens = tokenizer.split_all([source, text])
    return Translation(
        source,
        text,
        (*src_tokens, *src_tokens[-2:] * chance.choice([0, 0, 0, 0, 4])),
        (*tokens, *tokens[:3] * chance.choice([0, 0, 3, 4])),
        src_cut=chance.random() < 0.1,
        complete=chance.random() < 0.9,
        replaced=tuple(
            Replacement(0, place, "", "copied") for place in range(9)[:: chance.choice([1, 2, 9])]
        ),
    )


@pytest.mark.parametrize("kind", ["words", "bpe"])
def test_warnings_are_those_of_nmt(page: Page, models: Path, kind: str) -> None:
    tokenizer, chance = make(models, kind), random.Random(6)
    english, german = (
        Vocabulary.build(
            {token: n for word, n in counts.items() for token in tokenizer.split(word)}
        )
        for counts in (ENGLISH, GERMAN)
    )
    checker = WarningChecker((tokenizer, tokenizer), (english, german))
    translations = [random_translation(chance, tokenizer) for _ in range(N_LINES // 4)]
    left_out = {SENTENCES_LOST, ITEMS_CHANGED, WORDLESS}
    expected = [
        [DESCRIPTIONS[warning] for warning in checker.warnings(each) if warning not in left_out]
        for each in translations
    ]
    found = ask(
        page,
        """(data, vocabularies, translations, rules) => {
            const [src, tgt] = vocabularies.map(
                ([tokens, counts]) => new Language({ tokenizer: data, tokens, counts }));
            const itemsChanged = rules.warnings.descriptions["items changed"];
            return translations.map((each) =>
                warningsOf(each, { rules, src, tgt }).filter((text) => text !== itemsChanged));
        }""",
        exported.tokenizer_data(tokenizer),
        [[[*each], each.counts] for each in (english, german)],
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
        {
            "warnings": exported.warning_rules(),
            "items": [],
            "sentences": exported.sentence_rules("en"),
        },
    )
    differ = [one for one in zip(translations, expected, found, strict=True) if one[1] != one[2]]
    assert differ[:3] == []
    assert len({text for texts in expected for text in texts}) == 8


ITEMS = [
    ("Give {name} 12 apples.", "Gib {name} zwölf Äpfel."),
    ("Give {name} 13 apples.", "Gib {nom} dreizehn Äpfel."),
    ("On 12/05/2020 at 2:30 p.m.", "Am 5. Dezember 2020 um 14:30"),
    ("On 12/05/2020 at 4:00.", "Am 12. 5. um 4."),
    ("It costs $1,250.50, 😀!", "Es kostet 1.250,50 $!"),
    ("It costs $1,250.50, 😀!", "Es kostet 1.250,50 $, 😀!"),
    ("See www.example.org or <b>a/list.txt</b>.", "Siehe www.example.org oder <b>a/list.txt</b>."),
    ("%s of %1$d, %d %", "%s von %1$d %"),
    ("Sna_p to the grid", "Am Git_ter ausrichten"),
    ("set max_size to 7", "setze maxsize auf 7"),
    ("He has 100,000 books.", "彼は本を10万冊持っている。"),
    ("He has 13 books.", "彼は本を10万冊持っている。"),
    ("Page ١٣ of 40", "Seite 13 von 40"),
    ("%1$s of %2$s 13", "%2$s von %1$s 13"),
    ("H₂O and ½ of ５０", "H2O und 0,5 von 50"),
    ("{% if x %}yes{% endif %}", "{% if x %}ja"),
]


def test_missing_items_are_those_of_nmt(page: Page) -> None:
    rules = {
        "items": [
            exported.to_javascript(row.pattern.finditer) for row in PATTERNS if row.is_compared
        ],
        "sentences": exported.sentence_rules("en"),
    }
    pairs = [*ITEMS, *KEPT, *CHANGED]
    code = "(pairs, rules) => pairs.map((pair) => lacksItems(...pair, rules))"
    found = ask(page, code, pairs, rules)
    expected = [any(each.problem == "missing" for each in differences(*pair)) for pair in pairs]
    assert [*zip(pairs, found, strict=True)] == [*zip(pairs, expected, strict=True)]
    assert {*found} == {True, False}
