"""`nmt init`: starter projects that prepare, for the sample, the pairs of a user, and the
fine-tuning of a run; and the errors of a user's data.
"""

import os
import shutil
from pathlib import Path

import pytest

from nmt.commands import prepare
from nmt.config.load import load_config
from nmt.config.schema import Config
from nmt.extras.init import measurement
from nmt.extras.init.proposal import DROPOUT
from nmt.run.folder import write_run_config
from tests import toy
from tests.conftest import Run
from tests.evaluation.test_scores import has_mecab
from tests.extras.init.files import FORMATS, table
from tests.extras.init.test_pairs import ENGLISH


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def start(
    nmt: Run, pairs: list[tuple[str, str]], *words: object, name: str = "x"
) -> tuple[str, Config]:
    """What it prints for a table of these pairs, and the configuration that it writes."""
    toy.write_table(Path("pairs.tsv"), pairs)
    result = nmt("init", name, "--data", "pairs.tsv", *words)
    assert result.status == 0
    return result.out, load_config(Path(name, f"{name}.yaml"))


def prepared_pairs(config: Path, *overrides: str) -> int:
    manifest = prepare.run(
        load_config(config, ["data.workers=1", *overrides]), Path("prepared"), progress=False
    )
    return sum(split["pairs"] for split in manifest["splits"].values())


