"""Sentences of texts in several languages."""

import pytest

from nmt.texts.sentences import most_sentences, n_sentences, split_sentences

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
    return [text[start:end] for start, end in split_sentences(text, language)]


@pytest.mark.parametrize(("language", "case"), CASES)
def test_hard_cases(language: str, case: str) -> None:
    text = case.replace("|", "" if language in ("ja", "zh") else " ")
    assert parts(text, language) == case.split("|")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I love you.I miss you.", ["I love you.", "I miss you."]),
        ("One.  Two.", ["One.", "Two."]),
        ("One. ", ["One. "]),
        ("", [""]),
        ("1. Eggs. They are white. 2. Salt.", ["1. Eggs.", "They are white.", "2. Salt."]),
        # Lines are translated by themselves, but a sentence may have a line feed.
        ("Usage:\n  - one dog\n\n  %s", ["Usage:", "- one dog", "%s"]),
        ("I am Tom. You are Ann.\nGood day.", ["I am Tom.", "You are Ann.", "Good day."]),
        ("The file is\ntoo large.", ["The file is\ntoo large."]),
        ("the files are\n\ntoo large", ["the files are", "too large"]),
    ],
)
def test_what_stands_between(text: str, expected: list[str]) -> None:
    assert parts(text) == expected


@pytest.mark.parametrize(
    ("text", "surely", "at_most"),
    [
        ("", 1, 0),
        ("The dog sleeps.", 1, 1),
        ("The dog sleeps. Why? It is late!", 3, 3),
        ("The dog sleeps. It is late", 2, 2),
        ("Dr. Smith met J. R. Hill and St. Peter.", 1, 5),
        ("Am 3. Mai kamen 2.5 Mio. an.", 1, 3),
        ("Well... I do not know.", 1, 2),
        ("Well... You know… They know.", 3, 3),
        ("It was in 1984. Two came. Anna is 5. Two left.", 3, 4),
        ("Plan B. Smith", 1, 2),
        ("the dog sleeps. it is late. really?", 3, 3),
        ("the dog... it is late, Tom.", 1, 2),
        ('"Stop!" Tom said.', 1, 2),
        ('"Stop!" "Why?"', 2, 2),
        ("¿Quién es? ¡Ven!", 2, 2),
        ("Он спит. Почему?", 2, 2),
        ("犬が眠る。なぜ？もう遅い。", 3, 3),
        ("「犬が眠る。」", 1, 1),
        ("The dog sleeps.I am here.", 2, 2),
        ("Why?Look!Anna is here;the dog too.", 3, 3),
        ("Mr.Hill of ASP.NET wrote to anna@Hill.Org.", 1, 1),
        ("The dog (it is old). Anna came.", 2, 2),
        ("1. Bread 2. Water", 2, 3),
        ("1) Bread 2) Water", 2, 2),
        ("Am 1. Mai und am 2. Juni", 1, 3),
        ("कुत्ता सोता है। देर हो गई।", 2, 2),
        ("الكلب نائم. لماذا؟", 2, 2),
    ],
)
def test_number_of_sentences(text: str, surely: int, at_most: int) -> None:
    assert (n_sentences(text), most_sentences(text)) == (surely, at_most)
