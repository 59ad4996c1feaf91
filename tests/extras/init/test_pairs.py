"""The columns and the pairs of a user's file, whatever its format."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.errors import DataError
from nmt.extras.init.inspection import PairFiles, inspect
from nmt.extras.init.languages import has_no_spaces, language_of_name
from nmt.extras.init.measurement import read_pairs
from tests import toy
from tests.extras.init.files import FORMATS, TEXT_FORMATS, Format, table, zipped

ENGLISH = (
    "The dog sees the man.",
    "What do you want, and why?",
    "He was not there when I came.",
    'She said "no" to me.',
)
GERMAN = (
    "Der Hund sieht den Mann.",
    "Was willst du, und warum?",
    "Er war nicht da, als ich kam.",
    "Sie hat nein zu mir gesagt.",
)
PAIRS = [
    (f"{en} {i}", f"{de} {i}") for i in range(5) for en, de in zip(ENGLISH, GERMAN, strict=True)
]
CREDITS = "CC-BY 2.0 (France) Attribution: tatoeba.org #1 (CK) and #2 (the man)"


def columns(files: PairFiles) -> list[tuple[int | str, str | None]]:
    return [(column.key, column.language) for column in files.columns]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (table(PAIRS), [(1, "en"), (2, "de")]),
        (table(PAIRS, ","), [(1, "en"), (2, "de")]),
        (gzip.compress(table(PAIRS)), [(1, "en"), (2, "de")]),
        (zipped({"deu.txt": table(PAIRS), "_about.txt": "notes"}), [(1, "en"), (2, "de")]),
        # Among others, and with many translations of a text.
        (
            table((str(i), de, "greeting", en, CREDITS) for i, (en, de) in enumerate(PAIRS)),
            [(2, "de"), (4, "en")],
        ),
        (
            table((ENGLISH[i // 12], f"{GERMAN[i // 12]} {i}", "web") for i in range(48)),
            [(1, "en"), (2, "de")],
        ),
        # A row of names: it decides the languages, and which side is the second.
        (table([("English", "German"), *PAIRS]), [("English", "en"), ("German", "de")]),
        (table([("Englisch", "Deutsch"), *PAIRS]), [("Englisch", "en"), ("Deutsch", "de")]),
        (table([("source", "target"), *PAIRS]), [("source", "en"), ("target", "de")]),
        (table([("en", "de"), *PAIRS]), [("en", "en"), ("de", "de")]),
        (table([("fr", "de"), *PAIRS]), [("fr", "fr"), ("de", "de")]),
        (table([("hi", "hey"), *PAIRS]), [(1, "en"), (2, "de")]),  # a pair, though "hi" is a code
        (
            table(
                [("de", ""), *((f"Das ist das Haus {i}.", f"This is it {i}.") for i in range(20))],
                ",",
            ),
            [("de", "de"), (2, "en")],
        ),
        (
            table([("id", "target", "source"), *((str(i), *PAIRS[i][::-1]) for i in range(20))]),
            [("source", "en"), ("target", "de")],
        ),
    ],
)
def test_the_columns_of_text_and_their_languages(
    tmp_path: Path, content: bytes, expected: list[tuple[int | str, str]]
) -> None:
    (tmp_path / "pairs.txt").write_bytes(content)
    assert columns(inspect([tmp_path / "pairs.txt"])) == expected


@pytest.mark.parametrize(("separator", "name"), [("\t", "tsv"), (",", "csv")])
def test_a_table_has_a_format_and_examples(tmp_path: Path, separator: str, name: str) -> None:
    (tmp_path / "pairs.txt").write_bytes(table(PAIRS, separator))
    files = inspect([tmp_path / "pairs.txt"])
    assert (files.format, files.columns[0].example) == (name, "He was not there when I cam...")


@pytest.mark.parametrize("share", [2, 100])
def test_the_texts_of_a_program_have_accelerators(tmp_path: Path, share: int) -> None:
    marks = ("" if number % share else "_" for number in range(len(PAIRS) * 9))
    rows = [(mark + en, mark + de) for mark, (en, de) in zip(marks, PAIRS * 9, strict=True)]
    (tmp_path / "a.tsv").write_bytes(table(rows))
    files = inspect([tmp_path / "a.tsv"])
    assert files.source(("en", "de")).get("accelerators", False) is (share == 2)


THREE = table([("en", "de", "fr"), *((*pair, f"Oui {i}") for i, pair in enumerate(PAIRS))])


@pytest.mark.parametrize(
    ("content", "wanted", "text"),
    [
        (b"", None, "is empty"),
        (
            b"One sentence.\nAnother, shorter.\n",
            None,
            r"no columns found \(tried commas, semicolons, bars, tabs\)",
        ),
        (b"\n\n", None, "no columns found"),
        (b"1\t2\n3\t4\n", None, "has no two columns of text"),
        (b"a\tb\nSch\xf6n\tb\n", None, r"line 2: not UTF-8"),
        ("One\tEins\n".encode("utf-16-le"), None, "is UTF-16"),
        (b"\0\1\2\3" * 9, None, "is UTF-16 or no text"),
        # Other formats are named.
        (b'<?xml version="1.0"?>\n<xliff version="1.2">', None, "is not well-formed XML"),
        (b"<!DOCTYPE html>\n<html>", None, "is an HTML page"),
        (b"%PDF-1.7\n\0\0", None, "is a PDF document"),
        (b'# Ada\nmsgid ""\nmsgstr ""\n', None, "has no two columns of text"),
        (b"1\n00:00:01,000 --> 00:00:02,000\nHello.\n", None, "is a file of subtitles"),
        (b'[["Yes.", "Ja."]]', None, "is JSON, but has no object for each pair"),
        (b'{\n "pairs": [\n', None, "is JSON, but has no object for each pair"),
        (zipped({"[Content_Types].xml": ""}), None, "is an office document"),
        # Other languages, or more than two.
        (THREE, None, "has en, de and fr; name two of them with --direction"),
        (THREE, ("en", "it"), "has en, de and fr, and not both en and it"),
        (FORMATS["tmx"](PAIRS), ("en", "fr"), "has de, and not en and fr, by the names of its col"),
    ],
)
def test_files_without_such_pairs_are_refused(
    tmp_path: Path, content: bytes, wanted: tuple[str, str] | None, text: str
) -> None:
    (tmp_path / "pairs").write_bytes(content)
    with pytest.raises(DataError, match=text):
        inspect([tmp_path / "pairs"]) if wanted is None else read_pairs(
            [tmp_path / "pairs"], wanted
        )


def test_two_of_three_languages(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_bytes(THREE)
    found = inspect([tmp_path / "pairs.tsv"], ("fr", "de"))
    assert columns(found) == [("de", "de"), ("fr", "fr")]


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("de", "de"),
        (" EN ", "en"),
        ("German", "de"),
        ("chinese", "zh"),
        ("English (US)", "en"),
        ("Target (de)", "de"),
        ("text_de", "de"),
        ("deu_Latn", "deu"),
        ("pt_br", "pt"),
        ("source", None),
        ("", None),
        ("Wi-Fi", None),
    ],
)
def test_languages_have_names(name: str, code: str | None) -> None:
    assert language_of_name(name) == code


@pytest.mark.parametrize(
    ("text", "is_unspaced"),
    [
        ("猫が好きです。", True),
        ("เขาอยู่บ้าน", True),
        ("我 喜欢 猫 。", False),
        ("그는 집에 있다.", False),
        ("Rindfleischetikettierung", False),
    ],
)
def test_texts_without_spaces(text: str, is_unspaced: bool) -> None:
    assert has_no_spaces([text] * 3) is is_unspaced


# All pairs of a file, in the direction of a run

TWO = [("Open the  door.", "Öffne die Tür."), ("Save as {name}", "Als {name} speichern")]
TABLES: dict[str, Format] = {
    "tsv": table,
    "turned": lambda pairs: table([pair[::-1] for pair in pairs] * 9),
    "csv": lambda pairs: table([("id", "de", "en"), *(("1", de, en) for en, de in pairs)], ","),
}


@pytest.mark.parametrize(
    ("write", "pack", "direction"),
    [
        *((write, bytes, ("en", "de")) for write in {**FORMATS, **TABLES}.values()),
        *((write, gzip.compress, ("en", "de")) for write in {**TEXT_FORMATS, **TABLES}.values()),
        *((write, bytes, ("de", "en")) for write in FORMATS.values()),
    ],
)
def test_each_format_gives_the_pairs_in_the_direction(
    tmp_path: Path, write: Format, pack: Callable[[bytes], bytes], direction: tuple[str, str]
) -> None:
    (tmp_path / "pairs").write_bytes(pack(write(TWO)))
    expected = [("Open the door.", TWO[0][1]), TWO[1]]
    if direction == ("de", "en"):
        expected = [(tgt, src) for src, tgt in expected]
    assert [*dict.fromkeys(read_pairs([tmp_path / "pairs"], direction)[0])] == expected


def test_pairs_that_lack_a_side_are_left_out_and_long_ones_stay(tmp_path: Path) -> None:
    pairs = [*toy.sentence_pairs()[:20], ("OK", "Ja, das ist völlig in Ordnung. " * 9)]
    path = toy.write_table(tmp_path / "a.tsv", [*pairs, ("", "Nein."), ("No.", " ")])
    expected = [*pairs[:-1], ("OK", pairs[-1][1].strip())]
    assert read_pairs([path], ("en", "de")) == (expected, "")


# In PO, quotation marks need escapes.
PLAIN = [pair for pair in PAIRS if '"' not in pair[0]]
PO = FORMATS["po"]
FRENCH = PO(PLAIN).replace(b"Language: de", b"Language: fr")
UNTRANSLATED = b'msgid ""\nmsgstr ""\n"Language: de\\n"\n\nmsgid "One."\nmsgstr ""\n'
CSV = table([("en", "de"), *PLAIN], ",")


@pytest.mark.parametrize(
    ("files", "given", "counts"),
    [
        ({"a.po": PO(PLAIN[:10]), "b.po": PO(PLAIN[10:])}, ["*.po"], {"a.po": 10, "b.po": None}),
        ({"a.po": PO(PLAIN), "b.po": UNTRANSLATED}, ["b.po", "a.po"], {"b.po": 0, "a.po": None}),
        ({"po/de/a.po": PO(PLAIN), "po/x.pot": PO(PLAIN), "po/.b.po": b"x"}, ["po"], {}),
        (
            {"po/a.po": PO(PLAIN[:9]), "po/b/a.po": PO(PLAIN[9:]), "po/c.txt": b"x"},
            ["po"],
            {"po/a.po": 9, "po/b/a.po": None},
        ),
        (
            {"a.zip": zipped({"x/a.po": PO(PLAIN[:7]), "b.po": PO(PLAIN[7:]), "LICENSE.txt": "x"})},
            ["a.zip"],
            {"a.zip/b.po": None, "a.zip/x/a.po": 7},
        ),
        ({"a.csv": CSV, "b.csv": CSV}, ["a.csv", "b.csv"], {"a.csv": len(PLAIN), "b.csv": None}),
        (
            {"a.tmx": FORMATS["tmx"](PLAIN), "b.tmx": FORMATS["tmx"](PLAIN)},
            ["?.tmx"],
            {"a.tmx": len(PLAIN), "b.tmx": None},
        ),
        (
            {"a.jsonl": FORMATS["jsonl"](PLAIN), "b.jsonl": FORMATS["jsonl"](PLAIN)},
            ["."],
            {"a.jsonl": len(PLAIN), "b.jsonl": None},
        ),
        (
            {
                "a.zip": zipped(
                    {f"{side}.txt": "".join(f"{pair[side]}\n" for pair in PLAIN) for side in (0, 1)}
                )
            },
            ["a.zip"],
            {},
        ),
    ],
)
def test_several_files_of_one_format(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    files: dict[str, bytes],
    given: list[str],
    counts: dict[str, int | None],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, content in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(content)
    pairs, listing = read_pairs([*map(Path, given)], ("en", "de"))
    assert {*pairs} == {*PLAIN}
    rest = len(pairs) - sum(filter(None, counts.values()))
    rows = ", ".join(f"{name} {rest if n is None else n}" for name, n in counts.items())
    assert listing == (f"texts of each file: {rows}" if counts else "")


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        (
            {"a.po": PO(PLAIN), "b.tmx": FORMATS["tmx"](PLAIN)},
            "is a folder with .po, .tmx; name files of one kind",
        ),
        ({"a.md": b"x"}, "is a folder with no files of pairs; name files"),
        ({"a.po": PO(PLAIN), "b.po": FRENCH}, "b.po: has fr, and not en and de"),
        (
            {"a.csv": CSV, "b.csv": table([("English", "German"), *PLAIN], ",")},
            "b.csv: has other columns than",
        ),
        ({"a.po": PO(PLAIN), "b.po": b"One sentence.\n"}, "give pairs of one format, or two files"),
        ({"a.po": UNTRANSLATED, "b.po": UNTRANSLATED}, "a.po: has no two columns of text"),
    ],
)
def test_several_files_that_do_not_fit(
    tmp_path: Path, files: dict[str, bytes], problem: str
) -> None:
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=problem):
        read_pairs([tmp_path], ("en", "de"))


def test_a_file_in_a_zip_is_no_other_file(tmp_path: Path) -> None:
    (tmp_path / "a.po").write_bytes(PO(PLAIN))
    content = zipped(dict.fromkeys((f"{tmp_path}/a.po", "../a.po"), "x"))
    (tmp_path / "a.zip").write_bytes(content)
    with pytest.raises(DataError, match=r"a.zip: has no |no columns found"):
        read_pairs([tmp_path / "a.zip"], ("en", "de"))
