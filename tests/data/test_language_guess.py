"""The language of a text, from its words or its script."""

import subprocess
import sys

import pytest

from nmt.data.language_guess import guess_language, language_of_name

TEXTS = {
    "en": (
        "I have to go home now because the children are waiting for me. What do you want to "
        "eat tonight?"
    ),
    "de": (
        "Ich muss jetzt nach Hause gehen, weil die Kinder auf mich warten. Was willst du heute "
        "Abend essen?"
    ),
    "fr": (
        "Je dois rentrer à la maison maintenant parce que les enfants m'attendent. Que veux-tu "
        "manger ce soir ?"
    ),
    "es": (
        "Tengo que irme a casa ahora porque los niños me están esperando. ¿Qué quieres comer "
        "esta noche?"
    ),
    "nl": "Ik moet nu naar huis omdat de kinderen op mij wachten. Wat wil je vanavond eten?",
    "ru": "Мне нужно идти домой, потому что дети меня ждут. Что ты хочешь съесть сегодня вечером?",
    "cs": (
        "Musím teď jít domů, protože na mě čekají děti. Co chceš dnes večer jíst? Nikdy nám "
        "neřekl, kde byl."
    ),
    "ar": "يجب أن أذهب إلى البيت الآن لأن الأطفال ينتظرونني. ماذا تريد أن تأكل هذه الليلة؟",
    "ja": "子供たちが待っているので、もう家に帰らなければなりません。",
    "zh": "我现在得回家，因为孩子们在等我。",
    "ko": "아이들이 기다리고 있어서 이제 집에 가야 해요.",
}


@pytest.mark.parametrize("language", TEXTS)
def test_guess(language: str) -> None:
    assert guess_language([TEXTS[language]]) == language


@pytest.mark.parametrize("text", ["", "4 5 6", "Zxq wvut prrt", "Kopenhagen Helsinki Oslo"])
def test_no_guess_without_evidence(text: str) -> None:
    assert guess_language([text]) is None


def test_names() -> None:
    assert [
        language_of_name(name) for name in ("de", " EN ", "German", "chinese", "source", "")
    ] == [
        "de",
        "en",
        "de",
        "zh",
        None,
        None,
    ]


def test_guessing_does_not_import_spacy() -> None:
    code = (
        "import sys; from nmt.data.language_guess import guess_language as g; g(['the dog']); "
        "sys.exit('spacy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