def test_the_sample(nmt: Run, here: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = "data        the sample that comes with nmt: 6,000 English-German pairs"
    assert nmt.prints("init", "first").startswith(found)
    assert sorted(os.listdir("first")) == ["sample.tsv", "sample.yaml", "schema.json"]
    config, original = map(load_config, (Path("first/sample.yaml"), root / "configs/sample.yaml"))
    assert config.model == original.model
    monkeypatch.chdir("first")
    assert prepared_pairs(Path("sample.yaml"), "data.max_pairs=900") == 900


def test_what_it_finds_is_proposed_to_be_dropped(nmt: Run, here: Path) -> None:
    wrong = [(src, f"<p>{tgt}</p>") for src, tgt in toy.MEMORY[:5]]
    out, config = start(nmt, [*toy.sentence_pairs(), *wrong])
    assert (
        '\nsuspicious  about 0.8% of the pairs have HTML on one side only, such as "Now the' in out
    )
    assert config.data.cleaning.model_dump(exclude_defaults=True) == {"markup": "drop"}


def test_a_table(nmt: Run, here: Path) -> None:
    toy.write_table(here / "pairs.tsv", toy.sentence_pairs())
    result = nmt("init", "My project!", "--data", "pairs.tsv")
    assert result.out.startswith("data        pairs.tsv: 588 pairs, separated by tabs, no header\n")
    for row in ("direction   en-de", "written     My project!/My-project-.yaml"):
        assert f"\n{row}" in result.out
    path = here / "My project!" / "My-project-.yaml"
    assert path.read_text(encoding="utf-8").startswith(
        "# yaml-language-server: $schema=schema.json\n# Written by `nmt init` for 588 pairs."
    )
    source = load_config(path).data.source
    assert (source.path, source.columns) == (here / "pairs.tsv", {"en": 1, "de": 2})
    assert prepared_pairs(path) == 588


@pytest.mark.parametrize(
    ("words", "direction", "columns"),
    [
        ("de-en", "de-en", {"en": 1, "de": 2}),
        ("sv-da", "sv-da", {"sv": 1, "da": 2}),
        ("fr-de", "fr-de", {"fr": 1, "de": 2}),
        ("en-de-AT", "en-de", {"en": 1, "de": 2}),
        ("en_GB-de", "en-de", {"en": 1, "de": 2}),
        ("de_at-en", "de-en", {"en": 1, "de": 2}),
    ],
)
def test_the_direction_decides(
    nmt: Run, here: Path, words: str, direction: str, columns: dict[str, int]
) -> None:
    _, config = start(nmt, toy.sentence_pairs(), "--direction", words)
    assert (config.data.direction, config.data.source.columns) == (direction, columns)


def test_a_table_with_commas(nmt: Run, here: Path) -> None:
    rows = [
        (str(i), f'{de}\nJa, "ja".', f"{en}\tYes, yes.")
        for i, (en, de) in enumerate(toy.sentence_pairs())
    ]
    Path("pairs.csv").write_bytes(table([("id", "German", "English"), *rows], ","))
    result = nmt("init", "x", "--data", "pairs.csv")
    assert "pairs.csv: 588 pairs, separated by commas, with header\n" in result.out
    data = load_config(Path("x/x.yaml")).data
    assert (data.direction, data.source.format, data.source.columns) == (
        "de-en",
        "csv",
        {"de": "German", "en": "English"},
    )
    assert prepared_pairs(Path("x/x.yaml")) == 588


def test_two_files(nmt: Run, here: Path) -> None:
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


def test_several_files_are_one_source(nmt: Run, here: Path) -> None:
    pairs = toy.sentence_pairs()
    Path("po").mkdir()
    for name, part in {"a": pairs[:300], "b": pairs[300:]}.items():
        Path("po", f"{name}.po").write_bytes(FORMATS["po"](part))
    for given in (["po"], ["po/*.po"], ["po/a.po", "po/b.po"]):
        name = f"x{len(given)}{'*' in given[0]}"
        options = [word for path in given for word in ("--data", path)]
        printed = nmt.prints("init", name, *options)
        assert (
            "588 pairs, format po\nfiles       texts of each file: po/a.po 300, po/b.po 288"
            in printed
        )
        assert prepared_pairs(Path(name, f"{name}.yaml")) == 588
        shutil.rmtree("prepared")


@pytest.mark.parametrize("kind", FORMATS)
def test_each_format_that_prepare_reads(nmt: Run, here: Path, kind: str) -> None:
    name = "pairs.zip" if kind == "zip" else "unnamed"  # the content says the other formats
    Path(name).write_bytes(FORMATS[kind](toy.sentence_pairs()))
    assert "588 pairs" in nmt.prints("init", "x", "--data", name)
    data = load_config(Path("x/x.yaml")).data
    names = {"json": "jsonl", "zip": "lines"}
    assert (data.source.format, data.direction) == (names.get(kind, kind), "en-de")


def test_sizes_grow_with_the_data_up_to_the_recommended_model(
    nmt: Run, here: Path, root: Path
) -> None:
    pairs = toy.sentence_pairs()
    (_, small), (_, large) = (
        start(nmt, [(f"{a} {i}", f"{b} {i}") for i in range(count) for a, b in pairs], name=name)
        for name, count in (("small", 2), ("large", 90))
    )
    assert small.model.decoder.hidden_size < large.model.decoder.hidden_size
    assert small.tokenizer.size < large.tokenizer.size
    assert (small.data.split.dev, large.data.split.dev) == (1176 // 15, 2000)
    recommended = load_config(root / "configs" / "tatoeba.yaml")
    assert (large.model, large.tokenizer) == (recommended.model, recommended.tokenizer)
    others = {"epochs", "validation_pairs", "validate_every", "log_every"}
    same = recommended.training.model_dump(include=others)
    assert large.training.model_copy(update=same) == recommended.training


def test_the_pairs_of_a_large_file_are_estimated(
    nmt: Run, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measurement, "MAX_CLEANED", 4000)
    rows = [pair for i in range(9) for pair in [(f"{i}.", ""), *toy.sentence_pairs()] * 2]
    out, _ = start(nmt, rows)
    assert "pairs.tsv: about 2,000 pairs" in out
    assert "of the first 4,096: " in out


def test_a_language_that_another_resembles_is_named(nmt: Run, here: Path) -> None:
    croatian = (
        "Pas je bio u kući, ali ga nije vidio.",
        "Što želiš i zašto si ovdje?",
        "Nije bio tamo kad sam došao.",
        "Rekla mi je da ne može sa mnom.",
    )
    out, _ = start(nmt, [(f"{ENGLISH[i % 4]} {i}", f"{croatian[i % 4]} {i}") for i in range(240)])
    assert "en-hr (guessed from the texts, which may also be sr, bs or sh; if" in out


def test_splits_are_of_different_pairs(nmt: Run, here: Path) -> None:
    out, config = start(nmt, toy.sentence_pairs() * 4)
    assert "588 pairs" in out
    assert "dropped     1,764 of 2,352: 1,764 exact duplicate" in out
    assert config.data.split.dev == 50


def test_no_whole_words_of_a_text_without_spaces(nmt: Run, here: Path) -> None:
    pairs = [(f"猫{chr(0x4E00 + i)}が好きです。", f"{ENGLISH[i % 4]} {i}") for i in range(300)]
    out, config = start(nmt, pairs)
    assert (config.data.direction, config.model.lexical_words) == ("ja-en", 0)
    assert config.tokenizer.kind == "unigram"
    assert "nmt[ja]" not in out
    out, _ = start(nmt, pairs, "--direction", "en-ja", name="y")  # BLEU needs the words of Japanese
    assert ("nmt[ja]" in out) == (not has_mecab("ja"))


def test_nothing_is_replaced(nmt: Run, here: Path) -> None:
    assert nmt("init", "x").status == 0
    Path("x/sample.tsv").write_text("mine\n")
    nmt.refuses(
        "nmt: x/sample.yaml: exists already, nothing was changed; name another folder\n",
        "init",
        "x",
    )
    assert Path("x/sample.tsv").read_text() == "mine\n"
    nmt.refuses("nmt: x/sample.tsv: is a file; name a folder\n", "init", "x/sample.tsv")
    # The second file of a pattern without quotes is read as the folder.
    nmt.refuses("(a pattern after --data needs quotes)", "init", "--data", "a", "x/sample.tsv")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (
            ["--direction", "german"],
            "--direction german: must be two language codes, for example en-de or en-fr",
        ),
        (["--data", "none.tsv"], "none.tsv: no such file"),
        (["--data", "a.mo"], "a.mo: is a compiled catalog; name the .po file that it was made"),
        (["--data", "a.pdf"], "a.pdf: is a document without pairs; save its sentences as text"),
        (["--data", "a.XLSX"], "a.XLSX: is a spreadsheet; save its sheet as CSV in UTF-8"),
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
    ],
)
def test_errors_write_nothing(nmt: Run, here: Path, words: list[str], text: str) -> None:
    toy.write_table(here / "few.tsv", [(f"Yes {i}.", f"Ja {i}.") for i in "abc"])
    toy.write_table(here / "unlike.tsv", [(f"Yes {i}{' so' * 99}.", f"Ja {i}.") for i in "abc"])
    toy.write_table(here / "unclear.tsv", [(f"Xqz {i}.", f"Zzp {i}.") for i in range(300)])
    nmt.refuses(text, "init", "x", *words)
    assert not Path("x").exists()


