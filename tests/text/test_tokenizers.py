"""nmt.text.tokenizers: normal forms; split and join again without loss."""

import time
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nmt.config.parts import TOKENIZERS, having
from nmt.config.schema import TokenizerConfig
from nmt.errors import DataError
from nmt.text.tokenizers import (
    CONTROL_CHARACTERS,
    JOINER,
    REPAIRS,
    SPACE,
    UNICODE_NFC,
    WHITE_SPACE,
    SubwordTokenizer,
    Tokenizer,
    WordTokenizer,
    load_tokenizer,
    model_path,
    normalize,
    normalize_and_report,
)

TEXTS = [
    "Hallo Welt, wie geht es dir?",
    "Grüß Gott!",
    "Mir geht's gut.",
    "Ich weiß nicht, was soll es bedeuten.",
]
KINDS = tuple(TOKENIZERS)

TRICKY = st.text("aBß.!?'\u0301 \u00a0\n\u200b<unkpad>￭▁■_▅日🙂\ufffd")
ANY_TEXT = st.one_of(st.text(), TRICKY, st.text(st.characters(exclude_categories=[])))


@pytest.mark.parametrize(
    ("text", "expected", "repairs"),
    [
        ("Grüß Gott!", "Grüß Gott!", []),
        ("", "", []),
        (" a  b ", "a b", [WHITE_SPACE]),
        ("a\u00a0b\u3000c\u2028d\re", "a b c d e", [WHITE_SPACE]),
        ("\ufeffa\u200bb\u00adc\x07", "abc", [CONTROL_CHARACTERS]),
        ("scho\u0308n", "schön", [UNICODE_NFC]),
        ("\u200b \u200b", "", [CONTROL_CHARACTERS, WHITE_SPACE]),
        ("می\u200cخواهم", "می\u200cخواهم", []),
    ],
)
def test_each_repair_is_made_and_named(text: str, expected: str, repairs: list[str]) -> None:
    assert normalize_and_report(text) == (expected, repairs)
    assert normalize(text) == expected


@given(ANY_TEXT)
def test_normal_text_is_one_encodable_line_in_nfc_and_stays_as_it_is(text: str) -> None:
    normal = normalize(text)
    assert normalize(normal) == normal
    assert normal == " ".join(normal.split())
    assert unicodedata.is_normalized("NFC", normal)
    assert len(f"{normal}x".splitlines()) == 1
    normal.encode()


@given(ANY_TEXT)
def test_a_text_changes_exactly_if_a_repair_is_named(text: str) -> None:
    expected, repairs = normalize_and_report(text)
    assert (expected != text) == bool(repairs)
    assert set(repairs) <= set(REPAIRS)


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, bool], Tokenizer]:
    """A tokenizer of each kind, with and without lower-casing."""
    made: dict[tuple[str, bool], Tokenizer] = {}
    for kind in KINDS:
        for lowercase in (False, True):
            config = TokenizerConfig(kind=kind, lowercase=lowercase, size=60)
            folder = tmp_path_factory.mktemp(kind)
            if kind in having(TOKENIZERS, "learned"):
                model_path(folder, "tgt").write_bytes(SubwordTokenizer.learn(TEXTS, config))
            made[kind, lowercase] = load_tokenizer(config, "de", "tgt", folder)
    return made


@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(text=ANY_TEXT)
def test_joining_what_was_split_gives_the_normalized_text(
    tokenizers: dict[tuple[str, bool], Tokenizer], kind: str, lowercase: bool, text: str
) -> None:
    tokenizer = tokenizers[kind, lowercase]
    tokens = tokenizer.split(text)
    assert tokenizer.join(tokens) == tokenizer.normalize(text)
    assert all(token and not any(map(str.isspace, token)) for token in tokens)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=100, deadline=None)
@given(
    tokens=st.lists(
        st.sampled_from([JOINER, SPACE, "<unk>", "", f"{JOINER}!", f"{SPACE}a"]) | st.text()
    )
)
def test_any_tokens_can_be_joined_to_one_clean_line(
    tokenizers: dict[tuple[str, bool], Tokenizer], kind: str, tokens: list[str]
) -> None:
    text = tokenizers[kind, False].join(tokens)
    assert text == " ".join(text.split())


def test_words_carry_a_mark_where_there_was_no_space(
    tokenizers: dict[tuple[str, bool], Tokenizer],
) -> None:
    words = tokenizers["words", False]
    assert words.split("Hallo!") == ["Hallo", "￭!"]
    assert words.split("Er sagt: (Ja), z. B. so.") == [
        "Er",
        "sagt",
        "￭:",
        "(",
        "￭Ja",
        "￭)",
        "￭,",
        "z.",
        "B.",
        "so",
        "￭.",
    ]
    assert words.join(["￭Hallo", "<unk>", "￭!"]) == "Hallo <unk>!"
    assert words.split("a ￭ b") == ["a", "■", "b"]


