"""nmt.extras.analysis.sentences: scores by group, the extremes, and outputs that look wrong."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nmt.config.schema import TokenizerConfig
from nmt.decoding.translation import Translation
from nmt.evaluation.scores import score
from nmt.extras.analysis.leaks import TrainingOverlap
from nmt.extras.analysis.results import Translated
from nmt.extras.analysis.sentences import (
    DESCRIPTIONS,
    by_frequency,
    doubles,
    groups,
    output_warnings,
    share_stem,
    skipped_words,
)
from nmt.text.tokenizers import Tokenizer, load_tokenizer

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


TOKENIZER = load_tokenizer(TokenizerConfig(kind="words"), "en", "src", Path())


def attended(source: str, totals: list[float], tokenizer: Tokenizer = TOKENIZER) -> Translation:
    """A translation of two tokens whose attention sums to `totals` for the source's tokens."""
    tokens = tokenizer.split(source)
    attention = np.array([[*totals, 0.5], [0] * (len(tokens) + 1)], np.float32)
    return Translation(source, "Text", tuple(tokens), ("a", "b"), attention=attention)


def warnings_of(
    sources: list[str],
    outputs: list[str],
    references: list[list[str]],
    translations: list[Translation] | None = None,
    counts: dict[str, int] | None = None,
) -> dict[str, list[int]]:
    known = [False] * len(sources)
    overlap = None if counts is None else TrainingOverlap(known, known, Counter(), Counter(counts))
    translations = translations or [*map(Translation, sources, outputs)]
    text = Translated(sources, outputs, references, translations=translations, overlap=overlap)
    return output_warnings(text, TOKENIZER)


def test_output_warnings() -> None:
    sources = ["Warsaw.", "One two.", "Three.", "Paris!", "Four.", "Hands up!"]
    references = ["Warschau.", "Eins zwei.", "Drei.", "In Paris.", "nein nein nein", "Hände hoch!"]
    outputs = ["Warschau", " ", "Ja, ja ja.", "Paris", "nein nein nein", "Hände auf die Hände!"]
    translations = [*map(Translation, sources, outputs)]
    translations[0] = attended("Warsaw.", [0.1, 1.0])
    translations[2] = Translation(sources[2], outputs[2], complete=False)
    counts = dict.fromkeys(("ja", "nein", "auf", "die", "paris"), 1)
    warnings = warnings_of(sources, outputs, [references], translations, counts)
    assert warnings == {
        "empty": [1],
        "cut": [2],
        "repeating": [2],
        "copied": [3],
        "doubling": [2, 5],
        "skipping": [0],
        "inventing": [],
        "short": [1, 3],
    }
    assert warnings.keys() == DESCRIPTIONS.keys()


def test_with_several_references_an_output_needs_to_be_like_one_of_them() -> None:
    references = [["Komm!"], ["Komm jetzt bitte herein, herein!"]]
    warnings = warnings_of(["Come in!"], ["Herein, herein!"], references, counts={"herein": 2})
    assert not any(warnings.values())


def test_an_invented_word_is_nowhere_else() -> None:
    """Not in the training data, the source and the reference, whatever the case."""
    outputs = ["Der Hundling schläft.", "Der Hund schläft.", "Der DOGE schläft 12345 mal.", ""]
    text = ["The doge sleeps."] * 4, outputs, [["Der Doge SCHLÄFT."] * 4]
    assert warnings_of(*text, counts={"der": 5, "hund": 1, "mal": 1})["inventing"] == [0]
    assert warnings_of(*text)["inventing"] == []


@pytest.mark.parametrize(
    ("output", "source", "reference"),
    [
        (
            "Er ist ein intelligente intelligent Mann.",
            "He is a clever man.",
            "Er ist ein kluger Mann.",
        ),
        ("Er liest Romane Romane.", "He reads novels.", "Er liest Krimis."),
        ("Hände auf deine Hände!", "Put your hands up!", "Hände hoch!"),
        ("Das kostet 10.000 000 Dollar.", "It costs 10,000 dollars.", "Das kostet 10.000 Dollar."),
    ],
)
def test_outputs_that_double(output: str, source: str, reference: str) -> None:
    assert doubles(output, source, [reference])
    assert not doubles(output, source, [reference, output])
    assert not doubles(reference, source, [output])


@pytest.mark.parametrize(
    ("output", "source"),
    [
        ("Die, die das sagen, lügen.", "Those who say that lie."),  # a comma between them
        ("Der Mann, der der Frau hilft.", "The man who helps the woman."),
        # The source repeats too.
        ("Du kannst es allein, nicht alleine.", "You can do it alone, but not you alone."),
        ("Ein Haus und ein Hund und eine Katze.", "A house and a dog and a cat."),  # short words
        ("", ""),
    ],
)
def test_outputs_that_do_not(output: str, source: str) -> None:
    assert not doubles(output, source, ["Etwas anderes, und der der Regel."])


@pytest.mark.parametrize(
    ("word", "other", "expected"),
    [
        ("an", "an", True),
        ("neue", "neuen", True),
        ("intelligent", "intelligente", True),
        ("der", "dem", False),
        ("schule", "schulung", False),
        ("beförder", "beförderung", False),
        ("haus", "maus", False),
    ],
)
def test_words_share_a_stem_if_only_the_ending_differs(
    word: str, other: str, expected: bool
) -> None:
    assert share_stem(word, other) is expected
    assert share_stem(other, word) is expected


@pytest.mark.parametrize(
    ("source", "totals", "expected"),
    [
        # "The", "man" and "at" are short.
        ("The man waits at stations", [0.1, 0.1, 1.0, 0.1, 0.29], ["stations"]),
        ("The man waits at stations", [0.1, 0.1, 0.2, 0.1, 0.31], ["waits"]),
        # The comma is no part of "waits,".
        ("He waits, always.", [1.0, 0.4, 0.0, 0.0, 0.0], ["always."]),
        ("It doesn't matter", [1.0, 0.1, 0.1, 1.0], []),  # a contraction
        ("He waits", [0.0, 0.0], ["waits"]),
    ],
)
def test_long_words_with_little_attention(
    source: str, totals: list[float], expected: list[str]
) -> None:
    assert skipped_words(attended(source, totals), TOKENIZER) == expected


def test_the_tokens_of_a_word_are_averaged(tmp_path: Path) -> None:
    characters = load_tokenizer(TokenizerConfig(kind="characters"), "en", "src", tmp_path)
    totals = [0.2, 0.3, 0.5, 0.4, 0.2, *[0.2] * 6]  # the mean of hello is 0.32
    translation = attended("hello world", totals, characters)
    assert skipped_words(translation, characters) == ["world"]