# --from


def test_fine_tuning(nmt: Run, here: Path, run: Path) -> None:
    new = [(f"Now {src}", f"Jetzt {tgt}") for src, tgt in toy.sentence_pairs()[:200]]
    out, config = start(nmt, new, "--from", run)
    assert "the others for training; 70% of the training pairs are of the run\n" in out
    parent = load_config(run / "config.yaml")
    assert (config.model.dropout, config.model.src_embedding_dropout) == (0.5, 0.3)
    rates = {key: getattr(parent.model, key) for key in DROPOUT}
    assert config.model.model_copy(update=rates) == parent.model
    assert config.tokenizer == parent.tokenizer
    assert (config.training.max_steps, config.training.learning_rate.warmup_steps) == (1000, 200)
    assert config.training.start_from == config.vocabulary.like == run
    assert config.training.learning_rate.peak == parent.training.learning_rate.peak == 0.01
    manifest = prepare.run(load_config(Path("x/x.yaml"), ["data.workers=1"]), progress=False)
    assert [*manifest["counts"]["sources"]] == ["general", "memory"]
    assert manifest["counts"]["sources"]["memory"]["kept"] == 200
    words = ("-c", "x/x.yaml", "-q", "--set", "training.max_steps=2")
    assert nmt("train", *words, "--set", "training.validate_every=2").status == 0
    other = ("init", "y", "--data", "pairs.tsv", "--from")
    text = "translates en-de, so it cannot be fine-tuned for en-fr"
    nmt.refuses(text, *other, run, "--direction", "en-fr")
    nmt.refuses("no run here", *other, here)


def test_the_data_of_the_run_is_gone(nmt: Run, here: Path, run: Path) -> None:
    alone = shutil.copytree(run, here / "alone")
    write_run_config(alone, load_config(run / "config.yaml", ["data.prepared=gone"]))
    out, _ = start(nmt, toy.sentence_pairs()[:200], "--from", alone)
    assert "general     none: gone, the data of the run, is not there; prepare it" in out
