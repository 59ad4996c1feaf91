"""`nmt init`: what it sees in files of sentence pairs, starter projects that prepare, and the
errors of a user's data.
"""

import gzip
import json
import os
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

from nmt.commands import prepare
from nmt.config.load import load_config
from nmt.errors import DataError
from nmt.extras.init import measurement
from nmt.extras.init.inspection import PairFiles, inspect
from nmt.extras.init.languages import has_no_spaces, language_of_name
from tests import toy
from tests.conftest import Run

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


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def prepared_pairs(config: Path, *overrides: str) -> int:
    manifest = prepare.run(
        load_config(config, ["data.workers=1", *overrides]), Path("prepared"), progress=False
    )
    return sum(split["pairs"] for split in manifest["splits"].values())


def test_the_sample(nmt: Run, folder: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = nmt("init", "first")
    assert (result.status, result.err) == (0, "")
    found = "data        the sample that comes with nmt: 6,000 English-German pairs"
    assert result.out.startswith(found)
    assert sorted(os.listdir("first")) == ["sample.tsv", "sample.yaml", "schema.json"]
    schema = json.loads(Path("first/schema.json").read_text(encoding="utf-8"))
    assert schema["title"] == "Configuration of nmt"
    config, original = map(load_config, (Path("first/sample.yaml"), root / "configs/sample.yaml"))
    assert config.model == original.model
    monkeypatch.chdir("first")
    assert prepared_pairs(Path("sample.yaml"), "data.max_pairs=900") == 900
    assert nmt("init", "reverse", "--direction", "de-en").status == 0
    assert load_config(Path("reverse/sample.yaml")).data.direction == "de-en"


def test_a_table(nmt: Run, folder: Path) -> None:
    toy.write_table(folder / "pairs.tsv", toy.sentence_pairs())
    result = nmt("init", "My project!", "--data", "pairs.tsv")
    assert result.out.startswith("data        pairs.tsv: 588 pairs, separated by tabs, no header\n")
    for row in ("direction   en-de", "written     My project!/My-project-.yaml"):
        assert f"\n{row}" in result.out
    path = folder / "My project!" / "My-project-.yaml"
    assert path.read_text(encoding="utf-8").startswith(
        "# yaml-language-server: $schema=schema.json\n# Written by `nmt init` for 588 pairs."
    )
    source = load_config(path).data.source
    assert (source.path, source.columns) == (folder / "pairs.tsv", {"en": 1, "de": 2})
    assert prepared_pairs(path) == 588


@pytest.mark.parametrize(
    ("direction", "columns"),
    [("de-en", {"en": 1, "de": 2}), ("sv-da", {"sv": 1, "da": 2}), ("fr-de", {"fr": 1, "de": 2})],
)
def test_the_direction_decides(
    nmt: Run, folder: Path, direction: str, columns: dict[str, int]
) -> None:
    toy.write_table(folder / "pairs.tsv", toy.sentence_pairs())
    assert nmt("init", "x", "--data", "pairs.tsv", "--direction", direction).status == 0
    data = load_config(Path("x/x.yaml")).data
    assert (data.direction, data.source.columns) == (direction, columns)


def test_a_table_with_commas(nmt: Run, folder: Path) -> None:
    rows = "".join(
        f'{i},"{de}\nJa, ""ja"".","{en}\tYes, yes."\n'
        for i, (en, de) in enumerate(toy.sentence_pairs())
    )
    (folder / "pairs.csv").write_text(f"id,German,English\n{rows}", encoding="utf-8")
    result = nmt("init", "x", "--data", "pairs.csv")
    assert "pairs.csv: 588 pairs, separated by commas, with header\n" in result.out
    data = load_config(Path("x/x.yaml")).data
    assert (data.direction, data.source.format, data.source.columns) == (
        "de-en",
        "csv",
        {"de": "German", "en": "English"},
    )
    assert prepared_pairs(Path("x/x.yaml")) == 588


def test_two_files(nmt: Run, folder: Path) -> None:
    Path("x").mkdir()
    for name, side in (("en", 0), ("de", 1)):
        lines = (f"{pair[side]}\n" for pair in toy.sentence_pairs())
        Path(f"x/train.{name}").write_text("".join(lines), encoding="utf-8")
    result = nmt("init", "x", "--data", "x/train.en", "--data", "x/train.de")
    assert "languages   1 en " in result.out
    assert load_config(Path("x/x.yaml")).data.source.files == {
        "en": Path("train.en"),
        "de": Path("train.de"),
    }


def test_sizes_grow_with_the_data_up_to_the_recommended_model(
    nmt: Run, folder: Path, root: Path
) -> None:
    for count in (2, 90):
        pairs = [
            (f"{src} {i}", f"{tgt} {i}") for i in range(count) for src, tgt in toy.sentence_pairs()
        ]
        toy.write_table(folder / f"{count}.tsv", pairs)
        assert nmt("init", str(count), "--data", f"{count}.tsv").status == 0
    small, large = (load_config(Path(f"{count}/{count}.yaml")) for count in (2, 90))
    assert small.model.decoder.hidden_size < large.model.decoder.hidden_size
    assert small.tokenizer.size < large.tokenizer.size
    assert (small.data.split.dev, large.data.split.dev) == (1176 // 15, 2000)
    recommended = load_config(root / "configs" / "tatoeba.yaml")
    assert (large.model, large.tokenizer) == (recommended.model, recommended.tokenizer)
    same = recommended.training.model_dump(include={"epochs", "validation_pairs", "log_every"})
    assert large.training.model_copy(update=same) == recommended.training


def test_nothing_is_replaced(nmt: Run, folder: Path) -> None:
    assert nmt("init", "x").status == 0
    Path("x/sample.tsv").write_text("mine\n")
    text = "nmt: x/sample.yaml: exists already, nothing was changed; name another folder\n"
    assert nmt("init", "x").err == text
    assert Path("x/sample.tsv").read_text() == "mine\n"
    assert nmt("init", "x/sample.tsv").err == "nmt: x/sample.tsv: is a file; name a folder\n"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (
            ["--direction", "german"],
            "--direction german: must be two language codes, for example en-de or en-fr_CA",
        ),
        (
            ["--direction", "en-fr"],
            "the sample has English and German; name your own pairs with --data",
        ),
        (["--data", "none.tsv"], "none.tsv: no such file"),
        (
            ["--data", "few.tsv", "--direction", "en-de"],
            "few.tsv: has 3 pairs; training needs at least 200, and better some thousands",
        ),
        (["--data", "unlike.tsv", "--direction", "en-de"], "unlike.tsv: has 0 pairs; training"),
        (
            ["--data", "unclear.tsv"],
            (
                "the languages are not clear (unknown and unknown); name them with --direction, "
                "for example en-de"
            ),
        ),
        (
            ["--data", "few.tsv", "--data", "few.tsv", "--data", "few.tsv"],
            "--data: give one table, or two files with a sentence per line",
        ),
    ],
)
def test_errors_write_nothing(nmt: Run, folder: Path, words: list[str], text: str) -> None:
    toy.write_table(folder / "few.tsv", [(f"Yes {i}.", f"Ja {i}.") for i in "abc"])
    toy.write_table(folder / "unlike.tsv", [(f"Yes {i}{' so' * 99}.", f"Ja {i}.") for i in "abc"])
    toy.write_table(folder / "unclear.tsv", [(f"Xqz {i}.", f"Zzp {i}.") for i in range(300)])
    result = nmt("init", "x", *words)
    assert (result.status, result.out) == (1, "")
    assert text in result.err
    assert not Path("x").exists()


