"""nmt.extras.analysis.sentences: scores by group, the extremes, and outputs that look wrong."""

from collections import Counter
from dataclasses import replace

import pytest

from nmt.decoding.translation import Translation
from nmt.evaluation.scores import score
from nmt.extras.analysis.leaks import TrainingOverlap
from nmt.extras.analysis.results import Translated
from nmt.extras.analysis.sentences import (
    DESCRIPTIONS,
    by_frequency,
    groups,
    output_warnings,
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
    (table,) = groups(TEXT).tables
    assert [row[:2] for row in table.rows] == [("1-5", 2), ("6-10", 2)]
    for row, chosen in zip(table.rows, ([0, 1], [2, 3]), strict=True):
        alone = score([OUTPUTS[i] for i in chosen], [[REFERENCES[i] for i in chosen]])
        assert row[2:4] == tuple(one.value for one in alone)
    assert table.rows[1][4] == pytest.approx(100 * 9 / 11)


def test_a_system_that_writes_lower_case_is_scored_without_case() -> None:
    lowered = [line.lower() for line in OUTPUTS]
    text = Translated(SOURCES, lowered, [REFERENCES], lowercase=True)
    (table,), (cased,) = groups(text).tables, groups(TEXT).tables
    assert table.note.endswith("; scores ignore case")
    assert [row[1:] for row in table.rows] == [row[1:] for row in cased.rows]
    assert text.extremes == TEXT.extremes


def test_by_the_rarest_word_of_the_source() -> None:
    counts = Counter({"one": 9, "two": 8, "three": 3, "this": 5})
    counts.update(dict.fromkeys(("has", "six", "words", "in", "all"), 60))
    overlap = TrainingOverlap([True, *[False] * 3], [False, True, *[False] * 2], counts, counts)
    _, rarest, _, seen = groups(replace(TEXT, overlap=overlap)).tables
    assert [row[:2] for row in rarest.rows] == [("0", 2), ("1-5", 2)]
    assert [row[:2] for row in seen.rows] == [("exactly", 1), ("nearly", 1), ("no", 2)]


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


def test_output_warnings() -> None:
    sources = ["Warsaw.", "One two.", "Three.", "Paris!", "Four.", "Hands up!"]
    references = ["Warschau.", "Eins zwei.", "Drei.", "In Paris.", "nein nein nein", "Hände hoch!"]
    outputs = ["Warschau", " ", "Ja, ja ja.", "Paris", "nein nein nein", "Hände auf die Hände!"]
    translations = [*map(Translation, sources, outputs)]
    translations[2] = Translation(sources[2], outputs[2], complete=False)
    text = Translated(sources, outputs, [references], translations=translations)
    warnings = output_warnings(text)
    assert warnings == {
        "empty": [1],
        "cut": [2],
        "repeating": [2],
        "copied": [3],
        "short": [1, 3],
    }
    assert warnings.keys() == DESCRIPTIONS.keys()


def test_with_several_references_an_output_needs_to_be_like_one_of_them() -> None:
    references = [["Komm!"], ["Komm jetzt bitte herein, herein!"]]
    translations = [Translation("Come in!", "Herein, herein!")]
    text = Translated(["Come in!"], ["Herein, herein!"], references, translations=translations)
    assert not any(output_warnings(text).values())
