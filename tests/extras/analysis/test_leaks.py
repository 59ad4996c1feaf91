"""nmt.extras.analysis.leaks: which test sentences are in the training data."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.config.schema import TokenizerConfig
from nmt.evaluation.results import read_split
from nmt.extras.analysis.leaks import (
    MIN_SHARED_NGRAMS,
    NGRAM_SIZE,
    scan,
    text_variants,
    training_overlap,
    words,
)
from nmt.extras.analysis.results import Translated
from nmt.extras.analysis.sentences import leaks
from nmt.run.evaluated import open_system
from nmt.text.tokenizers import load_tokenizer
from nmt.text.vocabulary import Vocabulary
from tests import toy

TRAINING = [
    (
        "The old dog sleeps under the big table today.",
        "Der alte Hund schläft heute unter dem großen Tisch.",
    ),
    ("We are going home now.", "Wir gehen jetzt nach Hause."),
    ("Good morning!", "Guten Morgen!"),
]


@pytest.mark.parametrize(
    ("source", "target", "found"),
    [
        ("GOOD MORNING", "Servus.", (True, False)),  # the same but for case and punctuation
        ("Hello.", "guten morgen...", (True, False)),
        ("Good evening!", "Guten Abend!", (False, False)),
        ("The old dog sleeps under the big table tonight.", "Etwas anderes.", (False, True)),
        ("x", "Der alte Hund schläft heute unter dem großen Baum.", (False, True)),
        ("The old cat sleeps under the small table today.", "x", (False, False)),
        ("The old dog sleeps under the big table", "x", (False, True)),  # a part
        ("are going home", "x", (False, False)),  # a common phrase
    ],
)
def test_the_same_or_nearly_on_either_side(
    source: str, target: str, found: tuple[bool, bool]
) -> None:
    seen = scan(TRAINING, [[source]], [[target]])
    assert (seen.exact[0], seen.near[0]) == found


@pytest.mark.parametrize("lowercase", [False, True])
def test_the_scores_of_the_other_sentences_ignore_case_for_a_model_that_writes_lower_case(
    lowercase: bool,
) -> None:
    references = ["Guten Morgen!", "Die Kleine Katze Schläft."]
    overlap = scan(TRAINING, [["x"], ["y"]], [[reference] for reference in references])
    outputs = [reference.lower() for reference in references]
    section = leaks(Translated([], outputs, [references], lowercase, overlap=overlap))
    assert section is not None
    found = section.values["leaks"]
    assert (found["exact"], found["near"]) == (1, 0)
    assert (found["scores_without"][0]["score"] > 99.9) is lowercase
    ignoring = "scores without them, ignoring case: BLEU 100.00"
    assert (ignoring in section.remarks[0]) is lowercase


def test_a_match_with_another_variant_is_near() -> None:
    """Two sentences that only look the same because of <unk> are two."""
    training = [*TRAINING, ("Good <unk>!", "Gute <unk>!")]
    seen = scan(
        training,
        [["Good evening!", "Good <unk>!"], ["GOOD MORNING", "x"], ["x", "y"]],
        [["1"], ["2"], ["3"]],
    )
    assert (seen.exact, seen.near) == ([False, True, False], [True, False, False])


def test_clean_sentences_and_counts() -> None:
    sources = [["Good morning!"], ["New."], ["The old dog sleeps under the big table tonight."]]
    seen = scan(TRAINING, sources, [["1"], ["2"], ["3"]])
    assert (seen.exact, seen.near, seen.clean) == ([True, False, False], [False, False, True], [1])
    assert seen.src_counts["the"] == 2
    assert seen.tgt_counts == Counter(word for _, tgt in TRAINING for word in words(tgt))


sentence = st.lists(st.sampled_from("abcd"), min_size=1, max_size=9).map(" ".join)


@given(st.lists(sentence, max_size=6), st.lists(sentence, min_size=1, max_size=4))
def test_as_when_every_pair_of_sentences_is_compared(training: list[str], texts: list[str]) -> None:
    def grams(text: str) -> set[tuple[str, ...]]:
        parts = text.split()
        return {tuple(parts[i : i + NGRAM_SIZE]) for i in range(len(parts) - NGRAM_SIZE + 1)}

    seen = scan([(text, "") for text in training], [[text] for text in texts], [["1"]] * len(texts))
    exact = [text in training for text in texts]
    assert seen.exact == exact
    near = [
        len(grams(text)) > 1
        and any(
            len(grams(text) & grams(other)) >= MIN_SHARED_NGRAMS * len(grams(text)) - 1e-9
            for other in training
        )
        for text in texts
    ]
    assert seen.near == [found and not same for found, same in zip(near, exact, strict=True)]


TOKENIZER = load_tokenizer(TokenizerConfig(kind="words"), "en", "src", Path())
VOCABULARY = Vocabulary.build(
    {"The": 2, "dog": 2, "sleeps": 2, "today": 1, "\uffed.": 2, "barks": 1}
)


def test_text_variants() -> None:
    texts = ["The dog sleeps.", "The cat sleeps today.", "Cats purr.", ""]
    assert text_variants(texts, TOKENIZER, VOCABULARY) == [
        ("The dog sleeps.",),
        ("The cat sleeps today.", "The <unk> sleeps today."),
        ("Cats purr.",),
        ("",),
    ]


def test_unknown_words_are_not_counted_and_prove_no_leak(tmp_path: Path) -> None:
    """With a small vocabulary, test sentences and training sentences look the same."""
    run = toy.train(tmp_path, vocabulary={"max_size": 16}, training=toy.ONE_UPDATE)
    with open_system([run]) as system:
        overlap = training_overlap(read_split(tmp_path / "prepared", "test"), system, None)
    assert overlap is not None
    assert any(overlap.near)
    assert not any(overlap.exact)
    assert "the" in overlap.src_counts
    assert "unk" not in {*overlap.src_counts, *overlap.tgt_counts}
