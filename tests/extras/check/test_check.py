"""`nmt check`: what it finds, and that good translations are left in peace."""

import json
from pathlib import Path

import pytest

from nmt.extras.check.findings import Text, find_all, first_difference
from nmt.texts.glossary import Glossary
from nmt.texts.marked import Marked
from tests.conftest import Run
from tests.toy import write

SOURCE = [
    "Pay 1,250 dollars to {name} at once, please.",
    "We walk to the lake and swim in it.",
    "The <b>large</b> door is open today.",
    "She came home late. Then she slept. Nobody saw her.",
    "The old boat needs new paint before June.",
    "Ask Anna about the bread and the butter.",
]
GOOD = [
    "Bitte zahlen Sie sofort 1.250 Dollar an {name}.",
    "Wir gehen zum See und schwimmen darin.",
    "Die <b>große</b> Tür ist heute offen.",
    "Sie kam spät heim. Dann schlief sie. Niemand sah sie.",
    "Das alte Boot braucht vor dem Juni neue Farbe.",
    "Frag Anna nach dem Brot und der Butter.",
]


def problems(
    sources: list[str], translations: list[str], terms: dict[str, str] | None = None
) -> list[tuple[int, str, str]]:
    """(line, kind, problem) of each finding. terms: words and their translations."""
    texts = [
        Text(i + 1, Marked(src), Marked(tgt))
        for i, (src, tgt) in enumerate(zip(sources, translations, strict=True))
    ]

    found = find_all(texts, Glossary.of(terms or {}))
    return [(each.text.line, each.kind, each.problem) for each in found]


def with_line(number: int, translation: str) -> list[str]:
    return [*GOOD[: number - 1], translation, *GOOD[number:]]


@pytest.mark.parametrize(
    ("line", "translation", "expected"),
    [
        (
            1,
            "Bitte zahlen Sie {name} sofort 1.520 Dollar.",
            ("number", "the number 1,250 is missing"),
        ),
        (1, "Bitte zahlen Sie sofort 1.250 Dollar.", ("placeholder", "{name} is missing")),
        (2, "Wir gehen zum See und {name} darin.", ("placeholder", "{name} is not in the source")),
        (3, "Die </b>große<b> Tür ist offen.", ("tag", "</b> closes a tag that is not open")),
        (5, "", ("empty", "there is no translation")),
        (5, SOURCE[4], ("untranslated", "is the same as the source")),
        (2, "Wir gehen.", ("length", "is very short: 10 characters for 35")),
        (2, f"{GOOD[1]} " * 3, ("length", "is very long: 116 characters for 35")),
        (4, "Sie kam spät heim. Niemand sah sie.", ("sentences", "seems to have 2 of 3 sentences")),
        (6, "Frag Anna nach dem Kuchen und der Butter.", ("term", "the term Brot is missing")),
    ],
)
def test_found(line: int, translation: str, expected: tuple[str, str]) -> None:
    found = problems(SOURCE, with_line(line, translation), {"bread": "Brot"})
    assert found == [(line, *expected)]


@pytest.mark.parametrize(
    ("source", "translation"),
    [
        ("Tom Miller", "Tom Miller"),
        ("Photo editor 2", "Photo editor 2"),
        ("OK", "OK"),
        ("", ""),
        ("...", ""),
        ("Yes.", "Ja, das stimmt."),
        ("Wait! Stop!", "Warte, hör auf!"),
        ("at 3 p.m. on 4/5/2027", "am 5.4.2027 um 15 Uhr"),
    ],
)
def test_left_in_peace(source: str, translation: str) -> None:
    assert problems([*SOURCE, source], [*GOOD, translation]) == []


@pytest.mark.parametrize(
    ("source", "translation", "problem"),
    [
        ("_Paint", "Streichen", "the mark _ of the accelerator is missing"),
        ("Paint", "S&treichen", "the mark & of an accelerator is not in the source"),
        ("&Paint", "&Str&eichen", "has 2 marks of accelerators"),
        ("_Paint", "&Streichen", "has the mark &, and the source _"),
        ("_Paint", "塗る(_P) (_P)", "has 2 marks of accelerators"),
        ("_Paint", "塗る(_P)", None),
        ("The she_lf", "Das Re_gal", None),
        ("The B&B of user_id", "Das B&B von user_id", None),
    ],
)
def test_accelerators(source: str, translation: str, problem: str | None) -> None:
    expected = [(1, "accelerator", problem)] if problem else []
    assert problems([source], [translation]) == expected


@pytest.mark.parametrize(
    ("sources", "translations"),
    [
        # The usual length is that of the file.
        (
            ["We saw the large house of the king by the river."] * 5,
            ["我们看见河边国王的大房子。"] * 5,
        ),
        # A target language without marks at the ends loses no sentences.
        (
            ["It is late. We go home now.", "It rains. We stay inside today."],
            ["ดึกแล้ว เรากลับบ้านกัน", "ฝนตก วันนี้เราอยู่ข้างใน"],
        ),
    ],
)
def test_whole_files_left_in_peace(sources: list[str], translations: list[str]) -> None:
    assert problems(sources, translations) == []