def write(path: Path, rows: Sequence[Sequence[str]], separator: str = "\t") -> Path:
    def quote(cell: str) -> str:
        return cell if separator == "\t" else '"' + cell.replace('"', '""') + '"'

    path.write_text(
        "".join(separator.join(map(quote, row)) + "\n" for row in rows), encoding="utf-8"
    )
    return path


def look_at(path: Path) -> PairFiles:
    return inspect([path])


def columns(files: PairFiles) -> list[tuple[int | str, str | None]]:
    return [(column.key, column.language) for column in files.columns]


@pytest.mark.parametrize("separator", ["\t", ","])
def test_a_table_with_any_separator(tmp_path: Path, separator: str) -> None:
    files = look_at(write(tmp_path / "pairs.txt", PAIRS, separator))
    assert files.format == ("tsv" if separator == "\t" else "csv")
    assert columns(files) == [(1, "en"), (2, "de")]
    assert files.columns[0].example == "He was not there when I cam..."


def test_the_columns_of_text_among_others(tmp_path: Path) -> None:
    attribution = "CC-BY 2.0 (France) Attribution: tatoeba.org #1 (CK) and #2 (the man)"
    rows = [(str(i), de, "greeting", en, attribution) for i, (en, de) in enumerate(PAIRS)]
    assert columns(look_at(write(tmp_path / "pairs.tsv", rows))) == [
        (2, "de"),
        (4, "en"),
    ]


