"""nmt.evaluation.leaks: what the training data has of a test set."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from nmt.evaluation.leaks import OVERLAP, N, scan, words

TRAINING = [
    ("The old dog sleeps under the big table today.", "Der alte Hund schläft heute unter dem großen Tisch."),
    ("We are going home now.", "Wir gehen jetzt nach Hause."),
    ("Good morning!", "Guten Morgen!"),
]


def find(source: str, target: str) -> tuple[bool, bool]:
    seen = scan(TRAINING, [[source]], [[target]])
    return seen.exact[0], seen.near[0]


def test_the_same_but_for_case_and_punctuation() -> None:
    assert find("GOOD MORNING", "Servus.") == (True, False)
    assert find("Hello.", "guten morgen...") == (True, False)
    assert find("Good evening!", "Guten Abend!") == (False, False)


def test_nearly_the_same_on_either_side() -> None:
    assert find("The old dog sleeps under the big table tonight.", "Etwas anderes.") == (False, True)
    assert find("Something else.", "Der alte Hund schläft heute unter dem großen Baum.") == (False, True)
    assert find("The old cat sleeps under the small table today.", "Etwas anderes.") == (False, False)


def test_what_is_contained_in_a_training_sentence_is_nearly_there() -> None:
    assert find("The old dog sleeps under the big table", "x") == (False, True)
    assert find("are going home", "x") == (False, False)  # a phrase, anybody's


def test_in_another_form_alone_it_is_nearly_there() -> None:
    """Two sentences that have become the same by their unknown words are two."""
    training = [*TRAINING, ("Good <unk>!", "Gute <unk>!")]
    seen = scan(training, [["Good evening!", "Good <unk>!"], ["GOOD MORNING", "x"], ["x", "y"]], [["1"], ["2"], ["3"]])
    assert (seen.exact, seen.near) == ([False, True, False], [True, False, False])


def test_sentences_that_share_their_ngrams_with_several_but_with_none_enough() -> None:
    training = [("a b c d x y", "1"), ("x d e f g h", "2")]
    assert scan(training, [["a b c d e f g h"]], [["3"]]).near == [False]


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
        return {tuple(parts[i : i + N]) for i in range(len(parts) - N + 1)}

    seen = scan([(text, "") for text in training], [[text] for text in texts], [["1"]] * len(texts))
    exact = [text in training for text in texts]
    assert seen.exact == exact
    near = [len(grams(t)) > 1 and any(len(grams(t) & grams(o)) >= OVERLAP * len(grams(t)) - 1e-9 for o in training) for t in texts]
    assert seen.near == [found and not same for found, same in zip(near, exact, strict=True)]