def test_subwords_and_characters_carry_a_mark_for_the_space(
    tokenizers: dict[tuple[str, bool], Tokenizer],
) -> None:
    assert tokenizers["characters", False].split("Oh je▁") == ["O", "h", "▁", "j", "e", "_"]
    for kind in having(TOKENIZERS, "learned"):
        pieces = tokenizers[kind, False].split("Hallo 日本!")
        assert pieces[0].startswith("▁")
        assert "".join(pieces) == "▁Hallo▁日本!"
        # "<unk>" is also the name of the piece for all that is unseen.
        for text, end in (("Hallo 日本語!", "▁日本語!"), ("%(日)s…", "%(日)s…"), ("<n>", "<n>")):
            assert tokenizers[kind, False].split(text)[-len(end) :] == list(end)
        assert tokenizers[kind, False].split("a▁b") == tokenizers[kind, False].split("a_b")


def test_lower_casing_is_part_of_normalizing(tokenizers: dict[tuple[str, bool], Tokenizer]) -> None:
    for kind in KINDS:
        assert tokenizers[kind, True].normalize("  ÄPFEL İ\u200b") == normalize("äpfel i\u0307")
        assert tokenizers[kind, False].normalize("  ÄPFEL ") == "ÄPFEL"


def test_signatures_differ_if_the_output_can_differ(
    tokenizers: dict[tuple[str, bool], Tokenizer],
) -> None:
    assert len({tokenizer.signature for tokenizer in tokenizers.values()}) == len(tokenizers)
    words = tokenizers["words", True].signature
    assert words.startswith("words|spacy:3.")
    assert words.endswith("|lang:de|case:lower")


def test_a_language_without_rules_gets_the_general_ones(tmp_path: Path) -> None:
    tokenizer = load_tokenizer(TokenizerConfig(), "tok", "src", tmp_path)
    assert "lang:tok(xx)" in tokenizer.signature
    assert tokenizer.split("toki!") == ["toki", "￭!"]


def test_a_missing_package_for_a_language_is_reported(tmp_path: Path) -> None:
    pytest.importorskip("spacy.lang.ja")
    with pytest.raises(
        DataError, match=r"words of language ja: .*sudachi.*tokenizer\.kind=unigram"
    ):
        load_tokenizer(TokenizerConfig(), "ja", "src", tmp_path)


def test_words_split_the_same_after_spacy_forgot_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("nmt.text.tokenizers.MAX_STRINGS", 0)
    tokenizer = load_tokenizer(TokenizerConfig(), "de", "src", tmp_path)
    assert tokenizer.split_all(TEXTS) == tokenizer.split_all(TEXTS)


def test_one_thread_at_a_time_asks_spacy(tmp_path: Path) -> None:
    """spaCy stores new words in tables without locks."""
    tokenizer = WordTokenizer(TokenizerConfig(), "de", tmp_path)
    watched: Any = tokenizer
    inside, most, split = 0, 0, watched._words

    def watch(text: str) -> list[str]:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        time.sleep(0.001)  # whoever waits is let in
        inside -= 1
        return list(split(text))

    watched._words = watch
    with ThreadPoolExecutor(4) as pool:
        assert len([*pool.map(tokenizer.split_all, [TEXTS] * 4)]) == 4
    assert most == 1


@pytest.mark.parametrize("kind", having(TOKENIZERS, "learned"))
def test_a_missing_or_damaged_subword_model_is_refused(tmp_path: Path, kind: str) -> None:
    config = TokenizerConfig(kind=kind)
    with pytest.raises(
        DataError, match=r"src\.spm\.model: no such file; `nmt prepare` writes this subword model"
    ):
        load_tokenizer(config, "de", "src", tmp_path)
    model = SubwordTokenizer.learn(TEXTS, config)
    for damaged in (b"", b"nothing", model[:-1]):
        model_path(tmp_path, "src").write_bytes(damaged)
        with pytest.raises(DataError, match=r"src\.spm\.model: not a readable subword model"):
            load_tokenizer(config, "de", "src", tmp_path)


@pytest.mark.parametrize("kind", having(TOKENIZERS, "learned"))
def test_subwords_are_reproducible_and_fewer_if_the_text_is_short(
    kind: str, capfd: pytest.CaptureFixture[str]
) -> None:
    config = TokenizerConfig(kind=kind, size=8000)
    assert SubwordTokenizer.learn(TEXTS, config) == SubwordTokenizer.learn(iter(TEXTS), config)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("kind", having(TOKENIZERS, "learned"))
def test_text_that_yields_no_subwords_is_refused(
    kind: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(DataError, match="no subwords can be learned from 1 sentences"):
        SubwordTokenizer.learn([""], TokenizerConfig(kind=kind))
    assert capfd.readouterr() == ("", "")
