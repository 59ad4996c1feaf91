"""A hostile text takes a time in proportion to its length."""

import time
from collections.abc import Callable

import pytest

from nmt.texts.differences import differences
from nmt.texts.glossary import Glossary
from nmt.texts.items import WHOLE_NUMBER, signs, without_edges, without_signs
from nmt.texts.marked import Marked
from nmt.texts.sentences import most_sentences, split, split_sentences

TEXTS = " a1_.<{&%[(\"'`\\/@#$-*:!?\n\tA>}])=+,|;é。^~†"
UNITS = [*TEXTS, "a ", "a.", "a_", "a<", "{ ", " \n", "A1", "a-", "1,", "a/", "-a", "(1", "&a"]
UNITS += [
    "<b>", "</b>", "%1$s ", "1. ", "a. A", "{%", "<!--", "{n,plural,", "{{", "&amp;", "a://",
    "1x", "1–", "@a-", "a.com/", "\\n", "a | ", "<Alt>",
]  # fmt: skip
UNITS += ["万1", "-1 ", "<a b=c ", "NT A\\", "[[", "10:45 ", "`a` ", "A&", "*.", "__"]
FUNCTIONS: dict[str, Callable[[str], object]] = {
    "signs": lambda text: signs(f"{text} {{"),  # which may have items
    "marks": lambda text: split(without_signs(Marked(text), ()), "en", "de"),
    "edges": lambda text: without_edges(Marked(text), ordinals=True),
    "numbers": lambda text: [*WHOLE_NUMBER.finditer(text)],
    "differences": lambda text: differences(f"1 {text}", text[::-1]),
    "sentences": lambda text: (split_sentences(text, "zh"), most_sentences(text)),
    "terms": Glossary.of({"dog": "Hund", "New York": "Neu-York"}).terms_in,
}
SIZE = 1500
MOST_SECONDS = 0.15  # of a text of 4 * SIZE characters; what is quadratic takes several
MOST_TIMES = 10  # as long for 4 times the length


def seconds(function: Callable[[str], object], unit: str, size: int) -> float:
    text = unit * (size // len(unit)) + "\x01"
    start = time.process_time()
    function(text)
    return time.process_time() - start


def is_slow(function: Callable[[str], object], unit: str) -> bool:
    if seconds(function, unit, 4 * SIZE) < MOST_SECONDS:
        return False
    short, long = (min(seconds(function, unit, n) for _ in range(3)) for n in (SIZE, 4 * SIZE))
    return long > MOST_TIMES * short


@pytest.mark.parametrize("name", FUNCTIONS)
def test_texts(name: str) -> None:
    assert [unit for unit in UNITS if is_slow(FUNCTIONS[name], unit)] == []
