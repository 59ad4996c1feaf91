"""Tokenizers and rules for sentences, written for a browser."""

import re
from pathlib import Path

import pytest

from nmt.config.schema import TokenizerConfig
from nmt.errors import ConfigError
from nmt.extras.export.tokenizers import (
    to_javascript,
    tokenizer_data,
)
from nmt.text.tokenizers import load_tokenizer


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("(?:ab|c.)*", r"(?:(?:ab|c[^\n])){0,}"),
        ("a+?b{2,}", "(?:a){1,}?(?:b){2,}"),
        (r"(x)[^-\]a-c]?", r"(x)(?:[^\u{2d}\u{5d}\u{61}-\u{63}]){0,1}"),
        (r"(?<!\.)\d(?=/)", r"(?<!\u{2e})[\p{Nd}](?=\u{2f})"),
        (r"^[^\W_]$", r"^[^[^\p{L}\p{N}_]\u{5f}]$"),
        ("\U0001f600", r"\u{1f600}"),
    ],
)
def test_a_regular_expression_for_javascript(pattern: str, expected: str) -> None:
    assert to_javascript(re.compile(pattern).search) == (expected, "v")


def test_a_method_says_where_and_how_often_to_look() -> None:
    pattern = re.compile("(?i)a|b")
    found = [*map(to_javascript, (pattern.match, pattern.fullmatch, pattern.finditer))]
    assert found == [("^(?:[ab])", "vi"), ("^(?:[ab])$", "vi"), ("[ab]", "vig")]
    with pytest.raises(KeyError):  # no rule of spaCy's or ours needs it
        to_javascript(re.compile("(a)\\1").search)


def test_words_of_a_language_without_such_rules_are_refused(tmp_path: Path) -> None:
    config = TokenizerConfig(kind="words")
    with pytest.raises(ConfigError, match="words of language zh cannot be split in a browser"):
        tokenizer_data(load_tokenizer(config, "zh", "src", tmp_path))
    for language in ("el", "gd", "sl"):
        tokenizer = load_tokenizer(config, language, "src", tmp_path)
        assert tokenizer_data(tokenizer)["data"]["exceptions"]
