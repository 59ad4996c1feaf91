"""Mistakes that users make: each one is caught before training, by a line that names the place and
the remedy.
"""

import gzip
import re
import shutil
import sys
import zipfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from nmt.commands import prepare
from nmt.commands import train as train_command
from nmt.config.load import load
from nmt.data.workers import Workers
from tests.conftest import ROOT, Run

CONFIG = """\
name: toy
data:
  prepared: prepared
  source: {format: tsv, path: pairs.tsv, columns: {en: 1, de: 2}}
  split: {dev: 20, test: 20}
  workers: 1
tokenizer: {kind: characters}
model: {embedding_size: 8, encoder: {hidden_size: 8}, decoder: {hidden_size: 8}, dropout: 0.1}
training: {max_steps: 1, validate_every: 1, validation_pairs: 2, final_pairs: 0, batch: {size: 8}}
decoding: {beam: 1, max_length_ratio: 0.5}
"""
ROWS = [
    line.split("\t")[:2]
    for line in (ROOT / "data/sample/sample.tsv").read_text(encoding="utf-8").splitlines()[:200]
]
MISSING_DEVICE = "cuda" if sys.platform == "darwin" else "mps"
LINES = "data.source={format: lines, files: {en: en.txt, de: de.txt}}"
DEV = [
    f"data.{name}={{format: tsv, path: {name}.tsv, columns: {{en: 1, de: 2}}}}"
    for name in ("dev", "test")
]

Rows = Sequence[Sequence[str]]
Edit = Callable[[], object]


@contextmanager
def threads(_count: int) -> Iterator[Workers]:
    """Workers that start at once."""
    with ThreadPoolExecutor(1) as executor:
        yield Workers(executor, 1)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project that works: data, configuration, prepared data and a run."""
    folder = tmp_path_factory.mktemp("base")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(prepare, "start_workers", threads)
        write()
        write(rows=[[row[0]] for row in ROWS], name="en.txt")
        write(rows=[[row[1]] for row in ROWS], name="de.txt")
        Path("c.yaml").write_text(CONFIG, encoding="utf-8")
        config = load(Path("c.yaml"))
        prepare.run(config, progress=False)
        train_command.run(config, quiet=True)
    return folder


@pytest.fixture
def project(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy of it is the current folder."""
    shutil.copytree(base, tmp_path / "project")
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setattr(prepare, "start_workers", threads)


def write(
    rows: Rows = ROWS, name: str = "pairs.tsv", encoding: str = "utf-8", separator: str = "\t"
) -> None:
    Path(name).write_text("".join(separator.join(row) + "\n" for row in rows), encoding=encoding)


def write_sets(train: Rows, dev: Rows, test: Rows) -> None:
    for name, rows in (("pairs", train), ("dev", dev), ("test", test)):
        write(rows, f"{name}.tsv")


def pack(name: str, content: bytes) -> None:
    with zipfile.ZipFile("x.zip", "w") as archive:
        archive.writestr(name, content)


