"""README and docs/: the commands and the Python blocks run, with a small model in place of the
trained ones.
"""

import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nmt.commands import prepare
from nmt.config.load import config_from_dict
from nmt.config.yaml_text import dump
from nmt.extras.share.bundle import write_bundle
from nmt.run.load import find_run_and_checkpoint
from tests import toy
from tests.conftest import Run
from tests.documentation import COMMANDS, ROOT, blocks_of

pytestmark = pytest.mark.slow

RUNS = (
    "tatoeba",
    "tatoeba-large",
    "multi30k-more/students/backward-1",
    "sample",
    "a",
    "b",
    "s1",
    "s2",
    "s3",
    "new",
    "m",
    "none",
    "attention",
    "en-de",
)
OPPOSITE_RUNS = ("tatoeba-de-en", "multi30k-more/students/forward-1")
# The tests run these for real, but for the commands that read a configuration: those train or
# download.
RUNNABLE = (
    "translate",
    "analyze",
    "evaluate",
    "export",
    "lexicon",
    "neighbors",
    "runs",
    "schema",
    "init",
)
PAIRS = [
    (src, tgt.replace("Ja", "Wo")) for src, tgt in toy.sentence_pairs()
]  # the Python page has a prefix "Wo"


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with everything that the commands name: runs, prepared data and texts."""
    folder = tmp_path_factory.mktemp("docs")
    (folder / "opposite").mkdir()
    split = {"dev": 20, "test": 40, "direction": "en-de"}
    prepared = str(folder / "opposite" / "prepared")
    opposite = toy.train(
        folder / "opposite", data={"direction": "de-en", "split": split, "prepared": prepared}
    )
    for name in OPPOSITE_RUNS:
        shutil.copytree(
            opposite, folder / "runs" / name
        )  # older than the others: not the default run
    run = toy.train(
        folder,
        training={"max_steps": 60, "validate_every": 30, "batch": {"size": 16}, "keep_best": 2},
    )
    for name in RUNS:
        shutil.copytree(run, folder / "runs" / name)
    write_bundle(*find_run_and_checkpoint(run), folder / "sample.nmt")
    for name in ("elsewhere/prepared", "data/prepared/tatoeba"):
        shutil.copytree(folder / "prepared", folder / name)
    src, tgt = zip(*toy.sentence_pairs()[:20], strict=True)
    for names, lines in (
        (("letters.txt", "news.en"), src),
        (("news.de", "out.txt", "r1", "r2", "baseline/test.txt"), tgt),
    ):
        for name in names:
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    (folder / "parts").mkdir()
    for start in range(0, 20, 4):
        (folder / "parts" / f"{start:02}.gz").write_bytes(
            gzip.compress("".join(f"{line}\n" for line in src[start : start + 4]).encode())
        )
    toy.write_table(folder / "pairs.tsv", PAIRS)
    for name, side in (("train.en", 0), ("train.fr", 1)):
        (folder / name).write_text("".join(f"{pair[side]}\n" for pair in PAIRS), encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("page", "words"),
    [
        (page, words)
        for page, words in COMMANDS
        if words[0] == "nmt" and (words[1] in RUNNABLE or "bundle" in words)
    ],
    ids=lambda each: each if isinstance(each, str) else " ".join(each),
)
def test_command_runs(
    page: str, words: list[str], workplace: Path, nmt: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workplace)
    if words[1] == "init":
        shutil.rmtree(words[2], ignore_errors=True)
    if "decoding.shortlist=50" in words:
        assert nmt("lexicon", "runs/tatoeba").status == 0
    if any(word.startswith("decoding.neighbors") for word in words):
        assert (
            nmt("neighbors", *[word for word in words if word.startswith("runs/")][:1]).status == 0
        )
    result = nmt(*words[1:])
    if words[1:3] == ["analyze", "runs/new"]:  # a gate, which a small model does not pass
        assert "is below 30" in result.err
    else:
        assert (result.status, result.out != "" or "-o" in words) == (0, True), result.err


def test_json_keys(workplace: Path, nmt: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table on the page about translating has each key of the output, and no other."""
    monkeypatch.chdir(workplace)
    section = (
        (ROOT / "docs" / "translate.md")
        .read_text(encoding="utf-8")
        .partition("## JSON")[2]
        .partition("\n## ")[0]
    )
    keys = re.findall(
        r"`(\w+)`",
        "".join(row.split("|")[1] for row in section.splitlines() if row.startswith("| `")),
    )
    output = nmt(
        "translate", "--run", "runs/a", "--json", "--n-best", "2", "The dog sees the man."
    ).out
    assert sorted(keys) == sorted(json.loads(output))


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds the workers in /proc")
def test_a_corpus_with_dask_loses_nothing_when_a_worker_is_killed(
    workplace: Path, nmt: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program of the page about translating; the worker that translates when the first part is
    done is killed.
    """
    monkeypatch.chdir(workplace)
    (block,) = (
        block.text
        for block in blocks_of(ROOT / "docs" / "translate.md")
        if block.language == "python"
    )
    Path("translate_corpus.py").write_text(block, encoding="utf-8")
    shutil.rmtree("out", ignore_errors=True)
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ["PYTHONPATH"]])}
    with subprocess.Popen(
        [sys.executable, "translate_corpus.py"], stdout=subprocess.PIPE, text=True, env=variables
    ) as program:
        assert program.stdout is not None
        printed = [program.stdout.readline()]
        # Each part is translated by a process of its own, the child of a worker.
        while not (
            busy := [
                each
                for each in children(program.pid)
                if any("nmt" in words_of(task) for task in children(each))
            ]
        ):
            assert program.poll() is None, (
                "all parts are translated before a worker could be killed"
            )
            time.sleep(0.02)
        os.kill(busy[0], signal.SIGKILL)
        printed += program.stdout.readlines()
    assert program.returncode == 0
    assert sorted(printed) == [f"parts/{start:02}.gz done\n" for start in range(0, 20, 4)]
    lines = "".join(path.read_text(encoding="utf-8") for path in sorted(Path("out").glob("[0-9]*")))
    assert lines == nmt("translate", "--run", "runs/tatoeba", "--file", "letters.txt").out


def children(process: int) -> list[int]:
    paths = Path(f"/proc/{process}/task").glob("*/children")
    try:
        return [int(child) for path in paths for child in path.read_text(encoding="utf-8").split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def words_of(process: int) -> list[str]:
    try:
        return Path(f"/proc/{process}/cmdline").read_text(encoding="utf-8").split("\0")
    except (FileNotFoundError, ProcessLookupError):
        return []


def test_your_own_data(tmp_path: Path, nmt: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's pairs.yaml, with more pairs than the page shows and a small model."""
    monkeypatch.chdir(tmp_path)
    table, config, *_ = (
        block.text
        for block in blocks_of(ROOT / "docs" / "data.md")
        if block.language in ("text", "yaml")
    )
    assert all(line.count("\t") == 1 for line in table.splitlines())
    toy.write_table(Path("pairs.tsv"), PAIRS)
    Path("pairs.yaml").write_text(config, encoding="utf-8")
    small = [
        "data.split.dev=20",
        "data.split.test=20",
        "tokenizer.size=60",
        "training.max_steps=2",
        "model.decoder.hidden_size=8",
    ]
    settings = [word for setting in small for word in ("--set", setting)]
    for words in (["prepare"], ["train", "--dry-run"], ["train"]):
        assert nmt(*words, "-c", "pairs.yaml", *settings).status == 0
    assert nmt("evaluate").status == 0
    assert nmt("translate", "Where is the dog?").status == 0


def test_python_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    sizes = {"embedding_size": 8, "encoder": {"hidden_size": 8}, "decoder": {"hidden_size": 8}}
    config = toy.configure(
        toy.write_table(Path("pairs.tsv"), PAIRS), model=sizes, training={"max_steps": 2}
    )
    Path("configs").mkdir()
    Path("configs/tatoeba.yaml").write_text(dump(config), encoding="utf-8")
    blocks = [
        block
        for block in blocks_of(ROOT / "docs" / "reference" / "python.md")
        if block.language == "python"
    ]
    assert blocks
    names: dict[str, object] = {}  # a block may use what those before it import
    for block in blocks:
        shutil.rmtree("runs", ignore_errors=True)  # each block trains the same run
        exec(compile(block.text, "python.md", "exec"), names)
    assert re.search(r"\(\d+, \d+\)$", capsys.readouterr().out, re.MULTILINE)


def insert_before(path: Path, pattern: str, text: str) -> None:
    """Insert `text` before the only line that matches `pattern`."""
    changed, count = re.subn(
        rf"^(?={pattern})", lambda _: text, path.read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    assert count == 1, pattern
    path.write_text(changed, encoding="utf-8")


def test_add_your_own_attention(tmp_path: Path) -> None:
    """The page's steps in a copy of the project, then its tests and a training."""
    for part in ("nmt", "tests", "configs", "scripts", "pyproject.toml"):
        source, target = ROOT / part, tmp_path / part
        if source.is_file():
            shutil.copyfile(source, target)
        else:
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    blocks = [
        block.text for block in blocks_of(ROOT / "docs" / "extend.md") if block.language == "python"
    ]
    new_class, row, case = blocks
    insert_before(tmp_path / "nmt/model/attention.py", "def _add_and_squash", f"{new_class}\n\n")
    insert_before(tmp_path / "nmt/config/parts.py", '        "linear": Part', row)
    equations = tmp_path / "tests/model/equations.py"
    insert_before(equations, '        case "linear":', case)

    def run(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            env=environment,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ["PYTHONPATH"]]),
    }
    assert "comments written" in run("scripts/comment_configs.py")
    assert " passed" in run(
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "tests/model/test_attention.py",
        "-k",
        "cosine",
    )

    toy.write_table(tmp_path / "pairs.tsv", toy.sentence_pairs())
    sizes = {
        "embedding_size": 24,
        "encoder": {"hidden_size": 24},
        "decoder": {"hidden_size": 24},
        "dropout": 0.0,
    }
    training = {
        "max_steps": 60,
        "validate_every": 60,
        "log_every": 10,
        "batch": {"size": 16},
        "learning_rate": {"peak": 0.01},
    }
    data = {
        "source": {"path": str(tmp_path / "pairs.tsv")},
        "split": {"dev": 20, "test": 40},
        "workers": 1,
    }
    config = config_from_dict(
        {"name": "cosine", "data": data, "model": sizes, "training": training}
    )
    prepare.run(config, tmp_path / "data/prepared/cosine", progress=False)
    (tmp_path / "toy.yaml").write_text(dump(config), encoding="utf-8")
    output = run("-m", "nmt", "train", "-c", "toy.yaml", "--set", "model.attention.score=cosine")
    losses = [float(loss) for loss in re.findall(r"loss (\d+\.\d+)", output)]
    assert losses[-1] < 0.7 * losses[0]
