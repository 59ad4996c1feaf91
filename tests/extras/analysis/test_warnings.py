"""nmt.extras.analysis.warnings: which outputs look wrong."""

import pytest

from nmt.extras.analysis.groups import TranslatedText
from nmt.extras.analysis.warnings import DESCRIPTIONS, output_warnings


def test_output_warnings() -> None:
    sources = ["Berlin.", "One two.", "Three.", "Paris!", "Four.", "Hands up!"]
    references = ["Berlin.", "Eins zwei.", "Drei.", "In Paris.", "nein nein nein", "Hände hoch!"]
    outputs = ["berlin", " ", "Ja, ja ja.", "Paris", "nein nein nein", "Hände auf die Hände!"]
    complete, skipped = (
        [True, True, False, True, True, True],
        [True, False, False, False, False, False],
    )
    counts = dict.fromkeys(("ja", "nein", "auf", "die", "paris"), 1)
    warnings = output_warnings(
        TranslatedText(sources, outputs, [references], complete, skipped), counts
    )
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
    warnings = output_warnings(
        TranslatedText(["Come in!"], ["Herein, herein!"], references, [True], [False]),
        {"herein": 2},
    )
    assert not any(warnings.values())


@pytest.mark.parametrize(
    ("output", "inventing"),
    [
        ("Der Hundling schläft.", True),
        (
            "Der Hund schläft.",
            False,
        ),  # from the training data, the source and the reference, whatever the case
        ("Der DOGE schläft 12345 mal.", False),
        ("", False),
    ],
)
def test_an_invented_word_is_nowhere_else(output: str, inventing: bool) -> None:
    text = TranslatedText(["The doge sleeps."], [output], [["Der Doge SCHLÄFT."]], [True], [False])
    assert output_warnings(text, {"der": 5, "hund": 1, "mal": 1})["inventing"] == (
        [0] if inventing else []
    )
    assert output_warnings(text, None)["inventing"] == []
