"""nmt.extras.analysis.doubled_words: outputs that say something twice."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.extras.analysis.doubled_words import doubles, share_stem


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
        (
            "Sie nehmen den König, um den König zu töten.",
            "They plot to kill the king.",
            "Sie wollen den König töten.",
        ),
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
        (
            "Du kannst es allein, aber nicht alleine.",
            "You can do it alone, but not you alone.",
        ),  # the source repeats too
        ("Ein Haus und ein Hund und eine Katze.", "A house and a dog and a cat."),  # short words
        ("", ""),
    ],
)
def test_outputs_that_do_not(output: str, source: str) -> None:
    assert not doubles(output, source, ["Etwas anderes, und der der Regel."])


@pytest.mark.parametrize(
    ("word", "other", "expected"),
    [
        ("dies", "dies", True),
        ("an", "an", True),
        ("neue", "neuen", True),
        ("intelligent", "intelligente", True),
        ("morgen", "morgens", True),
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


@given(st.text("abc", max_size=9), st.text("abc", max_size=9))
def test_sharing_a_stem_does_not_depend_on_the_order(word: str, other: str) -> None:
    assert share_stem(word, other) == share_stem(other, word)
    assert share_stem(word, word)
