"""`nmt init`: starter projects that prepare, and the errors of a user's data."""

import json
import os
from pathlib import Path

import pytest

from nmt.commands import prepare
from nmt.config.load import load_config
from tests import toy
from tests.conftest import Run


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, the current one."""
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
        assert f"\n{row}\n" in result.out
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


def test_a_table_with_commas_becomes_one_with_tabs(nmt: Run, folder: Path) -> None:
    rows = "".join(
        f'{i},"{de}\nJa, ""ja"".","{en}\tYes, yes."\n'
        for i, (en, de) in enumerate(toy.sentence_pairs())
    )
    (folder / "pairs.csv").write_text(f"id,German,English\n{rows}", encoding="utf-8")
    assert nmt("init", "x", "--data", "pairs.csv").status == 0
    lines = Path("x/x.tsv").read_text(encoding="utf-8").splitlines()
    assert lines[:2] == [
        "id\tGerman\tEnglish",
        '0\tDer Hund sieht den Hund. Ja, "ja".\tThe dog sees the dog. Yes, yes.',
    ]
    data = load_config(Path("x/x.yaml")).data
    assert (data.direction, data.source.path, data.source.columns) == (
        "de-en",
        Path("x.tsv"),
        {"de": "German", "en": "English"},
    )


def test_two_files(nmt: Run, folder: Path) -> None:
    Path("x").mkdir()
    for name, side in (("en", 0), ("de", 1)):
        lines = (f"{pair[side]}\n" for pair in toy.sentence_pairs())
        Path(f"x/train.{name}").write_text("".join(lines), encoding="utf-8")
    result = nmt("init", "x", "--data", "x/train.en", "--data", "x/train.de")
    assert "languages   en, de\n" in result.out
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


def test_the_schema_is_printed_without_a_folder(nmt: Run) -> None:
    result = nmt("init", "--schema")
    assert (result.status, result.err) == (0, "")
    assert json.loads(result.out)["title"] == "Configuration of nmt"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (
            ["--direction", "german"],
            "--direction german: must be source and target language codes, for example en-de",
        ),
        (
            ["--direction", "en-fr"],
            "the sample has English and German; name your own pairs with --data",
        ),
        (["--data", "none.tsv"], "none.tsv: no such file"),
        (
            ["--data", "few.tsv"],
            "few.tsv: has 3 pairs; training needs at least 200, and better some thousands",
        ),
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
    toy.write_table(folder / "unclear.tsv", [(f"Xqz {i}.", f"Zzp {i}.") for i in range(300)])
    result = nmt("init", "x", *words)
    assert (result.status, result.out) == (1, "")
    assert text in result.err
    assert not Path("x").exists()
