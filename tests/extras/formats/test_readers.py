"""nmt.extras.formats: JSON lines, Parquet, translation memories and catalogs as pairs."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nmt.config.schema import CleaningConfig, SourceConfig
from nmt.data import formats
from nmt.data.formats import open_source
from nmt.data.reading import Pairs, Tally, read_pairs
from nmt.data.workers import start_workers
from nmt.errors import DataError, NmtWarning
from nmt.extras.formats import readers as record_sources
from tests.data.packing import PACKERS, Packer, gzipped, plain

PAIRS = [("Hi.", "Hallo!"), ("Run!", "Lauf, Bär!")]
TMX = """<?xml version="1.0" encoding="{encoding}"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header creationtool="x" segtype="sentence" srclang="en" datatype="plaintext"/>
<body>
  <tu tuid="1"><note>no text</note><tuv xml:lang="EN-us"><seg>Hi.</seg></tuv>
    <tuv xml:lang="de"><seg>Hallo!</seg></tuv></tu>
  <tu><tuv lang="fr"><seg>Cours !</seg></tuv>
    <tuv lang="de_AT"><seg>Lauf, <bpt i="1">&lt;b&gt;</bpt>Bär<ept i="1"/>!</seg></tuv>
    <tuv lang="en"><seg><hi>Run</hi>!</seg></tuv><tuv lang="de"><seg>Renn!</seg></tuv></tu>
</body></tmx>
"""
CATALOG = """\
# A comment
msgid ""
msgstr ""
"Language: de_AT\\n"
"Content-Type: text/plain; charset=ISO-8859-1\\n"

#: main.c:1
msgid "_Open"
msgstr "Ö_ffnen"

#, fuzzy
msgid "Save"
msgstr "Sichern"

msgid "Empty"
msgstr ""

msgid "one file\\n"
msgid_plural "%d files\\n"
msgstr[0] "eine Datei\\n"
msgstr[1] ""
"%d "
"Dateien\\n"

msgid "a"
msgid_plural "b"
msgstr[0] "c"
msgstr[1] ""

#~ msgid "Old"
#~ msgstr "Alt"
"""
UNITS = """<xliff version="1.2"><file source-language="en-US" target-language="de-DE"><body>
<trans-unit id="1"><source>Open <g id="1">it</g> &amp; go</source>
<target>Auf &amp; los</target></trans-unit>
<trans-unit id="2"><source>Hi</source></trans-unit>
<trans-unit id="5"><source>Show gri_d</source><target>_Gitter zeigen</target></trans-unit>
<trans-unit id="3"><source>Yes</source><target/></trans-unit>
<trans-unit id="4"><source>No</source>
  <target state="needs-review-translation">Nicht</target></trans-unit>