@pytest.mark.parametrize(
    ("header", "languages"),
    [
        (("English", "German"), ["en", "de"]),
        (("Englisch", "Deutsch"), ["en", "de"]),
        (("source", "target"), ["en", "de"]),
        (("en", "de"), ["en", "de"]),
        (("fr", "de"), ["fr", "de"]),  # the name decides the language
    ],
)
def test_a_header_row(tmp_path: Path, header: tuple[str, str], languages: list[str]) -> None:
    files = look_at(write(tmp_path / "pairs.tsv", [header, *PAIRS]))
    assert columns(files) == [*zip(header, languages, strict=True)]


def test_a_header_that_names_one_column_only(tmp_path: Path) -> None:
    rows = [(f"Das ist das Haus {i}.", f"This is the house {i}.") for i in range(20)]
    files = look_at(write(tmp_path / "pairs.csv", [("de", ""), *rows], ","))
    assert columns(files) == [("de", "de"), (2, "en")]


def test_packed_tables(tmp_path: Path) -> None:
    table = write(tmp_path / "pairs.tsv", PAIRS)
    (tmp_path / "pairs.tsv.gz").write_bytes(gzip.compress(table.read_bytes()))
    with zipfile.ZipFile(tmp_path / "deu-eng.zip", "w") as archive:
        archive.write(table, "deu.txt")
        archive.writestr("_about.txt", "notes")
    for name in ("pairs.tsv.gz", "deu-eng.zip"):
        assert columns(look_at(tmp_path / name)) == [(1, "en"), (2, "de")]


def test_languages_of_two_files(tmp_path: Path) -> None:
    for name, side in (("a.txt", 0), ("b.txt", 1)):
        (tmp_path / name).write_text("".join(f"{pair[side]}\n" for pair in PAIRS), encoding="utf-8")
    files = inspect([tmp_path / "a.txt", tmp_path / "b.txt"])
    assert [column.language for column in files.columns] == ["en", "de"]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "is empty"),
        (
            b"One sentence.\nAnother, shorter.\n",
            r"no columns found \(tried commas, semicolons, bars, tabs\)",
        ),
        (b"1\t2\n3\t4\n", "has no two columns of text"),
        (b"a\tb\nSch\xf6n\tb\n", r"line 2: not UTF-8"),
        ("One\tEins\n".encode("utf-16-le"), "is UTF-16"),
        (b"\n\n", "no columns found"),
    ],
)
def test_files_that_are_no_tables(tmp_path: Path, content: bytes, text: str) -> None:
    (tmp_path / "pairs.tsv").write_bytes(content)
    with pytest.raises(DataError, match=text):
        look_at(tmp_path / "pairs.tsv")


def test_languages_have_names() -> None:
    names = ("de", " EN ", "German", "chinese", "source", "")
    assert [*map(language_of_name, names)] == ["de", "en", "de", "zh", None, None]
    names = ("English (US)", "Target (de)", "text_de", "deu_Latn", "pt_br", "Wi-Fi")
    assert [*map(language_of_name, names)] == ["en", "de", "de", "deu", "pt", None]


