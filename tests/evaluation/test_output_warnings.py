"""nmt.evaluation.output_warnings: which outputs look wrong."""

from nmt.evaluation.breakdown import TranslatedText
from nmt.evaluation.output_warnings import DESCRIPTIONS, output_warnings


def test_output_warnings() -> None:
    sources = ["Berlin.", "One two.", "Three.", "Paris!", "Four.", "Hands up!"]
    references = ["Berlin.", "Eins zwei.", "Drei.", "In Paris.", "nein nein nein", "Hände hoch!"]
    outputs = ["berlin", " ", "Ja, ja ja.", "Paris", "nein nein nein", "Hände auf die Hände!"]
    complete, skipped = [True, True, False, True, True, True], [True, False, False, False, False, False]
    warnings = output_warnings(TranslatedText(sources, outputs, [references], complete, skipped))
    assert warnings == {
        "empty": [1],
        "cut": [2],
        "repeating": [2],
        "copied": [3],
        "doubling": [2, 5],
        "skipping": [0],
        "short": [1, 3],
    }
    assert warnings.keys() == DESCRIPTIONS.keys()


def test_with_several_references_an_output_needs_to_be_like_one_of_them() -> None:
    references = [["Komm!"], ["Komm jetzt bitte herein, herein!"]]
    warnings = output_warnings(TranslatedText(["Come in!"], ["Herein, herein!"], references, [True], [False]))
    assert not any(warnings.values())