</body></file></xliff>"""


UTF8_TMX = TMX.replace("{encoding}", "utf-8")


def pairs(
    path: Path,
    kind: str,
    columns: dict[str, int | str] | None = None,
    languages: tuple[str, str] = ("en", "de"),
) -> list[tuple[str, str]]:
    config = SourceConfig(format=kind, columns=columns)
    (source,) = open_source(config, {"": [path]}, languages)
    return [pair for row in source.rows() if (pair := source.pair(row)) is not None]


def read(path: Path, kind: str, *, strict: bool = False) -> Tally:
    sources = open_source(SourceConfig(format=kind), {"": [path]}, ("en", "de"))
    output, cleaning = Pairs(path.with_name("out.tsv")), None if strict else CleaningConfig()
    with start_workers(1) as workers:
        return read_pairs(sources, cleaning, workers, output, bool)


def array(indent: int | None = None) -> str:
    records = [{"translation": dict(zip(("en", "de"), pair, strict=True))} for pair in PAIRS]
    return f"\n{json.dumps(records, ensure_ascii=False, indent=indent)}\n"


JSON_LINES = b'{"en": "Hi.", "de": "Hallo!", "id": 1}\n{"de": "Lauf, B\\u00e4r!", "en": "Run!"}\n'
NESTED = b'{"translation": {"en": "Hi.", "de": "Hallo!"}, "x": {"a.b": "no", "y": "Hey"}}\n'
ENGLISH_ALONE = "<body><tu><tuv xml:lang='en'><seg>a</seg></tuv></tu>"
MESSAGES = [("Open", "Öffnen"), ("one file", "eine Datei"), ("%d files", "%d Dateien")]


@pytest.mark.parametrize(
    ("kind", "content", "expected"),
    [
        ("jsonl", JSON_LINES, PAIRS),
        ("jsonl", NESTED, PAIRS[:1]),
        ("jsonl", b"\n" + NESTED + b"  \n\r\n" + NESTED + b"\n", PAIRS[:1] * 2),
        *(
            ("jsonl", array(indent).encode(encoding), PAIRS)
            for indent in (None, 2)
            for encoding in ("utf-8", "utf-8-sig", "utf-16")
        ),
        *(
            ("tmx", TMX.replace("{encoding}", encoding).encode(encoding), PAIRS)
            for encoding in ("utf-8", "utf-16")
        ),
        ("tmx", UTF8_TMX.replace("<body>", ENGLISH_ALONE).encode(), [("a", ""), *PAIRS]),
        ("po", CATALOG.encode("latin-1"), MESSAGES),
        ("xliff", UNITS.encode(), [("Open it & go", "Auf & los"), ("Show grid", "Gitter zeigen")]),
    ],
)
@pytest.mark.parametrize("pack", [plain, *PACKERS])
def test_the_pairs_of_a_file(
    tmp_path: Path, kind: str, content: bytes, expected: list[tuple[str, str]], pack: Packer
) -> None:
    path = pack(tmp_path / f"a.{kind}", content)
    assert pairs(path, kind) == expected
    assert pairs(path, kind, languages=("de", "en")) == [(tgt, src) for src, tgt in expected]


def test_columns_name_keys(tmp_path: Path) -> None:
    nested = gzipped(tmp_path / "b.jsonl", NESTED)
    assert pairs(nested, "jsonl", {"en": "x.y", "de": "translation.de"}) == [("Hey", "Hallo!")]


def test_the_language_may_be_in_the_name(tmp_path: Path) -> None:
    path = plain(tmp_path / "app.de.po", b'msgid "dog"\nmsgstr "Hund"\n')
    assert pairs(path, "po", languages=("de", "en")) == [("Hund", "dog")]
    assert pairs(path, "po", languages=("en", "nl")) == [("dog", "Hund")]


def test_parquet_has_columns_or_structures(tmp_path: Path) -> None:
    src, tgt = ([pair[side] for pair in PAIRS] for side in (0, 1))
    flat, nested = tmp_path / "flat.parquet", tmp_path / "nested.parquet"
    pq.write_table(
        pa.table({"id": [1, 2], "de": tgt, "en": pa.array(src, pa.large_string())}),
        flat,
        row_group_size=1,
    )
    pq.write_table(
        pa.table({"translation": [{"en": one, "de": other} for one, other in PAIRS]}), nested
    )
    assert pairs(flat, "parquet") == pairs(nested, "parquet") == PAIRS
    assert pairs(
        nested, "parquet", {"en": "translation.en", "de": "translation.de"}, ("de", "en")
    ) == [(tgt, src) for src, tgt in PAIRS]
    pq.write_table(
        pa.table({"en": ["Hi.", "a"], "de": ["Hallo!", None]}), tmp_path / "empty.parquet"
    )
    assert pairs(tmp_path / "empty.parquet", "parquet") == [("Hi.", "Hallo!"), ("a", "")]


@pytest.mark.parametrize(
    ("segment", "text"),
    [
        ('Run<ph x="1">&lt;br/&gt;</ph>home', "Run home"),
        ("Run<ph/> home,<it/>Tom<ut/>.", "Run home, Tom."),
        ("Run <ph x='1'>{name}</ph> (<ph>%1$s</ph>)!", "Run {name} (%1$s)!"),
        ("(<bpt i='1'>b</bpt>Run<ept i='1'/>)!<ph/>Go", "(Run)! Go"),
        ('Say "<bpt/>Run<ept/>"<ph>a<sub>no <hi>text</hi></sub></ph> now', 'Say "Run" now'),
        ("Run<ph/><ph/>\n <it/> home<ph/>", "Run home"),
        ("Run<x/>home<hi>Tom</hi>now", "Run home Tom now"),
        ("l'<bpt/>ami<ept/>-<it/>la", "l'ami-la"),
        ("<![CDATA[Run <b>]]> &amp; <!-- no word -->home", "Run <b> & home"),
        ("我<bpt/>看见<ept/>他。<ph/>ルン<ph/>です", "我看见他。ルンです"),
        ("\n<ph/></seg></tuv><tuv xml:lang='en-GB'><seg>Run", "Run"),
        ("<ph/></seg></tuv><tuv xml:lang='en'><seg>Run<ph/>home", "Run home"),
    ],
)
def test_elements_within_a_segment_join_no_words(tmp_path: Path, segment: str, text: str) -> None:
    unit = f"<tuv lang='en'><seg>{segment}</seg></tuv><tuv lang='de'><seg>x</seg></tuv>"
    path = plain(tmp_path / "a.tmx", f"<tmx><body><tu>{unit}</tu></body></tmx>".encode())
    ((src, _),) = pairs(path, "tmx")
    assert " ".join(src.split()) == text


def test_bad_records_are_counted_and_listed(tmp_path: Path) -> None:
    path = plain(
        tmp_path / "a.jsonl", b'{"en": "Hi.", "de": "Hallo!"}\n[]\n{"en": "\\ud800", "de": "x"}\n'
    )
    tally = read(path, "jsonl")
    assert tally.dropped == {formats.BAD_RECORD: 1, formats.UNDECODABLE: 1}
    assert tally.lines == {formats.BAD_RECORD: [2], formats.UNDECODABLE: [3]}
    with pytest.raises(
        DataError,
        match=r"line 2 has no text under en .*; dev and test sets are used whole, so fix the line",
    ):
        read(path, "jsonl", strict=True)


def bomb(levels: int) -> str:
    entities = "".join(
        f'<!ENTITY e{level} "{f"&e{level - 1};" * 10}">' for level in range(1, levels)
    )
    return (
        f'<!DOCTYPE tmx [<!ENTITY e0 "ha">{entities}]><tmx><tu><tuv '
        f'lang="en"><seg>&e{levels - 1};</seg></tuv></tu></tmx>'
    )


def parquet_of(**columns: Any) -> bytes:
    stream = io.BytesIO()
    pq.write_table(pa.table(columns), stream)
    return stream.getvalue()


PARQUET = parquet_of(en=["Hi."], de=[1], fr=["Salut !"])


@pytest.mark.parametrize(
    ("kind", "content", "message"),
    [
        (
            "jsonl",
            b'[{"en": "Hi.", "de": "Hal',
            r"begins as a JSON array, but is none \(Unt.*",
        ),
        (
            "jsonl",
            b'["Hi.", "Hallo!"]\n["Run!", "Lauf!"]',
            r"begins as a JSON array, but is none \(Extra data: line 2 column 1 .*\)",
        ),
        (
            "jsonl",
            b'[{"en": "Sch\xf6n"}]',
            r"begins as a JSON array, but is none \('utf-8' codec can't decode .*\)",
        ),
        ("jsonl", b"[" * 10**5, r"begins as a JSON array, but is none \(.*\)"),
        ("jsonl", b"[" + b" " * 2_000_000, "is a JSON array of more than 1,000,000 bytes; .*jq -c"),
        (
            "tmx",
            UTF8_TMX[:-30].encode(),
            r"is not well-formed XML after unit 1 \(.*\); repair it, or export it again",
        ),
        ("tmx", b"<html><p></html>", r"is not well-formed XML after unit 0 \(mismatched tag.*\)"),
        (
            "tmx",
            b'<?xml version="1.0" encoding="UTFF-8"?><tmx/>',
            r"has an encoding that cannot be read \(.*UTFF-8\); save it as UTF-8",
        ),
        (
            "tmx",
            b'<?xml version="1.0" encoding="shift_jis"?><tmx/>',
            r"has an encoding that cannot be read \(multi-byte encodings",
        ),
        ("tmx", b"<html></html>", r"has no text in en; its languages are: none"),
        (
            "tmx",
            UTF8_TMX.replace("de", "nl").encode(),
            r"has no text in de; its languages are: en, en-us, fr, nl, nl-at",
        ),
        (
            "tmx",
            bomb(10).encode(),
            r"defines entities, which can stand for gigabytes \(.*\); remove its DOCTYPE",
        ),
        (
            "tmx",
            b"<tmx><!-- " + b"x" * 5000,
            r"has an element or a comment of more than 1,000 bytes; it is no translation memory",
        ),
        (
            "tmx",
            b"<tmx><tu><tuv lang='en'><seg>" + b"<hi>x</hi>" * 3000,
            r"unit 1 has more than 1,000 characters",
        ),
        ("po", b'msgid "a"\nno line', "line 2: is not of a message catalog"),
        (
            "po",
            CATALOG.replace("de_AT", "fr").encode("latin-1"),
            "has texts in fr, not in en and de",
        ),
        ("xliff", b"<xliff>", "is not well-formed XML"),
        (
            "xliff",
            UNITS.replace("en-US", "es").replace("de-DE", "fr").encode(),
            "has texts in es and fr, not in en and de",
        ),
        ("parquet", PARQUET, "has no column de of text; set `columns` to two of its .*: en, fr"),
        ("parquet", PARQUET[:-20], "is truncated, damaged or no Parquet file"),
        (
            "parquet",
            PARQUET[:-20] + b"\xff" * 8 + PARQUET[-12:],
            r"cannot be read \(Couldn't deserialize thrift: [^\n]*\)$",
        ),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_files_that_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, content: bytes, message: str
) -> None:
    monkeypatch.setattr(record_sources, "MAX_ARRAY_BYTES", 1_000_000)
    if "1,000 " in message:
        monkeypatch.setattr(record_sources, "MAX_LINE_BYTES", 1000)
    with pytest.raises(DataError, match=rf"a[:,] {message}"):
        pairs(plain(tmp_path / "a", content), kind)


def test_a_row_group_that_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_sources, "MAX_ROW_GROUP_BYTES", 1)
    message = "row group 1 is too large; write it again with groups of a million rows"
    with pytest.raises(DataError, match=message):
        pairs(plain(tmp_path / "a", PARQUET), "parquet", {"en": "en", "de": "fr"})


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{'en': 1}", r"is not JSON \(Expecting property name .*\)"),
        (b'"Hi."', r"has no text under en \(it is no object\)"),
        (b'{"en": "Hi.", "de": null}', r"has no text under de \(its keys are en, de\)"),
    ],
)
def test_bad_json_is_explained(tmp_path: Path, line: bytes, message: str) -> None:
    no_row = rf"a\.jsonl: no row can be used: line 1 {message}, expected a JSON object with en and"
    with pytest.raises(DataError, match=rf"{no_row} de in each line; check"):
        read(plain(tmp_path / "a.jsonl", line), "jsonl")


@pytest.mark.parametrize(("kind", "package"), [("parquet", "pyarrow"), ("tmx", "defusedxml")])
def test_missing_packages_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, package: str
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, package, None)
    message = rf'format {kind} needs the package {package}; run: pip install "nmt\[formats\]"'
    with pytest.raises(DataError, match=message):
        pairs(plain(tmp_path / "a", b"x"), kind)


def test_two_regions_of_a_language_in_a_memory_are_named(tmp_path: Path) -> None:
    unit = (
        '<tu><tuv xml:lang="en"><seg>can</seg></tuv><tuv xml:lang="de-AT"><seg>Dose</seg></tuv>'
        '<tuv xml:lang="de-DE"><seg>Büchse</seg></tuv></tu>'
    )
    path = plain(tmp_path / "a.tmx", f"<tmx><body>{unit}</body></tmx>".encode())
    with pytest.warns(NmtWarning, match=r"a\.tmx: has texts in de-at and de-de; of each unit"):
        ((_, tgt),) = pairs(path, "tmx")
    assert tgt == "Dose"
