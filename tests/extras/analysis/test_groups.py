"""nmt.extras.analysis.sentences: scores by group of sentences, and the extremes."""

import pytest

from nmt.evaluation.scores import score
from nmt.extras.analysis.results import Translated
from nmt.extras.analysis.sentences import (
    by_frequency,
    by_length,
    by_rarest_word,
)

SOURCES = [
    "One two three.",
    "Four words are here.",
    "This has six words in all.",
    "This one has as many as seven.",
]
REFERENCES = [
    "Eins zwei drei vier.",
    "Hier sind vier Wörter.",
    "Dies hat sechs Wörter in allem.",
    "Dieses hat derer ganze sieben.",
]
OUTPUTS = [
    "Eins zwei drei vier.",
    "Hier sind fünf Wörter.",
    "Dies hat sechs Worte.",
    "Dieses hat derer ganze sieben.",
]


TEXT = Translated(SOURCES, OUTPUTS, [REFERENCES])


def test_by_length_each_group_is_scored_alone() -> None:
    table = by_length(TEXT)
    assert [row[:2] for row in table.rows] == [("1-5", 2), ("6-10", 2)]
    for row, chosen in zip(table.rows, ([0, 1], [2, 3]), strict=True):
        alone = score([OUTPUTS[i] for i in chosen], [[REFERENCES[i] for i in chosen]])
        assert row[2:4] == tuple(one.value for one in alone)
    assert table.rows[1][4] == pytest.approx(100 * 9 / 11)


def test_a_system_that_writes_lower_case_is_scored_without_case() -> None:
    lowered = [line.lower() for line in OUTPUTS]
    text = Translated(SOURCES, lowered, [REFERENCES], lowercase=True)
    table, cased = by_length(text), by_length(TEXT)
    assert table.note.endswith("; scores ignore case")
    assert [row[1:] for row in table.rows] == [row[1:] for row in cased.rows]
    assert text.extremes == TEXT.extremes


def test_by_the_rarest_word_of_the_source() -> None:
    counts = {"one": 9, "two": 8, "three": 3, "this": 5}
    counts |= dict.fromkeys(("has", "six", "words", "in", "all"), 60)
    table = by_rarest_word(TEXT, counts)
    assert [row[:2] for row in table.rows] == [("0", 2), ("1-5", 2)]


def test_by_frequency_counts_a_word_as_often_as_it_is_right() -> None:
    text = Translated(["x"], ["der der Hund"], [["der Hund bellt der der"]])
    table = by_frequency(text, {"der": 100, "hund": 3})
    assert table.rows == [
        ("0", 1, 0.0, 0.0),
        ("1-5", 1, 100.0, 100.0),
        ("51-500", 3, pytest.approx(200 / 3), 100.0),
    ]


def test_a_sentence_is_never_both_best_and_worst() -> None:
    best, worst = TEXT.extremes
    assert best == [3, 0]  # both are right: the longer one first
    assert set(worst) == {1, 2}