def cut(path: str) -> None:
    """Only the first half of a file, as of a copy that was interrupted."""
    content = Path(path).read_bytes()
    Path(path).write_bytes(content[: len(content) // 2])


def replace(path: str, old: str, new: str) -> None:
    text = Path(path).read_text(encoding="utf-8")
    assert old in text
    Path(path).write_text(text.replace(old, new), encoding="utf-8")


def config(old: str, new: str, encoding: str = "utf-8") -> Edit:
    """An edit of the configuration."""
    assert old in CONFIG
    return lambda: Path("c.yaml").write_bytes(CONFIG.replace(old, new).encode(encoding))


def both(first: Edit, second: Edit) -> Edit:
    def edit() -> None:
        first()
        second()

    return edit


def nothing() -> None:
    pass


CONFIGURATION: list[tuple[str, Edit, str]] = [
    (
        "typo in a key",
        config("dropout", "droput"),
        "c.yaml: model.droput: unknown key; did you mean model.dropout?",
    ),
    (
        "key in another section",
        config("max_steps: 1", "beam: 3"),
        "training.beam: unknown key; did you mean decoding.beam?",
    ),
    (
        "typo in a value",
        config("hidden_size: 8}, dec", "cell: ltsm}, dec"),
        'model.encoder.cell: "ltsm" is not one of lstm, gru',
    ),
    (
        "dropout above 1",
        config("0.1", "1.5"),
        "c.yaml: model.dropout: must be less than 1; got 1.5",
    ),
    (
        "negative rate",
        config("max_steps: 1", "learning_rate: {peak: -1}"),
        "training.learning_rate.peak: must be more than 0; got -1",
    ),
    (
        "nan",
        config("max_steps: 1", "learning_rate: {peak: .nan}"),
        "training.learning_rate.peak: must be a finite number; got NaN",
    ),
    (
        "infinity",
        config("max_steps: 1", "clip_norm: .inf"),
        "training.clip_norm: must be a finite number; got Infinity",
    ),
    ("decimal comma", config("0.1", "'0,1'"), 'model.dropout: must be a number; got "0,1"'),
    (
        "fraction of a step",
        config("max_steps: 1", "max_steps: 0.5"),
        "training.max_steps: must be a whole number; got 0.5",
    ),
    (
        "negative epochs",
        config("max_steps: 1", "epochs: -1"),
        "training.epochs: must be at least 1; got -1",
    ),
    (
        "vocabulary of 4",
        config("tok", "vocabulary: {max_size: 4}\ntok"),
        "vocabulary.max_size: must be at least 5; got 4",
    ),
    (
        "no units",
        config("hidden_size: 8}, dr", "hidden_size: 0}, dr"),
        "model.decoder.hidden_size: must be at least 1; got 0",
    ),
    (
        "endless layers",
        config("hidden_size: 8}, dr", "layers: 1000000000}, dr"),
        "model.decoder.layers: must be at most 100; got 1",
    ),
    (
        "too many threads",
        config("max_steps: 1", "threads: 100000"),
        "training.threads: must be at most 1024; got 100000",
    ),
    (
        "too many workers",
        config("workers: 1", "workers: 100000"),
        "data.workers: must be at most 1024; got 100000",
    ),
    (
        "endless seed",
        config("name: toy", "name: toy\nseed: 1e999"),
        "seed: must be a whole number; got",
    ),
    (
        "huge seed",
        config("name: toy", f"name: toy\nseed: {2**70}"),
        "seed: must be at most 9.22337e+18; got",
    ),
    (
        "yes",
        config("dropout: 0.1", "variational_dropout: yes"),
        'model.variational_dropout: must be true or false; got "yes"',
    ),
    (
        "text for a section",
        config("decoding: {beam: 1, max_length_ratio: 0.5}", "decoding: 3"),
        "decoding: must be a section",
    ),
    ("no name", config("name: toy\n", ""), "c.yaml: name: must be given"),
    (
        "path as name",
        config("name: toy", "name: ../toy"),
        "name: must be a name of letters, digits",
    ),
    (
        "one language",
        config("data:\n", "data:\n  direction: en-en\n"),
        "the source and target languages of en-en are the same",
    ),
    (
        "names of languages",
        config("data:\n", "data:\n  direction: English-German\n"),
        "must be two language codes, for example en-de",
    ),
    (
        "other languages",
        config("data:\n", "data:\n  direction: en-fr\n"),
        "columns: needs one column for each language: en and fr",
    ),
    (
        "column twice",
        config("de: 2", "de: 1"),
        "data.source.columns: the same column for both languages; give the column of each",
    ),
    (
        "dev without test",
        config("  split", "  dev: {path: x}\n  split"),
        "data.dev, data.test: give both or neither",
    ),
    (
        "heads",
        config("dropout: 0.1", "attention: {heads: 3}"),
        "model.attention.heads, model.encoder.hidden_size: 3 heads cannot",
    ),
    (
        "unequal sizes",
        config("dropout: 0.1", "attention: {score: dot}"),
        "dot needs equal sizes (encoder output 16, decoder 8); or use",
    ),
    (
        "ties",
        config("dropout: 0.1", "tie_embeddings: all"),
        "all needs a joint vocabulary; or use target",
    ),
    (
        "average of one",
        config("max_steps: 1", "average: best"),
        "averaging needs at least two checkpoints; keep more",
    ),
    (
        "a key twice",
        config("name: toy", "name: toy\nname: toy"),
        "c.yaml, line 1, column 1: not valid YAML: repeated key: name",
    ),
    (
        "a tab",
        config("  prepared", "\tprepared"),
        "c.yaml, line 3, column 1: not valid YAML: found character '\\t'",
    ),
    (
        "a bracket",
        config("columns: {en: 1, de: 2}}", "columns: {en: 1, de: 2}"),
        "not valid YAML: expected ',' or '}', but got",
    ),
    ("empty", config(CONFIG, ""), "c.yaml: expected `key: value` lines, found nothing"),
    (
        "Latin-1",
        config("toy", "schön", "latin-1"),
        "c.yaml: cannot be read as UTF-8 text (invalid start byte); save it as UTF-8",
    ),
    (
        "UTF-16",
        config("toy", "toy", "utf-16"),
        "c.yaml: cannot be read as UTF-8 text (invalid start byte); save it as UTF-8",
    ),
    (
        "missing",
        lambda: Path("c.yaml").unlink(),
        "c.yaml: no such file; the configurations that come with nmt are in configs/",
    ),
    (
        "a folder",
        both(lambda: Path("c.yaml").unlink(), lambda: Path("c.yaml").mkdir()),
        "c.yaml: is a folder; name a YAML file",
    ),
    (
        "data",
        lambda: shutil.copyfile("pairs.tsv", "c.yaml"),
        "c.yaml, line 1, column 44: not valid YAML",
    ),
]


@pytest.mark.parametrize(
    ("edit", "text"), [row[1:] for row in CONFIGURATION], ids=[row[0] for row in CONFIGURATION]
)
def test_configuration(nmt: Run, project: None, edit: Edit, text: str) -> None:
    edit()
    result = nmt("train", "-c", "c.yaml", "-o", "new")
    assert result.status == 1
    assert text in result.err
    assert not Path("new").exists()


DATA: list[tuple[str, Edit, list[str], str]] = [
    (
        "missing",
        lambda: Path("pairs.tsv").unlink(),
        [],
        "pairs.tsv: no such file; check the path under data.source",
    ),
    (
        "a folder",
        both(lambda: Path("pairs.tsv").unlink(), lambda: Path("pairs.tsv").mkdir()),
        [],
        "pairs.tsv: is a folder, not a file",
    ),
    ("empty", lambda: write([]), [], "pairs.tsv: is empty"),
    (
        "blank",
        lambda: write([[""]] * 9),
        [],
        "no row can be used: line 1 has 1 column, expected 2 columns",
    ),
    (
        "Latin-1",
        lambda: write(encoding="latin-1"),
        [],
        r"pairs.tsv: not UTF-8 in \d\d rows (the first: line 1); convert the file",
    ),
    ("UTF-16", lambda: write(encoding="utf-16"), [], "pairs.tsv: is UTF-16; save it as UTF-8"),
    (
        "UTF-16 without mark",
        lambda: write(encoding="utf-16-le"),
        [],
        "pairs.tsv: has many zero bytes, so it is UTF-16 or no text",
    ),
    (
        "commas",
        lambda: write(separator=","),
        [],
        "line 1 has 1 column, expected 2 columns separated by tabs; check `format`",
    ),
    (
        "header",
        lambda: write([["en", "de"], *ROWS]),
        [],
        "pairs.tsv, line 1: names of columns, not a pair; set `columns` to {en: en",
    ),
    (
        "missing column",
        nothing,
        ["data.source.columns={en: 1, de: 3}"],
        "line 1 has 2 columns, expected 3 columns separated by tabs",
    ),
    (
        "column 0",
        nothing,
        ["data.source.columns={en: 0, de: 1}"],
        "columns are numbered from 1, there is no column 0",
    ),
    (
        "unknown column",
        lambda: write([["en", "de"], *ROWS]),
        ["data.source.columns={en: en, de: DE}"],
        "no column is named 'DE' in its",
    ),
    (
        "swapped columns",
        nothing,
        ["data.source.columns={en: 2, de: 1}"],
        "the languages are swapped: the en sentences are de, and the",
    ),
    (
        "swapped files",
        nothing,
        ["data.source={format: lines, files: {en: de.txt, de: en.txt}}"],
        "the languages are swapped",
    ),
    (
        "one file",
        nothing,
        ["data.source={format: lines, files: {en: de.txt, de: de.txt}}"],
        "files: the same file for both languages",
    ),
    (
        "missing line",
        lambda: replace("de.txt", ROWS[0][1] + "\n", ""),
        [LINES],
        "en.txt has 200 lines, but de.txt has 199: aligned",
    ),
    (
        "shifted lines",
        lambda: replace(
            "de.txt",
            "".join(row[1] + "\n" for row in ROWS),
            "".join(row[1] + "\n" for row in ROWS[1:] + ROWS[:1]),
        ),
        [LINES],
        (
            "the pairs are shifted: most sources belong to the target line above (lines 1 to 200); "
            "find the missing or added line"
        ),
    ),
    (
        "too long",
        nothing,
        ["data.cleaning.max_characters=3"],
        "all 200 pairs were dropped: 200 too long; check the file, and data.",
    ),
    (
        "only named gz",
        lambda: shutil.copyfile("pairs.tsv", "x.gz"),
        ["data.source.path=x.gz"],
        "x.gz: is truncated or damaged (Not a",
    ),
    (
        "cut gz",
        both(
            lambda: Path("x.gz").write_bytes(gzip.compress(Path("pairs.tsv").read_bytes())),
            lambda: cut("x.gz"),
        ),
        ["data.source.path=x.gz"],
        "x.gz: is truncated or damaged (Compressed file ended",
    ),
    (
        "cut zip",
        both(lambda: pack("a.tsv", b"a\tb\n" * 99), lambda: cut("x.zip")),
        ["data.source.path=x.zip"],
        "x.zip: is truncated or damaged",
    ),
    (
        "Excel",
        lambda: pack("[Content_Types].xml", b""),
        ["data.source.path=x.zip"],
        "x.zip: is an Office document; save its table as",
    ),
    (
        "xz",
        lambda: Path("x").write_bytes(b"\xfd7zXZ\x00\x00\x04"),
        ["data.source.path=x"],
        "x: is truncated or damaged (the file ends too early)",
    ),
    (
        "PDF",
        lambda: Path("x").write_bytes(b"%PDF-1.7\n"),
        ["data.source.path=x"],
        "x: is PDF; save its table as text, with tabs",
    ),
    ("other file", nothing, ["data.source.sha256=abc"], "but the configuration expects abc"),
    (
        "not the web",
        nothing,
        ["data.source={url: 'ftp://x/y'}"],
        "ftp://x/y does not begin with http",
    ),
    ("empty dev set", lambda: write_sets(ROWS, [], ROWS[:9]), DEV, "dev.tsv: is empty"),
    (
        "blank dev set",
        lambda: write_sets(ROWS, [["", ""]] * 9, ROWS[:9]),
        DEV,
        "dev.tsv: no sentence in it has a translation; check",
    ),
    (
        "Latin-1 dev set",
        both(lambda: write_sets(ROWS, [], ROWS), lambda: write(ROWS, "dev.tsv", "latin-1")),
        DEV,
        "dev.tsv: line 1 is not UTF-8",
    ),
    (
        "too large split",
        nothing,
        ["data.split.dev=190"],
        "data.split: dev 190 + test 20 leave no training data, there are only 200",
    ),
    (
        "few subwords",
        nothing,
        ["tokenizer={kind: bpe, size: 16}"],
        r"tokenizer.size: 16 is too small, the text has \d\d different",
    ),
    (
        "rare words",
        nothing,
        ["vocabulary.min_frequency=999999"],
        "the src vocabulary has no token; raise vocabulary.max_size, or",
    ),
    (
        "folder in a file",
        nothing,
        ["data.prepared=c.yaml/new"],
        "c.yaml/new: cannot be written (File exists)",
    ),
    (
        "other files there",
        nothing,
        ["data.prepared=runs"],
        "runs: is not empty and holds no prepared data; nothing was changed",
    ),
    (
        "other data there",
        nothing,
        ["data.prepared=prepared", "tokenizer.lowercase=true"],
        "--overwrite replaces it, -o names another",
    ),
    ("no run", nothing, ["vocabulary.like=nothing"], "nothing: no prepared data here"),
]


@pytest.mark.parametrize(
    ("edit", "overrides", "text"), [row[1:] for row in DATA], ids=[row[0] for row in DATA]
)
def test_data(nmt: Run, project: None, edit: Edit, overrides: list[str], text: str) -> None:
    edit()
    result = nmt("prepare", "-c", "c.yaml", "-q", *options("data.prepared=new", *overrides))
    assert result.status == 1
    assert matches(text, result.err)
    assert not Path("new").exists()


CC_BY = [
    [*row, f"CC-BY 2.0 (France) Attribution: tatoeba.org #{number} (CK) & #{number + 7} (Pfirsich)"]
    for number, row in enumerate(ROWS)
]

# What may be intended gives a warning.
DOUBTS: list[tuple[str, Edit, list[str], str]] = [
    (
        "source as target",
        lambda: write([[row[0], row[0]] for row in ROWS]),
        [],
        "in 200 of 200 pairs, source and target are the same",
    ),
    (
        "attribution",
        lambda: write(CC_BY),
        ["data.source.columns={en: 1, de: 3}"],
        "the de sentences are perhaps in another language",
    ),
    (
        "wrong language",
        nothing,
        ["data.direction=en-fr", "data.source.columns={en: 1, fr: 2}"],
        "the fr sentences are perhaps in another",
    ),
    (
        "unknown language",
        nothing,
        ["data.direction=en-ge", "data.source.columns={en: 1, ge: 2}"],
        "(they look like de); check data.dir",
    ),
    (
        "mostly too long",
        nothing,
        ["data.cleaning.max_characters=35"],
        r"most of its 200 pairs are dropped: \d+ too long; check the",
    ),
    (
        "dev set in training set",
        lambda: write_sets(ROWS, ROWS, ROWS[:9]),
        DEV,
        "dev.tsv: 200 of its 200 pairs are also in data.source",
    ),
    (
        "one set twice",
        lambda: write_sets(ROWS[9:], ROWS[:9], ROWS[:9]),
        DEV,
        "test.tsv: 9 of its 9 pairs are also in data.dev, which",
    ),
    (
        "dev set with gaps",
        lambda: write_sets(ROWS[9:], [["a", ""], *ROWS[:9]], ROWS[:9]),
        DEV,
        "1 pairs have an empty side (the first",
    ),
    (
        "vocabulary of 5",
        nothing,
        ["vocabulary.max_size=5"],
        r"the src vocabulary knows only \d+% of the tokens of the dev set; raise",
    ),
]


@pytest.mark.parametrize(
    ("edit", "overrides", "text"), [row[1:] for row in DOUBTS], ids=[row[0] for row in DOUBTS]
)
def test_doubtful_data_gives_a_warning(
    nmt: Run, project: None, edit: Edit, overrides: list[str], text: str
) -> None:
    edit()
    result = nmt("prepare", "-c", "c.yaml", "-q", *options("data.prepared=new", *overrides))
    assert result.status == 0
    assert result.err.startswith("nmt: warning: ")
    assert matches(text, result.err)


TRAINING: list[tuple[str, Edit, list[str], str]] = [
    (
        "not prepared",
        nothing,
        ["--set", "data.prepared=new-data"],
        "new-data: no prepared data here; run `nmt prepare -c ...` first",
    ),
    (
        "other data",
        nothing,
        ["--set", "tokenizer.lowercase=true"],
        "prepared: prepared with another configuration (tokenizer.lowercase",
    ),
    ("cut copy", lambda: cut("prepared/train.src.npy"), [], "prepared/train.src.npy: damaged"),
    (
        "file missing",
        lambda: Path("prepared/train.tgt.npy").unlink(),
        [],
        "prepared/train.tgt.npy: no such file; run `nmt prepare -c",
    ),
    (
        "cut vocabulary",
        lambda: cut("prepared/src.vocab.txt"),
        [],
        "the file is cut off here; `nmt prepare` writes it",
    ),
    (
        "unknown device",
        nothing,
        ["--device", "gpu"],
        "Invalid value for '--device': Value error, 'gpu' is not one of 'auto', 'cpu'",
    ),
    (
        "no such device",
        nothing,
        ["--device", MISSING_DEVICE],
        f"--device {MISSING_DEVICE}: not available here; available: ",
    ),
    (
        "no run to start from",
        nothing,
        ["--set", "training.start_from=x"],
        "x: no run here; `nmt train -c CONFIG -o x` creates one",
    ),
    (
        "short vectors",
        lambda: Path("v").write_text("a 1 2 3\n"),
        ["--set", "model.src_vectors=v"],
        "v, line 1: vectors of 3 numbers",
    ),
    (
        "a run is there",
        nothing,
        ["-o", "runs/toy"],
        "runs/toy: contains a run already; continue it with --resume, or train",
    ),
    (
        "other model",
        nothing,
        ["-o", "runs/toy", "--resume", "--set", "model.embedding_size=9"],
        "model.embedding_size: was 8, is 9",
    ),
    ("a file is there", nothing, ["-o", "c.yaml"], "c.yaml: is a file; name a folder with -o"),
    (
        "folder in a file",
        nothing,
        ["-o", "c.yaml/run"],
        "c.yaml/run: cannot be written (File exists",
    ),
    (
        "no value",
        nothing,
        ["--set", "training.epochs"],
        "--set training.epochs: write key=value, for example --set training.epochs=3",
    ),
]


@pytest.mark.parametrize(
    ("edit", "words", "text"), [row[1:] for row in TRAINING], ids=[row[0] for row in TRAINING]
)
def test_training(nmt: Run, project: None, edit: Edit, words: list[str], text: str) -> None:
    edit()
    before = {path: path.stat().st_mtime_ns for path in Path().rglob("*.safetensors")}
    result = nmt("train", "-c", "c.yaml", "-q", *([] if "-o" in words else ["-o", "new"]), *words)
    assert result.status in (1, 2)
    assert text in result.err
    assert {path: path.stat().st_mtime_ns for path in Path().rglob("*.safetensors")} == before


def test_a_batch_larger_than_the_data_gives_a_warning(nmt: Run, project: None) -> None:
    result = nmt(
        "train", "-c", "c.yaml", "-q", "-o", "c.yaml/x", *options("training.batch.size=161")
    )  # fails after the warning
    text = (
        "training.batch.size: 161 sentences, but the training data has 160; an epoch is one update"
    )
    assert result.err.startswith(f"nmt: warning: {text}\n")


CHECKPOINT = "runs/toy/checkpoints/step-00000001"
RUN: list[tuple[str, Edit, list[str], str]] = [
    ("no run", nothing, ["--run", "x"], "x: no run here"),
    (
        "prepared data",
        nothing,
        ["--run", "prepared"],
        "prepared: no run here; `nmt train -c CONFIG -o prepared` creates one",
    ),
    (
        "a file",
        nothing,
        ["--run", "c.yaml"],
        "c.yaml: no bundle, or damaged (File is not a zip file); name the folder of a run",
    ),
    (
        "cut weights",
        lambda: cut(f"{CHECKPOINT}/model.safetensors"),
        [],
        "model.safetensors: cannot be loaded (Error while deserializ",
    ),
    (
        "no weights",
        lambda: Path(CHECKPOINT, "model.safetensors").unlink(),
        [],
        "copy it again, or use another checkpoint",
    ),
    (
        "no checkpoint",
        lambda: shutil.rmtree(CHECKPOINT),
        [],
        "best.json: names step-00000001, which is missing; copy the run again",
    ),
    (
        "no checkpoints",
        lambda: shutil.rmtree("runs/toy/checkpoints"),
        ["--run", "runs/toy"],
        "runs/toy: has no checkpoint yet; contin",
    ),
    (
        "no vocabulary",
        lambda: Path("runs/toy/tgt.vocab.txt").unlink(),
        [],
        "tgt.vocab.txt: no such file; `nmt prepare` writes it",
    ),
    (
        "other vocabulary",
        lambda: shutil.copyfile("runs/toy/src.vocab.txt", "runs/toy/tgt.vocab.txt"),
        [],
        "its content has changed",
    ),
    (
        "edited size",
        lambda: replace("runs/toy/config.yaml", "hidden_size: 8", "hidden_size: 9"),
        [],
        "does not fit the configuration",
    ),
    (
        "other version",
        lambda: replace("runs/toy/config.yaml", "bridge:", "bridges:"),
        [],
        "model.bridges: unknown key; did you mean model.br",
    ),
    (
        "newer version",
        lambda: replace("runs/toy/manifest.json", '"format_version": 1', '"format_version": 2'),
        [],
        "made by a newer nmt",
    ),
    (
        "Latin-1",
        lambda: Path("t").write_bytes(b"sch\xf6n\n"),
        ["--file", "t"],
        "t, line 1: not UTF-8 (invalid start byte at byte 4)",
    ),
    ("folder", nothing, ["--file", "runs"], "runs: cannot be read (Is a directory)"),
    (
        "no lexicon",
        nothing,
        ["--set", "decoding.shortlist=5", "Hi."],
        "shortlist: 5 needs the lexicon of the run; `nmt lexicon runs/toy`",
    ),
    (
        "weights' key",
        nothing,
        ["--set", "model.dropout=0", "Hi."],
        "for a trained run only decoding.KEY=VALUE can be set",
    ),
    ("no folder", nothing, ["-o", "x/y", "Hi."], "x: no such folder"),
]


@pytest.mark.parametrize(
    ("edit", "words", "text"), [row[1:] for row in RUN], ids=[row[0] for row in RUN]
)
def test_run(nmt: Run, project: None, edit: Edit, words: list[str], text: str) -> None:
    edit()
    result = nmt("translate", *words, stdin=b"Hello.\n")
    assert (result.status, result.out) == (1, "")
    assert text in result.err


@pytest.mark.slow
def test_a_run_of_another_tokenizer(nmt: Run, project: None) -> None:
    other = ["data.prepared=lower", "tokenizer.lowercase=true"]
    assert nmt("prepare", "-c", "c.yaml", "-q", *options(*other)).status == 0
    assert nmt("train", "-c", "c.yaml", "-q", "-o", "runs/lower", *options(*other)).status == 0
    result = nmt("translate", "--run", "runs/toy", "--run", "runs/lower", "Hello.")
    assert result.status == 1
    assert (
        "runs/lower: its source tokenizer differs from that of runs/toy; an ensemble needs runs "
        "on the same"
    ) in result.err


def test_correct_data_with_a_byte_order_mark_is_prepared_without_a_warning(
    nmt: Run, project: None
) -> None:
    write(encoding="utf-8-sig")
    result = nmt("prepare", "-c", "c.yaml", "-q", *options("data.prepared=new"))
    assert (result.status, result.err) == (0, "")
    assert Path("new/train.src.npy").read_bytes() == Path("prepared/train.src.npy").read_bytes()


def options(*overrides: str) -> list[str]:
    return [word for override in overrides for word in ("--set", override)]


def matches(text: str, message: str) -> bool:
    r"""Whether `text`, in which only \d stands for something else, is in the message."""
    pattern = re.escape(text).replace(r"\\d", r"\d").replace(r"\d\+", r"\d+")
    return re.search(pattern, message) is not None
