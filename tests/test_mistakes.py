"""Mistakes that users make: each one is caught before training, by a line that names the place and
the remedy.
"""

import gzip
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from nmt.commands import prepare
from nmt.commands import train as train_command
from nmt.config.load import load_config
from nmt.data.workers import Workers
from tests.conftest import ROOT, Run
from tests.toy import replace

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
TABLE = "format: tsv, path: pairs.tsv, columns: {en: 1, de: 2}"
DEV = [
    f"data.{name}={{format: tsv, path: {name}.tsv, columns: {{en: 1, de: 2}}}}"
    for name in ("dev", "test")
]

Rows = Sequence[Sequence[str]]
Edit = Callable[[], object]


@contextmanager
def threads(_count: int) -> Iterator[Workers]:
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
        config = load_config(Path("c.yaml"))
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


def cut(path: str) -> None:
    """Only the first half of a file, as of a copy that was interrupted."""
    content = Path(path).read_bytes()
    Path(path).write_bytes(content[: len(content) // 2])


def both(first: Edit, second: Edit) -> Edit:
    def edit() -> None:
        first()
        second()

    return edit


def nothing() -> None:
    pass


def case(text: str, *words: str, edit: Edit = nothing) -> Any:
    """A mistake, and what the message says of it."""
    return pytest.param(edit, words, text, id=text)


def edited(text: str, old: str, new: str, encoding: str = "utf-8") -> Any:
    assert old in CONFIG
    content = CONFIG.replace(old, new).encode(encoding)
    return case(text, edit=lambda: Path("c.yaml").write_bytes(content))


CONFIGURATION = [
    edited("c.yaml: model.droput: unknown key; did you mean model.dropout?", "dropout", "droput"),
    edited("training.beam: unknown key; did you mean decoding.beam?", "max_steps: 1", "beam: 3"),
    edited(
        'model.encoder.cell: "ltsm" is not one of lstm, gru',
        "hidden_size: 8}, dec",
        "cell: ltsm}, dec",
    ),
    edited("c.yaml: model.dropout: must be less than 1; got 1.5", "0.1", "1.5"),
    edited(
        "training.learning_rate.peak: must be more than 0; got -1",
        "max_steps: 1",
        "learning_rate: {peak: -1}",
    ),
    edited(
        "training.learning_rate.peak: must be a finite number; got NaN",
        "max_steps: 1",
        "learning_rate: {peak: .nan}",
    ),
    edited('model.dropout: must be a number; got "0,1"', "0.1", "'0,1'"),
    edited("training.max_steps: must be a whole number; got 0.5", "max_steps: 1", "max_steps: 0.5"),
    edited(
        "vocabulary.max_size: must be at least 5; got 4", "tok", "vocabulary: {max_size: 4}\ntok"
    ),
    edited(
        "model.decoder.layers: must be at most 100; got 1",
        "hidden_size: 8}, dr",
        "layers: 1000000000}, dr",
    ),
    edited(
        "decoding: must be a section", "decoding: {beam: 1, max_length_ratio: 0.5}", "decoding: 3"
    ),
    edited("c.yaml: name: must be given", "name: toy\n", ""),
    edited("name: must be a name of letters, digits", "name: toy", "name: ../toy"),
    edited(
        "the source and target languages of en-en are the same",
        "data:\n",
        "data:\n  direction: en-en\n",
    ),
    edited(
        "must be two language codes, for example en-de",
        "data:\n",
        "data:\n  direction: English-German\n",
    ),
    edited(
        "columns: needs one column for each language: en and fr",
        "data:\n",
        "data:\n  direction: en-fr\n",
    ),
    edited(
        "data.source.columns: the same column for both languages; give the column of each",
        "de: 2",
        "de: 1",
    ),
    edited(
        "dot needs equal sizes (encoder output 16, decoder 8); or use",
        "dropout: 0.1",
        "attention: {score: dot}",
    ),
    edited(
        "c.yaml, line 1, column 1: not valid YAML: repeated key: name",
        "name: toy",
        "name: toy\nname: toy",
    ),
    edited(
        "c.yaml, line 3, column 1: not valid YAML: found character '\\t'",
        "  prepared",
        "\tprepared",
    ),
    edited("c.yaml: expected `key: value` lines, found nothing", CONFIG, ""),
    edited(
        "c.yaml: cannot be read as UTF-8 text (invalid start byte); save it as UTF-8",
        "toy",
        "schön",
        "latin-1",
    ),
    case(
        "c.yaml: no such file; the configurations that come with nmt are in configs/",
        edit=lambda: Path("c.yaml").unlink(),
    ),
    case(
        "c.yaml: cannot be read (Is a directory)",
        edit=both(lambda: Path("c.yaml").unlink(), lambda: Path("c.yaml").mkdir()),
    ),
]


@pytest.mark.parametrize(("edit", "words", "text"), CONFIGURATION)
def test_configuration(
    nmt: Run, project: None, edit: Edit, words: tuple[str, ...], text: str
) -> None:
    edit()
    nmt.refuses(text, "train", "-c", "c.yaml", "-o", "new", *words)
    assert not Path("new").exists()


DATA = [
    case(
        "pairs.tsv: no such file; check the path under data.source",
        edit=lambda: Path("pairs.tsv").unlink(),
    ),
    case(
        "pairs.tsv: is a folder with no files of pairs; name files of one kind",
        edit=both(lambda: Path("pairs.tsv").unlink(), lambda: Path("pairs.tsv").mkdir()),
    ),
    case("x*.csv: no file matches; check the pattern", "data.source.path=x*.csv"),
    case("a*: cannot be read (File name too long)", f"data.source.path={'a' * 5000}*"),
    case("contains a zero byte, so it cannot be a path", r'data.source.path="a\0b"'),
    case("pairs.tsv: is empty", edit=lambda: write([])),
    case(
        "pairs.tsv: holds no pairs",
        "data.source.columns={en: en, de: de}",
        edit=lambda: write([["en", "de"]]),
    ),
    case(
        "no row can be used: line 1 has 1 column, expected 2 columns",
        edit=lambda: write([["one"]] * 9),
    ),
    case(
        r"pairs.tsv: not UTF-8 in \d\d rows (the first: line 1); save it as UTF-8, or convert it",
        edit=lambda: write(encoding="latin-1"),
    ),
    case("pairs.tsv: is UTF-16 or no text; save it", edit=lambda: write(encoding="utf-16-le")),
    case(
        "line 1 has 1 column, expected 2 columns separated by tabs; check `format`",
        edit=lambda: write(separator=","),
    ),
    case(
        "pairs.tsv, line 1: names of columns, not a pair; delete the line, or set `columns` to "
        "{en: en, de: de}",
        edit=lambda: write([["en", "de"], *ROWS]),
    ),
    case(
        "looks like an export from tatoeba.org (id, text, id, text); use format tatoeba",
        "data.source={format: manythings, path: pairs.tsv}",
        edit=lambda: write([["1276", "Hi.", "123", "Hallo!"]]),
    ),
    case(
        "line 1 has 2 columns, expected 3 columns separated by tabs",
        "data.source.columns={en: 1, de: 3}",
    ),
    case(
        "pairs.tsv: format links needs three files: the ids of column 1 and 2, the sentences of",
        f"data.source={{{TABLE.replace('tsv,', 'links,', 1)}}}",
    ),
    case("columns are numbered from 1, there is no column 0", "data.source.columns={en: 0, de: 1}"),
    case(
        "no column is named 'DE' in its first line, which has: en, de",
        "data.source.columns={en: en, de: DE}",
        edit=lambda: write([["en", "de"], *ROWS]),
    ),
    case(
        "the languages are swapped: the en sentences are de, and the",
        "data.source.columns={en: 2, de: 1}",
    ),
    case(
        "de.txt has 199 lines, but en.txt has more: aligned",
        LINES,
        edit=lambda: replace(Path("de.txt"), ROWS[0][1] + "\n", ""),
    ),
    case(
        "en.txt has 199 lines, but de.txt has more: aligned",
        LINES,
        edit=lambda: replace(Path("en.txt"), ROWS[0][0] + "\n", ""),
    ),
    case(
        "2 files for en, but 1 for de; name as many for both",
        "data.source={format: lines, files: {en: [en.txt, en.txt], de: de.txt}}",
    ),
    case(
        "the pairs are shifted: most sources belong to the target line above (lines 1 to 200)",
        LINES,
        edit=lambda: replace(
            Path("de.txt"),
            "".join(row[1] + "\n" for row in ROWS),
            "".join(row[1] + "\n" for row in ROWS[1:] + ROWS[:1]),
        ),
    ),
    case(
        "pairs.tsv: all 200 pairs were dropped: 200 too long; check it and data.cleaning",
        "data.cleaning.max_characters=3",
    ),
    case(
        "x.gz: is truncated or damaged (Compressed file ended",
        "data.source.path=x.gz",
        edit=both(
            lambda: Path("x.gz").write_bytes(gzip.compress(Path("pairs.tsv").read_bytes())),
            lambda: cut("x.gz"),
        ),
    ),
    case(
        "data.sources.b.share: none of its pairs is left for training; remove the source",
        "data.source={}",
        f"data.sources={{a: {{{TABLE}}}, b: {{{TABLE}, share: 0.1}}}}",
    ),
    case("but the configuration expects abc", "data.source.sha256=abc"),
    case("ftp://x/y does not begin with http", "data.source={url: 'ftp://x/y'}"),
    case("file:///x does not begin with http", "data.source={url: 'file:///x'}"),
    case(
        "http://example.org/x.tsv: http is not safe; use https, or give data.source.sha256",
        "data.source={url: 'http://example.org/x.tsv'}",
    ),
    case("pairs.tsv: is a file; name another folder with -o", "data.prepared=pairs.tsv"),
    case("x.zip does not begin with http", "data.source={url: x.zip}"),
    case(
        "dev.tsv: no sentence in it has a translation; check",
        *DEV,
        edit=lambda: write_sets(ROWS, [["", ""]] * 9, ROWS[:9]),
    ),
    case(
        r"dev.tsv: line 1 is not UTF-8 (invalid start byte at byte \d+); dev and test sets are "
        "used whole, so save it as UTF-8",
        *DEV,
        edit=both(lambda: write_sets(ROWS, [], ROWS), lambda: write(ROWS, "dev.tsv", "latin-1")),
    ),
    case(
        "dev.tsv: line 2 has 1 column, expected 2 columns separated by tabs; dev and test sets are "
        "used whole, so fix the line",
        *DEV,
        edit=lambda: write_sets(ROWS, [ROWS[0], ["x"], *ROWS[:9]], ROWS[:9]),
    ),
    case(
        "dev.tsv: line 3 has 1 column, expected 2 columns separated by semicolons, cells in",
        *(each.replace("tsv", "csv", 1) for each in DEV),
        edit=both(
            lambda: write_sets(ROWS, [], ROWS[:9]),
            lambda: Path("dev.tsv").write_text('a;b\n"c;d";e\nx\n', encoding="utf-8"),
        ),
    ),
    case(
        "data.split: dev 190 + test 20 leave no training data, there are only 200",
        "data.split.dev=190",
    ),
    case(
        r"tokenizer.size: 16 is too small, the text has \d\d different",
        "tokenizer={kind: bpe, size: 16}",
    ),
    case(
        "the src vocabulary has no token; raise vocabulary.max_size, or",
        "vocabulary.min_frequency=999999",
    ),
    case("c.yaml/new: cannot be written (File exists)", "data.prepared=c.yaml/new"),
    case(
        "runs: is not empty and holds no prepared data; nothing was changed", "data.prepared=runs"
    ),
    case(
        "--overwrite replaces it, -o names another",
        "data.prepared=prepared",
        "tokenizer.lowercase=true",
    ),
    case("nothing: no prepared data here", "vocabulary.like=nothing"),
    case(
        "vocabulary.like: prepared was prepared with tokenizer.kind characters, but this "
        "configuration has words",
        "vocabulary.like=prepared",
        "tokenizer.kind=words",
    ),
]


@pytest.mark.parametrize(("edit", "words", "text"), DATA)
def test_data(nmt: Run, project: None, edit: Edit, words: tuple[str, ...], text: str) -> None:
    edit()
    result = nmt("prepare", "-c", "c.yaml", "-q", *options("data.prepared=new", *words))
    assert result.status == 1
    assert matches(text, result.err)
    assert not Path("new").exists()


# What may be intended gives a warning.
DOUBTS = [
    case(
        "in most pairs, source and target are the same text",
        edit=lambda: write([[row[0], row[0]] for row in ROWS]),
    ),
    case(
        "the fr sentences are perhaps in another",
        "data.direction=en-fr",
        "data.source.columns={en: 1, fr: 2}",
    ),
    case(
        "(they look like de); check data.dir",
        "data.direction=en-ge",
        "data.source.columns={en: 1, ge: 2}",
    ),
    case(
        "the cz sentences are perhaps in another language",
        "data.direction=en-cz",
        "data.source.columns={en: 1, cz: 2}",
    ),
    case(
        r"most of its 200 pairs are dropped: \d+ too long; check the",
        "data.cleaning.max_characters=35",
    ),
    case(
        "dev.tsv: 200 of its 200 pairs are also in data.source",
        *DEV,
        edit=lambda: write_sets(ROWS, ROWS, ROWS[:9]),
    ),
    case(
        "test.tsv: 9 of its 9 pairs are also in data.dev, which",
        *DEV,
        edit=lambda: write_sets(ROWS[9:], ROWS[:9], ROWS[:9]),
    ),
    case(
        "2 pairs have a side that is empty or stands for a missing translation (the first: pair 3)",
        *DEV,
        edit=lambda: write_sets(
            ROWS[9:], [*ROWS[:2], ["We do not know it.", "nan"], ["a", ""]], ROWS[:9]
        ),
    ),
    case(
        "'TODO' is the de side of 12% of the pairs, each with another sentence; if it",
        edit=lambda: write([*ROWS[25:], *([f"{n} of them are new.", "TODO"] for n in range(25))]),
    ),
    case(
        r"the src vocabulary knows only \d+% of the tokens of the dev set; raise",
        "vocabulary.max_size=5",
    ),
]


@pytest.mark.parametrize(("edit", "words", "text"), DOUBTS)
def test_doubtful_data_gives_a_warning(
    nmt: Run, project: None, edit: Edit, words: tuple[str, ...], text: str
) -> None:
    edit()
    result = nmt("prepare", "-c", "c.yaml", "-q", *options("data.prepared=new", *words))
    assert result.status == 0
    assert result.err.startswith("nmt: warning: ")
    assert matches(text, result.err)


TRAINING = [
    case(
        "prepared: prepared with another configuration (tokenizer.lowercase",
        "--set",
        "tokenizer.lowercase=true",
    ),
    case("prepared/train.src.npy: damaged", edit=lambda: cut("prepared/train.src.npy")),
    case(
        "prepared/train.tgt.npy: no such file; run `nmt prepare -c",
        edit=lambda: Path("prepared/train.tgt.npy").unlink(),
    ),
    case(
        "the file is cut off here; `nmt prepare` writes it",
        edit=lambda: cut("prepared/src.vocab.txt"),
    ),
    case(
        "Invalid value for '--device': Value error, 'gpu' is not one of 'auto', 'cpu'",
        "--device",
        "gpu",
    ),
    case(f"--device {MISSING_DEVICE}: not available here; available: ", "--device", MISSING_DEVICE),
    case("runs/toy: contains a run already; continue it with --resume, or train", "-o", "runs/toy"),
    case(
        "model.embedding_size: was 8, is 9",
        "-o",
        "runs/toy",
        "--resume",
        "--set",
        "model.embedding_size=9",
    ),
    case(
        "seed: was 1, is 2",
        *["-o", "runs/toy", "--resume", "--set", "model.dropout=0.5", "--set", "seed=2"],
    ),
    case("c.yaml: is a file; name a folder with -o", "-o", "c.yaml"),
    case(
        "--set training.epochs: write key=value, for example --set training.epochs=3",
        "--set",
        "training.epochs",
    ),
]


@pytest.mark.parametrize(("edit", "words", "text"), TRAINING)
def test_training(nmt: Run, project: None, edit: Edit, words: tuple[str, ...], text: str) -> None:
    edit()
    before = {path: path.stat().st_mtime_ns for path in Path().rglob("*.safetensors")}
    result = nmt("train", "-c", "c.yaml", "-q", *([] if "-o" in words else ["-o", "new"]), *words)
    assert result.status in (1, 2)
    assert text in result.err
    assert {path: path.stat().st_mtime_ns for path in Path().rglob("*.safetensors")} == before


CHECKPOINT = "runs/toy/checkpoints/step-00000001"


def without_graphs() -> None:
    """So that the weights are read."""
    shutil.rmtree(f"{CHECKPOINT}/graphs-int8")


RUN = [
    case("x: no run here", "--run", "x"),
    case(
        "c.yaml: no bundle, or damaged (File is not a zip file); name the folder of a run",
        "--run",
        "c.yaml",
    ),
    case(
        "model.safetensors: cannot be loaded (Error while deserializ",
        edit=both(without_graphs, lambda: cut(f"{CHECKPOINT}/model.safetensors")),
    ),
    case(
        "has neither weights nor graphs",
        edit=both(without_graphs, lambda: Path(CHECKPOINT, "model.safetensors").unlink()),
    ),
    case(
        "output.onnx: damaged, its content has changed since nmt wrote it; delete the folder",
        edit=lambda: cut(f"{CHECKPOINT}/graphs-int8/output.onnx"),
    ),
    case(
        "best.json: names step-00000001, which is missing; copy the run again",
        edit=lambda: shutil.rmtree(CHECKPOINT),
    ),
    case(
        "runs/toy: has no checkpoint yet; contin",
        "--run",
        "runs/toy",
        edit=lambda: shutil.rmtree("runs/toy/checkpoints"),
    ),
    case(
        "tgt.vocab.txt: no such file; `nmt prepare` writes it, and each run has a copy",
        edit=lambda: Path("runs/toy/tgt.vocab.txt").unlink(),
    ),
    case(
        "its content has changed",
        edit=lambda: shutil.copyfile("runs/toy/src.vocab.txt", "runs/toy/tgt.vocab.txt"),
    ),
    case(
        "does not fit the configuration",
        edit=both(
            without_graphs,
            lambda: replace(Path("runs/toy/config.yaml"), "hidden_size: 8", "hidden_size: 9"),
        ),
    ),
    case(
        "model.bridges: unknown key; did you mean model.br",
        edit=lambda: replace(Path("runs/toy/config.yaml"), "bridge:", "bridges:"),
    ),
    case(
        "runs/toy: made by a newer nmt (format 99, this version reads 1); update nmt\n",
        edit=both(
            lambda: replace(
                Path("runs/toy/manifest.json"), '"format_version": 1', '"format_version": 99'
            ),
            lambda: Path("runs/toy/config.yaml").write_text("something: new\n"),
        ),
    ),
    case(
        "best.json: damaged", edit=lambda: Path("runs/toy/checkpoints/best.json").write_text("{}")
    ),
    case(
        "config.yaml, line 1, column",
        edit=lambda: Path("runs/toy/config.yaml").write_text("name: ["),
    ),
    case("runs: is a folder, not a file", "--file", "runs"),
    case(
        "decoding.shortlist: left nmt after 0.2, and is now always 0; remove it, or set "
        "decoding.precision=int8 in its place, which is faster\n",
        "--set",
        "decoding.shortlist=5",
        "Hi.",
    ),
    case(
        "nmt: --set model.dropout=0: for a trained run only decoding.KEY=VALUE can be set\n",
        "--set",
        "model.dropout=0",
        "Hi.",
    ),
    case("x: no such folder", "-o", "x/y", "Hi."),
]


@pytest.mark.parametrize(("edit", "words", "text"), RUN)
def test_run(nmt: Run, project: None, edit: Edit, words: tuple[str, ...], text: str) -> None:
    edit()
    nmt.refuses(text, "translate", *words, stdin=b"Hello.\n")


def test_a_missing_library(nmt: Run, project: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("nmt.extras.serve.")]:
        monkeypatch.delattr(name)
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    text = "nmt: needs uvicorn, which is not installed: `pip install 'nmt[serve]'"
    nmt.refuses(text, "serve")


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
