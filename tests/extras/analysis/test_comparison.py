"""nmt.extras.analysis.comparison: with another system, which may know other test sentences from its
training data.
"""

from collections import Counter

from nmt.data.evaluation_set import EvaluationSet
from nmt.extras.analysis.comparison import OtherSystem, compare_systems
from nmt.extras.analysis.leaks import TrainingOverlap
from nmt.extras.analysis.significance import compare

OUTPUTS = ["Der Hund sieht den Baum.", "Der Mann kennt den König.", "Der Fluss."]
OTHER_OUTPUTS = ["Der Hund sieht den Tisch.", "Der Mann kennt den König.", "Ein Fluss."]
REFERENCES = ["Der Hund sieht den Baum.", "Der Mann kennt den Tag.", "Ein Fluss."]
TEXT = EvaluationSet("test split", None, [REFERENCES])


def overlap(*exact: int) -> TrainingOverlap:
    return TrainingOverlap([i in exact for i in range(3)], [False] * 3, Counter(), Counter())


def test_sentences_that_neither_system_was_trained_on_are_compared_again() -> None:
    comparison = compare_systems(
        TEXT,
        OUTPUTS,
        OtherSystem("b", OTHER_OUTPUTS, {}, overlap=overlap(1)),
        ["BLEU"],
        overlap=overlap(2),
    )
    data = comparison.different_data
    assert data is not None
    assert (data.exact, data.near, data.clean) == (1, 0, 1)
    assert data.differences == compare(OUTPUTS[:1], OTHER_OUTPUTS[:1], [REFERENCES[:1]], ["BLEU"])
    assert [table.note for table in comparison.tables()] == [
        "",
        "on the 1 sentences that are in neither system's training data",
    ]
    assert comparison.remarks == [
        "sentences in the other system's training data: 1 exactly, 0 nearly"
    ]


def test_if_all_sentences_are_clean_or_one_system_is_unknown_there_is_one_table() -> None:
    for other, own, n_clean in ((overlap(), overlap(), 3), (overlap(1), None, 0)):
        comparison = compare_systems(
            TEXT, OUTPUTS, OtherSystem("b", OTHER_OUTPUTS, {}, overlap=other), ["BLEU"], overlap=own
        )
        assert comparison.different_data is not None
        assert comparison.different_data.clean == n_clean
        assert len(comparison.tables()) == 1
    same_data = compare_systems(
        TEXT, OUTPUTS, OtherSystem("b", OTHER_OUTPUTS, {}), ["BLEU"], overlap=overlap(1)
    )
    assert same_data.different_data is None


def test_changes_are_those_gained_then_those_lost() -> None:
    comparison = compare_systems(TEXT, OUTPUTS, OtherSystem("b", OTHER_OUTPUTS, {}), ["BLEU"])
    assert [change.index for change in comparison.changes] == [0, 2]
    assert comparison.changes[0].gain > 0 > comparison.changes[1].gain


def test_case_is_ignored_if_one_of_the_systems_writes_lower_case() -> None:
    lowered = [line.lower() for line in OUTPUTS]
    comparison = compare_systems(
        TEXT, OUTPUTS, OtherSystem("b", lowered, {}, lowercase=True), ["BLEU"]
    )
    assert comparison.differences[0].difference == 0
    assert comparison.changes == []
    assert comparison.subject == "b, ignoring case"
    assert (
        compare_systems(TEXT, OUTPUTS, OtherSystem("b", lowered, {}), ["BLEU"])
        .differences[0]
        .difference
        > 0
    )
