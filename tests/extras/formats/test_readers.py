"""nmt.extras.formats.readers: JSON lines, Parquet and translation memories."""

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nmt.config.schema import CleaningConfig, SourceConfig
from nmt.data import formats, reading
from nmt.data.formats import NoPairError, open_source
from nmt.data.reading import Pairs, Tally, read_pairs
from nmt.data.workers import start_workers
from nmt.errors import DataError
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


def pairs(
    path: Path, kind: str, columns: dict[str, int | str] | None = None, src: str = "en"
) -> list[tuple[str, str]]:
    config = SourceConfig(format=kind, columns=columns)
    (source,) = open_source(config, {"": [path]}, (src, "de" if src == "en" else "en"))
    return [pair for row in source.rows() if (pair := source.pair(row)) is not None]


def read(path: Path, kind: str, *, strict: bool = False) -> Tally:
    sources = open_source(SourceConfig(format=kind), {"": [path]}, ("en", "de"))
    output, cleaning = Pairs(path.with_name("out.tsv")), None if strict else CleaningConfig()
    with start_workers(1) as workers:
        return read_pairs(sources, cleaning, workers, output, bool)


def test_json_lines_have_keys(tmp_path: Path) -> None:
    path = plain(
        tmp_path / "a.jsonl",
        b'{"en": "Hi.", "de": "Hallo!", "id": 1}\n{"de": "Lauf, B\\u00e4r!", "en": "Run!"}\n',
    )
    assert pairs(path, "jsonl") == PAIRS
    assert pairs(path, "jsonl", src="de") == [(tgt, src) for src, tgt in PAIRS]
    nested = gzipped(
        tmp_path / "b.jsonl",
        b'{"translation": {"en": "Hi.", "de": "Hallo!"}, "x": {"a.b": "no", "y": "Hey"}}\n',
    )
    assert pairs(nested, "jsonl") == PAIRS[:1]
    assert pairs(nested, "jsonl", {"en": "x.y", "de": "translation.de"}) == [("Hey", "Hallo!")]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{'en': 1}", r"is not JSON \(Expecting property name .*\)"),
        (b'"Hi."', r"has no text under en \(it is no object\)"),
        (b'{"en": "Hi.", "de": null}', r"has no text under de \(its keys are en, de\)"),
    ],
)
def test_bad_json_is_explained(tmp_path: Path, line: bytes, message: str) -> None:
    with pytest.raises(NoPairError, match=message):
        pairs(plain(tmp_path / "a.jsonl", line), "jsonl")
    no_row = rf"a\.jsonl: no row can be used: line 1 {message}, expected a JSON object with en and"
    with pytest.raises(DataError, match=rf"{no_row} de in each line; check"):
        read(tmp_path / "a.jsonl", "jsonl")


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_json_array_is_read(tmp_path: Path, indent: int | None, encoding: str) -> None:
    records = [{"translation": dict(zip(("en", "de"), pair, strict=True))} for pair in PAIRS]
    text = json.dumps(records, ensure_ascii=False, indent=indent)
    assert pairs(plain(tmp_path / "a.json", f"\n{text}\n".encode(encoding)), "jsonl") == PAIRS


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'[{"en": "Hi.", "de": "Hal', r"begins as a JSON array, but is none \(Unterminated.*\)"),
        (
            b'["Hi.", "Hallo!"]\n["Run!", "Lauf!"]',
            r"but is none \(Extra data: line 2 column 1 .*\)",
        ),
        (b'[{"en": "Sch\xf6n"}]', r"but is none \('utf-8' codec can't decode .*\)"),
        (b"[" * 10**5, r"but is none \(.*\)"),
        (b"[" + b" " * 200_000, "is a JSON array of more than 100,000 bytes; write .*jq -c"),
    ],
)
def test_an_array_that_cannot_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, message: str
) -> None:
    monkeypatch.setattr(record_sources, "MAX_ARRAY_BYTES", 100_000)
    with pytest.raises(DataError, match=rf"a\.json: .*{message}"):
        pairs(plain(tmp_path / "a.json", content), "jsonl")


def test_blank_lines_are_no_records(tmp_path: Path) -> None:
    line = b'{"en": "Hi.", "de": "Hallo!"}\n'
    path = plain(tmp_path / "a.jsonl", b"\n" + line + b"  \n" + line + b"\r\n\n")
    for is_strict in (False, True):
        path.with_name("out.tsv").unlink(missing_ok=True)
        tally = read(path, "jsonl", strict=is_strict)
        assert (tally.read, tally.dropped.total()) == (2, 0)


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
    assert pairs(nested, "parquet", {"en": "translation.en", "de": "translation.de"}, "de") == [
        (tgt, src) for src, tgt in PAIRS
    ]
    pq.write_table(
        pa.table({"en": ["Hi.", "a"], "de": ["Hallo!", None]}), tmp_path / "empty.parquet"
    )
    assert read(tmp_path / "empty.parquet", "parquet").dropped == {reading.EMPTY_TARGET: 1}