def test_a_script_without_capitals_may_stay_untranslated() -> None:
    text = "我们明天去河边散步。"
    assert [kind for _, kind, _ in problems([text], [text])] == ["untranslated"]


@pytest.mark.parametrize("lost", range(len(SOURCE)))
def test_first_difference(lost: int) -> None:
    sources = [Marked(text) for text in SOURCE]
    own = [Marked(text) for text in GOOD[:lost] + GOOD[lost + 1 :]]
    assert abs(first_difference(sources, own) - lost) <= 1
    assert abs(first_difference(own, sources) - lost) <= 1


def test_command(tmp_path: Path, nmt: Run) -> None:
    source, good = write(tmp_path / "a.en", *SOURCE), write(tmp_path / "a.de", *GOOD)
    assert nmt.prints("check", source, good) == "nothing found in 6 texts\n"
    bad = write(tmp_path / "b.de", *with_line(3, "Die große Tür ist offen."))
    assert nmt("check", source, bad).out.splitlines() == [
        f"{bad}, line 3: <b> is missing",
        f"{bad}, line 3: </b> is missing",
        "2 findings in 6 texts",
    ]
    result = nmt("check", source, bad, "--json")
    assert result.status == 1
    first = json.loads(result.out)[0]
    assert {key: first[key] for key in ("line", "kind", "source")} == {
        "line": 3,
        "kind": "tag",
        "source": SOURCE[2],
    }


PLURALS = """
msgid ""
msgstr "Plural-Forms: nplurals=2; plural=(n != 1);\\n"

msgid "%d dog of %s"
msgid_plural "%d dogs of %s"
msgstr[0] "{}"
msgstr[1] "%d Hunde von %s"
"""
NO_TERMS = "{lake} at https://example.org/boat"


@pytest.mark.parametrize(
    ("files", "options", "found"),
    [
        # Files with both languages.
        (
            {
                "a.po": 'msgid "Delete %d files?"\nmsgstr "Dateien löschen?"\n\n'
                'msgid "Open the file"\nmsgstr ""\n\nmsgid "Close"\nmsgstr "Schließen"\n'
            },
            [],
            ["a.po, line 1: %d is missing", "a.po, line 4: there is no translation"],
        ),
        (
            {
                "a.po": 'msgid "Show gri_d"\nmsgstr "Gitter zeigen"\n\n'
                'msgid "The _grid"\nmsgstr "Das _Gitter"\n'
            },
            [],
            ["a.po, line 1: the mark _ of the accelerator is missing"],
        ),
        # A plural form need not say its number.
        ({"a.po": PLURALS.format("Ein Hund von %s")}, [], []),
        (
            {"a.po": PLURALS.format("Ein Hund")},
            [],
            ["a.po, line 5: %d is missing", "a.po, line 5: %s is missing"],
        ),
        (
            {"a.po": PLURALS.format("%d Hund %s von %s")},
            [],
            ["a.po, line 5: %s is there more often than in the source"],
        ),
        (
            {
                "a.html": "<h1>Boats</h1>\n<p>The <b>new</b> boat has 25 seats.</p>\n",
                "b.html": "<h1>Boote</h1>\n<p>Das <b>neue Boot hat</b> 15 Plätze.</p>\n",
            },
            [],
            ["b.html, line 2: the number 25 is missing"],
        ),
        # An item has no term.
        (
            {
                "a.en": "\n".join([*SOURCE, NO_TERMS]),
                "a.de": "\n".join([*GOOD, NO_TERMS]),
                "terms.tsv": "# ours\nlake|lakes\tSee\nboat\tKahn\n",
            },
            ["--glossary", "terms.tsv"],
            ["a.de, line 5: the term Kahn is missing"],
        ),
    ],
)
def test_files(
    files: dict[str, str],
    options: list[str],
    found: list[str],
    tmp_path: Path,
    nmt: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in files.items():
        Path(name).write_text(text, encoding="utf-8")
    result = nmt("check", *[name for name in files if name not in options], *options)
    assert (result.status, result.out.splitlines()[:-1]) == (bool(found), found)


def test_another_number_of_lines(tmp_path: Path, nmt: Run) -> None:
    source = write(tmp_path / "a.en", *SOURCE)
    own = write(tmp_path / "a.de", *GOOD[:3], *GOOD[4:])
    places = "they seem to differ from line 4 of the one and line 4 of the other on"
    nmt.refuses(f"{source} has 6 texts, {own} 5; {places}", "check", source, own)


def test_one_file_of_one_language(tmp_path: Path, nmt: Run) -> None:
    text = "has one language; name its translation, too"
    nmt.refuses(text, "check", write(tmp_path / "a.en", *SOURCE))
