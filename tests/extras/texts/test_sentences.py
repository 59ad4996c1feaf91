"""Sentences of texts in several languages."""

import sys

import pytest

from nmt.extras.texts.sentences import sentences, writes_spaces

# "|" between the sentences.
CASES = [
    ("en", "Mr. Fox met Dr. Hill.|They had tea."),
    ("en", "She lives at 5 Oak St. near the park."),
    ("en", "I work for the U.S. Army.|It pays well."),
    ("en", '"Stop!" Anna said.|Then she ran.'),
    ("en", "Wait... I forgot my keys."),
    ("en", 'He asked: "Are you ready?" and left.'),
    ("en", "1. Eggs|2. Flour|3. Salt"),
    ("en", "J. R. Miller wrote it.|I read it."),
    ("en", "It costs 3.50 euros.|That is fine."),
    ("en", "We met at 5 p.m. on Monday.|It rained."),
    ("en", "Go to example.org.|Log in there."),
    ("en", "No way!!|Really?|Yes."),
    ("en", "Is it 5 p.m. yet?|No, Tom."),
    ("en", "She left at 3.|Then she came back at 4.|Anna slept."),
    ("en", "1. Open it.|2. Close it."),
    ("en", "2. Open it."),
    ("en", "We met at 5 p.m.|He was late."),
    ("en", "They sell eggs, milk, etc.|We bought some."),
    ("en", "It drives 10 km/h.|It is old."),
    ("en", 'He said: "Go!"|Then he left.'),
    ("en", '"Stop!" I said.'),
    ("en", "anna went home. |she was tired.".replace(" |", "|")),
    ("es", "Tiene 3.|Luego se fue."),
    ("de", "Am 3. Mai kam er an.|Es war kalt."),
    ("de", "Das gilt z. B. für Hunde.|Katzen nicht."),
    ("de", "Prof. Dr. Weber ist da.|Er wartet."),
    ("de", "»Komm!«, rief sie.|Er blieb."),
    ("de", "Er kam am 24. Dezember 2010.|Alle freuten sich."),
    ("de", "„Wo bist du?“, fragte er."),
    ("de", "Usw. usf. ist kurz.|Das reicht."),
    ("fr", "M. Petit est là.|Il attend."),
    ("fr", "Est-ce vrai ?|Oui !|Tant mieux."),
    ("fr", "« Viens ! » dit-elle.|Il vint."),
    ("es", "¿Qué hora es?|¡Es tarde!|Vamos."),
    ("es", "El Sr. Ruiz y la Sra. Gil llegaron.|Ya se fueron."),
    ("es", "Ud. tiene razón.|Gracias."),
    ("it", "Il dott. Neri è qui.|Buongiorno!"),
    ("it", "Che bello...|Torniamo domani."),
    ("ru", "Он живёт на ул. Ленина.|Она тоже."),
    ("ru", "А. С. Иванов родился в 1799 г. в Москве."),
    ("ru", "Привет!|Как дела?|Хорошо."),
    ("ja", "今日は雨です。|明日は晴れます！|本当？"),
    ("ja", "「行こう。」と彼は言った。|雨だった。"),
    ("zh", "你好。|你是谁？|我是老师。"),
    ("hi", "मैं घर जा रहा हूँ।|तुम कहाँ हो?|वह यहाँ है।"),
    ("ar", "كيف حالك؟|أنا بخير.|شكرا."),
    ("ur", "میں ٹھیک ہوں۔|آپ کیسے ہیں؟"),
    ("pl", "Mieszkam przy ul. Długiej.|To blisko."),
    ("nl", "Dhr. Bakker is er niet.|Bel later."),
    ("tr", "Ali geldi.|Sonra gitti."),
]


def parts(text: str, language: str = "en") -> list[str]:
    return [text[start:end] for start, end in sentences(text, language)]


def wrong() -> list[str]:
    """The cases that are split elsewhere."""
    found = []
    for language, case in CASES:
        text = case.replace("|", "" if language in ("ja", "zh") else " ")
        if parts(text, language) != case.split("|"):
            found.append(case)
    return found


def test_hard_cases_with_the_library() -> None:
    pytest.importorskip("sentencex")
    assert wrong() == []


def test_hard_cases_without_a_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentencex", None)
    assert [case.split()[0] for case in wrong()] == ["Mieszkam", "Dhr."]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I love you.I miss you.", ["I love you.", "I miss you."]),
        ("One.  Two.", ["One.", "Two."]),
        ("One. ", ["One. "]),
        ("", [""]),
        ("1. Eggs. They are white. 2. Salt.", ["1. Eggs.", "They are white.", "2. Salt."]),
    ],
)
def test_what_stands_between(text: str, expected: list[str]) -> None:
    assert parts(text) == expected


def test_spaces() -> None:
    assert [*map(writes_spaces, ["zh_TW", "JA", "de", ""])] == [False, False, True, True]


def test_lines_are_translated_by_themselves() -> None:
    assert parts("Usage:\n  - one dog\n\n  %s") == ["Usage:", "- one dog", "%s"]
    assert parts("I am Tom. You are Ann.\nGood day.") == ["I am Tom.", "You are Ann.", "Good day."]


def test_a_sentence_may_have_a_line_feed() -> None:
    assert parts("The file is\ntoo large.") == ["The file is\ntoo large."]
    assert parts("the files are\n\ntoo large") == ["the files are", "too large"]
