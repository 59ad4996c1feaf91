"""Marks of a source at their places in its translation."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.texts.marked import Mark, Marked
from nmt.texts.tags import project
from nmt.texts.word_weights import Words, WordWeights
from tests.texts.fakes import tokenizer


def parse(written: str) -> tuple[str, list[Mark]]:
    """A text with <b>, </b>, and <br/>, apart from them."""
    text, marks = "", []
    for part in written.replace("<", "\0<").replace(">", ">\0").split("\0"):
        if part.startswith("<"):
            kind: Any = "close" if part[1] == "/" else "empty" if part.endswith("/>") else "open"
            marks.append(Mark(len(text), part, kind))
        else:
            text += part
    return text, marks


def words_of(text: str) -> Words:
    return Words(text, tokenizer("xx").split(text), tokenizer("xx"))


def projected(written: str, text: str, links: Sequence[tuple[int, int]] | None = None) -> str:
    """links: pairs of (source word, target word) with attention; None: the words are in order."""
    source, marks = parse(written)
    words = words_of(source), words_of(text)
    weights = np.zeros((len(words[1].spans), len(words[0].spans)), np.float32)
    pairs = [(word, word) for word in range(len(words[0].spans))] if links is None else links
    for column, row in pairs:
        weights[row, column] = 0.5
    return Marked(text, tuple(project(marks, WordWeights(*words, weights)))).written


@pytest.mark.parametrize(
    ("written", "expected", "links"),
    [
        # The same word, wherever attention is.
        ("I saw <b>Tom</b> here.", "Hier sah ich <b>Tom</b>.", [(2, 0), (3, 3)]),
        ("Tom saw <b>Tom</b>.", "Tom sah <b>Tom</b>.", [(2, 0), (0, 2), (1, 1)]),
        ("I <b>was</b> what?", "Ich <b>war</b> was?", [(0, 0), (1, 1), (2, 2)]),
        # Translated words, and such that change places.
        ("I saw a <b>dog</b>.", "Ich sah einen <b>Hund</b>.", [(0, 0), (1, 1), (2, 2), (3, 3)]),
        ("<i>Here</i> a dog <b>sleeps</b>.", "Ein Hund <b>schläft</b> <i>hier</i>.",
         [(0, 3), (1, 0), (2, 1), (3, 2)]),
        # Nested, and around the whole.
        ("<p>My <i>big <b>dog</b></i> sits.</p>", "<p>Mein <i>großer <b>Hund</b></i> sitzt.</p>",
         [(0, 0), (1, 1), (2, 2), (3, 3)]),
        # An enclosed sign stays with its word, another one stays outside.
        ('He <b>"sleeps!"</b>', 'Er <b>„schläft!“</b>', [(0, 0), (2, 2)]),
        ("He (<b>sleeps</b>).", "Er (<b>schläft</b>).", [(0, 0), (2, 2), (3, 3)]),
        ("No<b>!</b> Go.", "Nein<b>!</b> Geh.", [(0, 0), (1, 1), (2, 2)]),
        # Empty marks: before the word that followed, or behind the one they touch.
        ("<br/>He sleeps <br/>here.<br/>", "<br/>Er schläft <br/>hier.<br/>", [(1, 1), (2, 2)]),
        ("He<fn/> sleeps.", "Er<fn/> schläft.", [(0, 0), (1, 1)]),
        ('He <a id="1"></a>sleeps.', 'Er <a id="1"></a>schläft.', [(0, 0), (1, 1)]),
        ("I see <img/> here", "Ich sehe<img/>", [(0, 0), (1, 1)]),  # that one is lost
        # Empty marks that touch an element.
        ("He sees <i/><b>me</b> now.", "Er sieht <i/><b>mich</b> nun.", None),
        ("He sees <b>me</b><i/> now.", "Er sieht <b>mich</b><i/> nun.", None),
        ("I rang for <i/><b>Mary</b>.", "Ich rief <i/><b>Maria</b>.",
         [(0, 0), (1, 1), (2, 2), (3, 2)]),
        ("He <b>sees</b> trees", "Er <b>sieht</b> Bäume", None),
        # Elements of several sentences.
        ("He <b>sleeps.", "Er <b>schläft.", [(0, 0), (1, 1)]),
        ("He sleeps</b></i> here.", "Er schläft</b></i> hier.", [(0, 0), (1, 1), (2, 2)]),
        ("Sleeps.<b>", "Schläft.<b>", [(0, 0)]),
        ("<b>Nothing</b> is left<br/>.", "<b></b><br/>", []),
        # The first has the outer two of three words, the second the one between.
        ("<b>Off</b> <i>it</i>", "<b>Das</b> <i>es</i> ab", [(0, 0), (0, 2), (1, 1)]),
    ],
)  # fmt: skip
def test_marks_are_around_the_right_words(
    written: str, expected: str, links: list[tuple[int, int]] | None
) -> None:
    assert projected(written, parse(expected)[0], links) == expected


def test_a_word_belongs_to_what_reads_it_most() -> None:
    """Though that reads another word even more."""
    source, marks = parse("<b>They are</b> here")
    weights = np.array([[0.9, 0.1, 0], [0, 0.4, 0.6], [0, 0.1, 0.9]], np.float32)
    words = WordWeights(words_of(source), words_of("Sie sind hier"), weights)
    projected = Marked("Sie sind hier", tuple(project(marks, words)))
    assert projected.written == "<b>Sie sind</b> hier"


@st.composite
def marked_sentences(draw: st.DrawFn) -> tuple[str, list[Mark]]:
    """Any text, with marks that are nested, though some open or close in another sentence."""
    text = draw(st.text("ab' .,!", max_size=20))
    kinds: list[Any] = draw(st.lists(st.sampled_from(["open", "close", "empty"]), max_size=12))
    places = sorted(draw(st.lists(st.integers(0, len(text)), min_size=12, max_size=12)))
    marks, opened = [], []
    for index, (kind, place) in enumerate(zip(kinds, places, strict=False)):
        if kind == "open":
            opened.append(index)
        name = (opened.pop() if opened else f"outer{index}") if kind == "close" else index
        marks.append(Mark(place, f"{kind} {name}", kind))
    return text, marks


@given(
    sentence=marked_sentences(),
    text=st.text("xa' .,!", max_size=20).map(lambda text: " ".join(text.split())),
    seed=st.integers(0, 1000),
    is_sparse=st.booleans(),
)
def test_marks_are_nested_and_never_inside_a_word(
    sentence: tuple[str, list[Mark]], text: str, seed: int, is_sparse: bool
) -> None:
    source, marks = sentence
    words = words_of(source), words_of(text)
    weights = np.random.default_rng(seed).random(
        (len(words[1].spans), len(words[0].spans)), np.float32
    )
    if is_sparse:
        weights[weights < 0.8] = 0
    result = project(marks, WordWeights(*words, weights))
    assert sorted(mark.written for mark in result) == sorted(mark.written for mark in marks)
    positions = [mark.position for mark in result]
    assert positions == sorted(positions)
    assert all(0 <= place <= len(text) for place in positions)
    assert not any(start < place < end for place in positions for start, end in words[1].spans)
    outer = [mark.written for mark in marks if mark.written.startswith("close outer")]
    assert [mark.written for mark in result if mark.written in outer] == outer
    opened: list[str] = []
    closed = {mark.written for mark in marks if mark.kind == "close"}
    for mark in result:
        name = mark.written.split()[1]
        if mark.kind == "open" and f"close {name}" in closed:
            opened.append(name)
        elif mark.kind == "close" and not name.startswith("outer"):
            assert opened.pop() == name
    assert opened == []


@given(
    sizes=st.lists(st.integers(1, 3), min_size=1, max_size=5),
    n_words=st.integers(0, 12),
    data=st.data(),
)
def test_siblings_stay_beside_each_other_with_words(
    sizes: list[int], n_words: int, data: st.DataObject
) -> None:
    parts = [" ".join(f"{chr(97 + i)}{j}" for j in range(n)) for i, n in enumerate(sizes)]
    text = " ".join(f"x{i}" for i in range(n_words))
    links = [
        (column, data.draw(st.integers(0, n_words - 1))) for column in range(sum(sizes)) if n_words
    ]
    result = projected(" ".join(f"<b>{part}</b>" for part in parts), text, links)
    depth = [1 if part == "<b>" else -1 for part in re.findall("</?b>", result)]
    assert depth == [1, -1] * len(sizes)
    assert n_words < len(sizes) or "<b></b>" not in result
