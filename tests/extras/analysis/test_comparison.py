"""nmt.extras.analysis.comparison: the numbers are sacrebleu's, and equal systems do not differ."""

from collections import Counter
from functools import partial
from math import comb
from pathlib import Path
from typing import Any

import pytest

from nmt.evaluation.scores import METRICS
from nmt.extras.analysis.comparison import (
    compare,
    comparison,
    largest_changes,
)
from nmt.extras.analysis.leaks import TrainingOverlap
from nmt.extras.analysis.results import Section, Translated
from tests.evaluation.test_scores import (
    sacrebleu,
    sentences,
    spoiled,
)

OUTPUTS = ["Der Hund sieht den Baum.", "Der Mann kennt den König.", "Der Fluss."]
OTHER_OUTPUTS = ["Der Hund sieht den Tisch.", "Der Mann kennt den König.", "Ein Fluss."]
RIGHT = ["Der Hund sieht den Baum.", "Der Mann kennt den Tag.", "Ein Fluss."]


def overlap(*exact: int) -> TrainingOverlap:
    return TrainingOverlap([i in exact for i in range(3)], [False] * 3, Counter(), Counter())


@pytest.fixture(autouse=True)
def few_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    few = partial(compare, trials=200)
    monkeypatch.setattr("nmt.extras.analysis.comparison.compare", few)


def compared(
    theirs: list[str],
    ours: list[str] = OUTPUTS,
    references: list[str] = RIGHT,
    *,
    own: TrainingOverlap | None = None,
    **of_other: Any,
) -> Section:
    other = Translated([], theirs, [references], subject="b", **of_other)
    section = comparison(Translated([], ours, [references], overlap=own, other=other))
    assert section is not None
    return section


def test_equals_sacrebleus_command_line(tmp_path: Path) -> None:
    # Neither the sentences nor the trials fill the blocks in which the random bits are drawn.
    references = sentences(41, 0)
    ours, theirs = spoiled(references, 1, 0.35), spoiled(references, 2, 0.35)
    metrics = ["bleu", "chrf", "ter"]
    _, printed = sacrebleu(
        tmp_path,
        {"references": references, "theirs": theirs, "ours": ours},
        *["references", "-i", "theirs", "ours", "--paired-ar", "--paired-ar-n", "300", "-m"],
        *metrics,
    )
    differences = compare(ours, theirs, [references], metrics, trials=300)
    for one, key in zip(differences, ("BLEU", "chrF2", "TER"), strict=False):
        assert f"{one.score:.10f}" == f"{printed[key]['score']:.10f}"
        p = printed[key]["p_value"]
        if key == "TER":  # equal differences, which sacrebleu does not count
            assert one.p_randomisation > p
        else:
            assert one.p_randomisation == pytest.approx(p, abs=1e-10)
        assert "ar:300|seed:12345" in one.signature


@pytest.mark.parametrize(("n_different", "least"), [(0, 1.0), (1, 1.0), (2, 0.5), (3, 0.25)])
def test_few_sentences_that_differ_prove_little(n_different: int, least: float) -> None:
    """sacrebleu alone returns p = 1 / (trials + 1) for a single different sentence."""
    references = sentences(50, 0)
    other = spoiled(references, 1, 0.3)
    ours = references[:n_different] + other[n_different:]
    (one,) = compare(ours, other, [references], ["BLEU"], trials=200)
    assert (one.difference > 0) is (n_different > 0)
    assert one.p_randomisation >= least


@pytest.mark.parametrize(("n_different", "n_won"), [(8, 7), (30, 20)])
def test_ties_count_as_in_the_exact_test(n_different: int, n_won: int) -> None:
    """Each different sentence is worth the same, so that the exact two-sided p is that of coin
    tosses.
    """
    right, wrong = "der Hund sieht ihn", "der Hund sieht sie"
    references = [right] * 60
    ours, theirs = ([wrong] * 60 for _ in range(2))
    for i in range(n_different):
        (ours if i < n_won else theirs)[i] = right
    exact = sum(
        comb(n_different, k)
        for k in range(n_different + 1)
        if abs(2 * k - n_different) >= 2 * n_won - n_different
    )
    (one,) = compare(ours, theirs, [references], ["TER"], trials=2000)
    assert one.p_randomisation == pytest.approx(exact / 2**n_different, abs=0.02)
    assert one.p_randomisation >= 0.05


def test_a_clear_difference_is_seen_and_has_a_side() -> None:
    references = sentences(60, 0)
    good, bad = spoiled(references, 1, 0.1), spoiled(references, 2, 0.6)
    for ours, theirs, is_worse in ((good, bad, False), (bad, good, True)):
        section = compared(theirs, ours, references)
        for one in section.values["comparison"]["differences"]:
            assert one["p_randomisation"] < 0.05
            less_is_better = bool(METRICS[one["metric"]].trait("less_is_better"))
            assert (one["difference"] < 0) is (is_worse is not less_is_better)
        assert bool(section.failures) is is_worse


def test_the_sentences_that_changed_most() -> None:
    references = ["Der Hund.", "Die Katze springt.", "Es regnet heute.", "Wir gehen nach Hause."]
    other = ["Der Hund.", "Der Hund bellt.", "Es regnet heute.", "Wir gehen nach Haus."]
    ours = ["Der Hund.", "Die Katze springt.", "Xyz.", "Wir gehen nach Hause."]
    differences = largest_changes(ours, other, [references], 5)
    assert [(i, gain > 0) for i, gain in differences] == [
        (1, True),
        (3, True),
        (2, False),
    ]
    assert largest_changes(ours, other, [references], 1) == [differences[0], differences[2]]
    assert largest_changes(ours, ours, [references], 5) == []


def test_sentences_that_neither_system_was_trained_on_are_compared_again() -> None:
    """If all are clean, or the training data of one system is unknown, there is one table."""
    section = compared(OTHER_OUTPUTS, own=overlap(2), overlap=overlap(1))
    again = compare(OUTPUTS[:1], OTHER_OUTPUTS[:1], [RIGHT[:1]], METRICS, trials=200)
    found = {"exact": 1, "near": 0, "clean": 1, "differences_without": [*map(vars, again)]}
    assert section.values["comparison"]["leaks_of_other"] == found
    assert "on the 1 sentences that are in neither system's training data" in section.text
    assert "in the other system's training data: 1 exactly, 0 nearly" in section.text
    for of_other, own, n_clean in ((overlap(), overlap(), 3), (overlap(1), None, 0)):
        section = compared(OTHER_OUTPUTS, own=own, overlap=of_other)
        leaks = section.values["comparison"]["leaks_of_other"]
        assert (leaks["clean"], leaks["differences_without"]) == (n_clean, [])
    assert "leaks_of_other" not in compared(OTHER_OUTPUTS, own=overlap(1)).values["comparison"]


def test_case_is_ignored_if_one_of_the_systems_writes_lower_case() -> None:
    lowered = [line.lower() for line in OUTPUTS]
    section = compared(lowered, lowercase=True)
    assert section.values["comparison"]["differences"][0]["difference"] == 0
    assert section.values["comparison"]["sentences"] == []
    assert section.text.startswith("compared with b, ignoring case")
    cased = compared(lowered).values["comparison"]["differences"]
    assert cased[0]["difference"] > 0