def test_a_text_with_many_translations(tmp_path: Path) -> None:
    rows = [(ENGLISH[i // 12], f"{GERMAN[i // 12]} {i}", "web") for i in range(48)]
    files = look_at(write(tmp_path / "pairs.tsv", rows))
    assert [column.key for column in files.columns] == [1, 2]


def as_tmx(pairs: Sequence[tuple[str, str]]) -> str:
    units = "".join(
        f'<tu><tuv xml:lang="de-AT"><seg>{de}</seg></tuv>'
        f'<tuv xml:lang="en-US"><seg>{en}</seg></tuv></tu>'
        for en, de in pairs
    )
    return f'<?xml version="1.0"?>\n<tmx><header srclang="en-US"/><body>{units}</body></tmx>'


def as_json(pairs: Sequence[tuple[str, str]], *, is_array: bool) -> str:
    rows = [
        {"id": f"no-{i}", "translation": {"en": en, "de": de}} for i, (en, de) in enumerate(pairs)
    ]
    return json.dumps(rows, indent=1) if is_array else "\n".join(map(json.dumps, rows))


def as_po(pairs: Sequence[tuple[str, str]]) -> str:
    header = 'msgid ""\nmsgstr "Language: de\\n"\n\n'
    return header + "".join(f'msgid "{src}"\nmsgstr "{tgt}"\n\n' for src, tgt in pairs)


def as_xliff(pairs: Sequence[tuple[str, str]]) -> str:
    units = "".join(
        f'<trans-unit id="{number}"><source>{src}</source><target>{tgt}</target></trans-unit>\n'
        for number, (src, tgt) in enumerate(pairs)
    )
    start = '<xliff version="1.2"><file source-language="en-US" target-language="de"><body>'
    return f"{start}\n{units}</body></file></xliff>"


def pack(folder: Path, kind: str, pairs: Sequence[tuple[str, str]]) -> Path:
    path = folder / f"pairs.{kind}"
    if kind == "parquet":
        table = pyarrow.table({"en": [en for en, _ in pairs], "German": [de for _, de in pairs]})
        parquet.write_table(table, path)
    elif kind == "zip":
        texts = {f"News.de-en.{name}": side for name, side in (("en", 0), ("de_AT", 1))}
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("README", "News.\n")
            archive.writestr("News.de-en.ids", "1\n")
            for name, side in texts.items():
                archive.writestr(name, "".join(f"{pair[side]}\n" for pair in pairs))
    else:
        writers = {"tmx": as_tmx, "po": as_po, "xliff": as_xliff}
        is_array = kind == "json"
        text = writers[kind](pairs) if kind in writers else as_json(pairs, is_array=is_array)
        path.write_text(text, encoding="utf-16" if kind == "tmx" else "utf-8")
    return path


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("tmx", "tmx"),
        ("jsonl", "jsonl"),
        ("json", "jsonl"),
        ("parquet", "parquet"),
        ("zip", "lines"),
        ("po", "po"),
        ("xliff", "xliff"),
    ],
)
def test_each_format_that_prepare_reads(nmt: Run, folder: Path, kind: str, name: str) -> None:
    path = pack(folder, kind, toy.sentence_pairs())
    if kind != "zip":
        path = path.rename(folder / "unnamed")  # the content says the format
    result = nmt("init", "x", "--data", path)
    assert (result.status, result.err) == (0, "")
    data = load_config(Path("x/x.yaml")).data
    assert (data.source.format, data.direction) == (name, "en-de")
    assert "588 pairs" in result.out


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b'<?xml version="1.0"?>\n<xliff version="1.2">', "is not well-formed XML"),
        (b"<!DOCTYPE html>\n<html>", "is an HTML page"),
        (b"%PDF-1.7\n\0\0", "is a PDF document"),
        (b'# Ada\nmsgid ""\nmsgstr ""\n', "has no two columns of text"),
        (b"1\n00:00:01,000 --> 00:00:02,000\nHello.\n", "is a file of subtitles"),
        (b'[["Yes.", "Ja."]]', "is JSON, but has no object for each pair"),
        (b'{\n "pairs": [\n', "is JSON, but has no object for each pair"),
        (b"\0\1\2\3" * 9, "is UTF-16 or no text"),
    ],
)
def test_other_formats_are_named(tmp_path: Path, content: bytes, text: str) -> None:
    (tmp_path / "pairs").write_bytes(content)
    with pytest.raises(DataError, match=text):
        look_at(tmp_path / "pairs")