def test_parquet_that_cannot_be_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"en": ["Hi."], "de": [1], "fr": ["Salut !"]}), path)
    whole = path.read_bytes()
    plain(tmp_path / "b.parquet", whole[:-20])
    plain(tmp_path / "d.parquet", whole[:-20] + b"\xff" * 8 + whole[-12:])
    advice = "set `columns` to two of its columns of text: en, fr"
    for name, message in {
        "a": f"has no column de of text; {advice}",
        "b": "is truncated, damaged or no Parquet file",
        "c": "no such file",
        "d": r"cannot be read \(Couldn't deserialize thrift: [^\n]*\)$",
    }.items():
        with pytest.raises(DataError, match=rf"{name}\.parquet: {message}"):
            pairs(tmp_path / f"{name}.parquet", "parquet")
    monkeypatch.setattr(record_sources, "MAX_ROW_GROUP_BYTES", 1)
    message = "row group 1 is too large; write it again with groups of a million rows"
    with pytest.raises(DataError, match=message):
        pairs(path, "parquet", {"en": "en", "de": "fr"})


@pytest.mark.parametrize("pack", [plain, *PACKERS])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_translation_memories_have_languages(tmp_path: Path, pack: Packer, encoding: str) -> None:
    path = pack(tmp_path / "a.tmx", TMX.replace("{encoding}", encoding).encode(encoding))
    assert pairs(path, "tmx") == PAIRS
    assert pairs(path, "tmx", src="de") == [(tgt, src) for src, tgt in PAIRS]


def test_a_unit_without_a_language_is_dropped(tmp_path: Path) -> None:
    unit = "<tu><tuv xml:lang='en'><seg>a</seg></tuv></tu>"
    path = plain(
        tmp_path / "a.tmx",
        TMX.replace("{encoding}", "utf-8").replace("<body>", f"<body>{unit}").encode(),
    )
    assert read(path, "tmx").dropped == {reading.EMPTY_TARGET: 1}


def bomb(levels: int) -> str:
    entities = "".join(
        f'<!ENTITY e{level} "{f"&e{level - 1};" * 10}">' for level in range(1, levels)
    )
    return (
        f'<!DOCTYPE tmx [<!ENTITY e0 "ha">{entities}]><tmx><tu><tuv '
        f'lang="en"><seg>&e{levels - 1};</seg></tuv></tu></tmx>'
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            TMX.replace("{encoding}", "utf-8")[:-30],
            r"is not well-formed XML after unit 1 \(.*\); repair it, or export it again",
        ),
        ("<html><p></html>", r"is not well-formed XML after unit 0 \(mismatched tag.*\)"),
        (
            '<?xml version="1.0" encoding="UTFF-8"?><tmx/>',
            r"has an encoding that cannot be read \(.*UTFF-8\); save it as UTF-8",
        ),
        (
            '<?xml version="1.0" encoding="shift_jis"?><tmx/>',
            r"has an encoding that cannot be read \(multi-byte encodings",
        ),
        ("<html></html>", r"has no text in en; its languages are: none"),
        (
            TMX.replace("{encoding}", "utf-8").replace("de", "nl"),
            r"has no text in de; its languages are: en, en-us, fr, nl, nl-at",
        ),
        (bomb(10), r"defines entities, which can stand for gigabytes \(.*\); remove its DOCTYPE"),
        (
            "<tmx><!-- " + "x" * 5000,
            r"has an element or a comment of more than 1,000 bytes; it is no translation memory",
        ),
        (
            f"<tmx><tu><tuv lang='en'><seg>{'<hi>x</hi>' * 3000}",
            r"unit 1 has more than 1,000 characters",
        ),
    ],
)
def test_other_xml_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str, message: str
) -> None:
    if "1,000" in message:
        monkeypatch.setattr(record_sources, "MAX_LINE_BYTES", 1000)
    path = plain(tmp_path / "a.tmx", content.encode())
    with pytest.raises(DataError, match=rf"a\.tmx: {message}"):
        pairs(path, "tmx")


@pytest.mark.parametrize(("kind", "package"), [("parquet", "pyarrow"), ("tmx", "defusedxml")])
def test_missing_packages_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Any, package: str
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, package, None)
    message = rf'format {kind} needs the package {package}; run: pip install "nmt\[formats\]"'
    with pytest.raises(DataError, match=message):
        pairs(plain(tmp_path / "a", b"x"), kind)
