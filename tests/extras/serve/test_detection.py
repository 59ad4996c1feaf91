"""In which language of the runs a text is, where tokens are whole words."""

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nmt.config.schema import TokenizerConfig
from nmt.extras.serve.detection import Detector
from nmt.text.tokenizers import load_tokenizer
from nmt.text.vocabulary import Vocabulary
from tests.toy import sentence_pairs


@pytest.fixture(scope="module")
def detect() -> Detector:
    tokenizers = [
        load_tokenizer(TokenizerConfig(kind="words"), language, "src", Path())
        for language in ("en", "de")
    ]
    vocabularies = [
        Vocabulary.build(Counter(token for text in side for token in tokenizer.split(text)))
        for side, tokenizer in zip(zip(*sentence_pairs(), strict=True), tokenizers, strict=True)
    ]
    texts = SimpleNamespace(tokenizers=tokenizers, vocabularies=vocabularies)
    info = SimpleNamespace(source="en", target="de")
    run: Any = SimpleNamespace(info=info, texts=SimpleNamespace(sentence_translator=texts))
    return Detector([run])


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "The king sees the river."),
        ("de", "Der König sieht den Fluss."),
        ("en", "The king sees the kangaroo."),
        ("de", "DER HUND HÖRT DEN BAUM"),
        ("", "ファイルを開く"),
        ("", "关闭新的文件夹"),
        ("", "อากาศวันนี้ดีมาก"),
        ("", "Собака спит."),
        ("", "السلام عليكم"),
        ("", "오늘 날씨가 좋네요"),
        ("", "Missä on asema?"),
        ("", "Où est la bibliothèque ?"),
    ],
)
def test_a_text_without_known_words_is_in_no_language(
    detect: Detector, language: str, text: str
) -> None:
    best = detect(text)[0]
    if language:
        assert best.language == language
        assert best.confidence >= 50
    else:
        assert best.confidence < 40
