"""nmt.extras.init.languages: the language of a text."""

import pytest

from nmt.extras.init.languages import guess_language, pair_of_name

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


NO_EVIDENCE = ("", "4 5 6", "Zxq wvut prrt", "Kopenhagen Helsinki Oslo")


@pytest.mark.parametrize(
    ("name", "guesses", "languages"),
    [
        ("ui.en-ar.tsv.gz", ("en", None), ("en", "ar")),
        ("en_fi.po", (None, None), ("en", "fi")),
        ("ui.en-ar.tsv", ("de", None), ("de", None)),
        ("to-do.tsv", ("en", None), ("en", None)),
        ("my-file.tsv", (None, None), (None, None)),
    ],
)
def test_the_name_of_a_file_tells_what_texts_do_not(
    name: str, guesses: tuple[str | None, str | None], languages: tuple[str | None, str | None]
) -> None:
    assert pair_of_name(name, guesses) == languages


@pytest.mark.parametrize(
    ("language", "texts"),
    [
        *((language, [text]) for language, text in TEXTS.items()),
        *((None, [text]) for text in NO_EVIDENCE),
        (None, ["Save file", "Save picture", "Print", "Close", "Go to line"]),  # Lithuanian "save"
        (None, ["Anna Meier", "Paul Is", "Maria Da Silva", "Tom Van Dam"]),
        ("fr", ["Le chien dort dans la maison.", "Où est la gare ?", "Une femme est à la maison."]),
        ("ja", ["保存", "設定を編集", "新規", "画像を保存"]),
        ("zh", ["保存", "编辑设置", "打开图片"]),
        ("lo", ["ສະບາຍດີ"]),
    ],
)
def test_the_language_of_texts_is_guessed_with_evidence(
    language: str | None, texts: list[str]
) -> None:
    assert guess_language(texts) == language