def test_documents_are_named(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "pairs.zip", "w") as archive:
        archive.writestr("[Content_Types].xml", "")
    with pytest.raises(DataError, match="is an office document"):
        look_at(tmp_path / "pairs.zip")


def test_a_file_with_three_languages_needs_a_direction(tmp_path: Path) -> None:
    rows = [(en, de, f"Oui {i}") for i, (en, de) in enumerate(PAIRS)]
    path = write(tmp_path / "pairs.tsv", [("en", "de", "fr"), *rows])
    with pytest.raises(DataError, match="has en, de and fr; name two of them with --direction"):
        look_at(path)
    assert columns(inspect([path], ("fr", "de"))) == [("de", "de"), ("fr", "fr")]


def test_a_column_called_target_is_the_second(tmp_path: Path) -> None:
    rows = [(str(i), de, en) for i, (en, de) in enumerate(PAIRS)]
    files = look_at(write(tmp_path / "pairs.tsv", [("id", "target", "source"), *rows]))
    assert columns(files) == [("source", "en"), ("target", "de")]


def test_the_pairs_of_a_large_file_are_estimated(
    nmt: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measurement, "MAX_CLEANED", 4000)
    rows = [pair for i in range(9) for pair in [(f"{i}.", ""), *toy.sentence_pairs()] * 2]
    toy.write_table(folder / "pairs.tsv", rows)
    result = nmt("init", "x", "--data", "pairs.tsv")
    assert "pairs.tsv: about 2,000 pairs" in result.out
    assert "of the first 4,096: " in result.out


def test_a_language_that_another_resembles_is_named(nmt: Run, folder: Path) -> None:
    pairs = [
        (f"{en} {i}", f"{hr} {i}")
        for i in range(60)
        for en, hr in zip(
            ENGLISH,
            (
                "Pas je bio u kući, ali ga nije vidio.",
                "Što želiš i zašto si ovdje?",
                "Nije bio tamo kad sam došao.",
                "Rekla mi je da ne može sa mnom.",
            ),
            strict=True,
        )
    ]
    toy.write_table(folder / "pairs.tsv", pairs)
    result = nmt("init", "x", "--data", "pairs.tsv")
    assert "en-hr (guessed from the texts, which may also be sr, bs or sh; if" in result.out


def test_splits_are_of_different_pairs(nmt: Run, folder: Path) -> None:
    toy.write_table(folder / "pairs.tsv", toy.sentence_pairs() * 4)
    result = nmt("init", "x", "--data", "pairs.tsv")
    assert "588 pairs" in result.out
    assert "dropped     1,764 of 2,352: 1,764 exact duplicate" in result.out
    assert load_config(Path("x/x.yaml")).data.split.dev == 50


@pytest.mark.parametrize(
    ("direction", "expected"), [("en-de-AT", "en-de"), ("en_GB-de", "en-de"), ("de_at-en", "de-en")]
)
def test_regions(nmt: Run, folder: Path, direction: str, expected: str) -> None:
    toy.write_table(folder / "pairs.tsv", toy.sentence_pairs())
    assert nmt("init", "x", "--data", "pairs.tsv", "--direction", direction).status == 0
    assert load_config(Path("x/x.yaml")).data.direction == expected


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


def test_no_whole_words_of_a_text_without_spaces(nmt: Run, folder: Path) -> None:
    pairs = [(f"猫{chr(0x4E00 + i)}が好きです。", f"{ENGLISH[i % 4]} {i}") for i in range(300)]
    toy.write_table(folder / "pairs.tsv", pairs)
    assert nmt("init", "x", "--data", "pairs.tsv").status == 0
    config = load_config(Path("x/x.yaml"))
    assert (config.data.direction, config.model.lexical_words) == ("ja-en", 0)
    assert config.tokenizer.kind == "unigram"
