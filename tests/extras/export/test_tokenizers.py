"""Tokenizers and rules for sentences, written for a browser."""

import re
from pathlib import Path

import pytest

from nmt.config.schema import TokenizerConfig
from nmt.decoding.warnings import MIN_WORDS
from nmt.errors import ConfigError
from nmt.extras.export.expressions import to_javascript
from nmt.extras.export.tokenizers import sentence_rules, tokenizer_data, warning_rules
from nmt.text.tokenizers import SubwordTokenizer, load_tokenizer, model_path


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("a+?b{2,}", None),  # no rule of spaCy's or ours finds as little as it can
        ("(?:ab|c.)*", r"(?:(?:ab|c[^\n])){0,}"),
        (r"(x)[^-\]a-c]?", r"(x)(?:[^\u{2d}\u{5d}\u{61}-\u{63}]){0,1}"),
        (r"(?<!\.)\d(?=/)", r"(?<!\u{2e})[\p{Nd}](?=\u{2f})"),
        (r"^[^\W_]$", r"^[^[^\p{L}\p{N}_]\u{5f}]$"),
        ("\U0001f600", r"\u{1f600}"),
    ],
)
def test_a_regular_expression_for_javascript(pattern: str, expected: str | None) -> None:
    if expected is None:
        with pytest.raises(KeyError):
            to_javascript(re.compile(pattern).search)
    else:
        assert to_javascript(re.compile(pattern).search) == (expected, "v")


def test_a_method_says_where_and_how_often_to_look() -> None:
    pattern = re.compile("(?i)a|b")
    assert to_javascript(pattern.match) == ("^(?:[ab])", "vi")
    assert to_javascript(pattern.fullmatch) == ("^(?:[ab])$", "vi")
    assert to_javascript(pattern.finditer) == ("[ab]", "vig")


def test_pieces_have_scores_of_32_bits(tmp_path: Path) -> None:
    config = TokenizerConfig(kind="unigram", size=30)
    texts = ["Der Hund sieht den Baum.", "Der Baum ist alt."] * 4
    model_path(tmp_path, "src").write_bytes(SubwordTokenizer.learn(texts, config))
    tokenizer = load_tokenizer(config, "de", "src", tmp_path)
    pieces = dict(tokenizer_data(tokenizer))
    assert "<unk>" not in pieces
    assert set(tokenizer.split("Der Baum")) <= set(pieces)


def test_words_of_a_language_without_such_rules_are_refused(tmp_path: Path) -> None:
    config = TokenizerConfig(kind="words")
    with pytest.raises(ConfigError, match="words of language zh cannot be split in a browser"):
        tokenizer_data(load_tokenizer(config, "zh", "src", tmp_path))
    for language in ("el", "fr", "gd", "sl"):
        assert tokenizer_data(load_tokenizer(config, language, "src", tmp_path))["exceptions"]


def test_characters_need_no_rules_and_sentences_few(tmp_path: Path) -> None:
    config = TokenizerConfig(kind="characters")
    assert tokenizer_data(load_tokenizer(config, "de", "src", tmp_path)) is None
    assert sentence_rules("de")["ordinals"] is True
    assert sentence_rules("en")["ordinals"] is False


def test_warnings_have_texts_and_limits() -> None:
    rules = warning_rules()
    assert rules["descriptions"]["output repeats"] == "the output repeats itself"
    assert rules["MIN_WORDS"] == MIN_WORDS
