"""Words of all scripts, and copies."""

import numpy as np
import pytest

from nmt.extras.suspicion.words import Words, find_copies, is_same_text, split, split_sides


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The _File’s done.", ["the", "file", "s", "done", "."]),
        ("%1$s of {n} <b>", ["%1$s", "of", "{n}", "<b>"]),
        ("see and/or a@b.c", ["see", "and/or", "a@b.c"]),
        ("保存する。", ["保", "存", "す", "る", "。"]),
        ("हिन्दी 12", ["हिन्दी", "12"]),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    assert split(text) == words


def test_stems_and_numbers() -> None:
    words = Words([split_sides([("translation", "translate 保存")])])
    assert words.src[0].tolist() != words.tgt[0].tolist()[:1]
    stems = words.stemmed()
    assert stems.src[0].tolist() == stems.tgt[0].tolist()[:1]
    assert words.n_letters(words.tgt).tolist() == [2.0]  # a character is half a word


def test_copies() -> None:
    good = [(f"the dog sees {i}a house", f"der hund sieht {i}a haus") for i in range(30)]
    odd = [
        ("the dog sees the house", "the dog sees the house"),
        ("der hund sieht", "der hund sieht"),
        ("the dog sees the tree", "the dog sees a house"),
        ("GIMP", "GIMP"),
        ("Video OK", "Video OK"),
        ("%s", "%s"),
        ("the GIMP sees", "der GIMP sieht"),
        ("the house", "the house"),
    ]
    same, other = find_copies(Words([split_sides(good), split_sides(odd)]))
    assert not (same | other)[:30].any()
    assert np.flatnonzero((same | other)[30:]).tolist() == [0, 1, 2, 7]


def test_the_same_text() -> None:
    assert is_same_text("The dog - here.", "the dog here")
    assert not is_same_text("Public FTP", "FTP public")
    assert not is_same_text("Audio player", "Audio-Player")
    assert not is_same_text("copy <file>", "copy <datei>")
