"""Texts of several lines."""

from nmt.extras.texts.sentences import sentences
from nmt.extras.texts.spans import spans


def split(text: str) -> list[str]:
    return [text[start:end] for start, end in sentences(text, "en")]


def test_lines_are_translated_by_themselves() -> None:
    assert split("Usage:\n  - one dog\n\n  %s") == ["Usage:", "- one dog", "%s"]
    assert split("I am Tom. You are Ann.\nGood day.") == ["I am Tom.", "You are Ann.", "Good day."]


def test_a_sentence_may_have_a_line_feed() -> None:
    assert split("The file is\ntoo large.") == ["The file is\ntoo large."]
    assert split("the files are\n\ntoo large") == ["the files are", "too large"]


def test_items_of_messages() -> None:
    text = "]1,Inf] Read $t(menu.file) or @:common.name."
    assert [text[each.start : each.end] for each in spans(text)] == [
        "]1,Inf]",
        "$t(menu.file)",
        "@:common.name",
    ]
