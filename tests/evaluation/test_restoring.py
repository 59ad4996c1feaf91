"""nmt.evaluation.restoring: the text of what is kept as ids."""

from pathlib import Path

import numpy as np

from nmt.config.schema import TokenizerConfig
from nmt.data.corpus import Sequences
from nmt.evaluation.restoring import forms, restore
from nmt.text.tokenizers import load_tokenizer
from nmt.text.vocabulary import Vocabulary

TOKENIZER = load_tokenizer(TokenizerConfig(kind="words"), "en", "src", Path())
VOCABULARY = Vocabulary.build({"The": 2, "dog": 2, "sleeps": 2, "today": 1, "\uffed.": 2, "barks": 1})


def test_text_comes_back_but_for_unknown_words() -> None:
    sentences = [VOCABULARY.ids(TOKENIZER.split(text)) for text in ("The dog barks.", "", "The cat sleeps.")]
    offsets = np.cumsum([0, *map(len, sentences)])
    kept = Sequences(np.array([i for ids in sentences for i in ids], np.int32), offsets)
    assert list(restore(kept, TOKENIZER, VOCABULARY)) == ["The dog barks.", "", "The <unk> sleeps."]


def test_forms_of_a_text() -> None:
    texts = ["The dog sleeps.", "The cat sleeps today.", "Cats purr.", ""]
    assert forms(texts, TOKENIZER, VOCABULARY) == [
        ("The dog sleeps.",),
        ("The cat sleeps today.", "The <unk> sleeps today."),
        ("Cats purr.",),
        ("",),
    ]
