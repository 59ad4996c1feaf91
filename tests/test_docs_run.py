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
from contextlib import suppress
from pathlib import Path

import pytest

from nmt.config.yaml_text import dump
from nmt.extras.adapt import adaptation
from nmt.training import calibrate
from tests import toy
from tests.conftest import Run
from tests.documentation import COMMANDS, ROOT, blocks_of, text_of

pytestmark = pytest.mark.slow

RUNS = (
    "tatoeba tatoeba-large multi30k-more/students/backward-1 sample a b s1 s2 s3 m none "
    "attention en-de mine mine-more own-more"
)
OPPOSITE_RUNS = "tatoeba-de-en multi30k-more/students/forward-1 ../../back/runs/back"
# The tests run these, but not the commands that train or download.
RUNNABLE = r"nmt (?:adapt|translate|analyze|evaluate|export|neighbors|runs|share bundle|init) "
# The Python page has a prefix "Wo".
PAIRS = [(src, tgt.replace("Ja", "Wo")) for src, tgt in toy.sentence_pairs()]
SIZES = {"embedding_size": 8, "encoder": {"hidden_size": 8}, "decoder": {"hidden_size": 8}}
ENVIRONMENT = os.environ | {
    "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
}


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with everything that the commands name: runs, prepared data and texts."""
    folder = tmp_path_factory.mktemp("docs")
    (folder / "opposite").mkdir()
    split = {"dev": 20, "test": 40, "direction": "en-de"}
    prepared = str(folder / "opposite" / "prepared")
    data = {"direction": "de-en", "split": split, "prepared": prepared}
    opposite = toy.train(folder / "opposite", data=data)  # older: not the default run
    training = {"max_steps": 60, "validate_every": 30, "batch": {"size": 16}, "keep_best": 2}
    run = toy.train(folder, training=training)
    for names, source in ((OPPOSITE_RUNS, opposite), (RUNS, run)):
        for name in names.split():
            shutil.copytree(source, folder / "runs" / name)
    for name in ("elsewhere/prepared", "data/prepared/tatoeba"):
        shutil.copytree(folder / "prepared", folder / name)
    src, tgt = zip(*toy.sentence_pairs()[:20], strict=True)
    files = dict.fromkeys(("letters.txt", "news.en"), src)
    files |= dict.fromkeys(("news.de", "out.txt", "r1", "r2", "baseline/test.txt"), tgt)
    files |= dict(zip(("train.en", "train.fr"), zip(*PAIRS, strict=True), strict=True))
    files["ui.en-de.tsv.gz"] = tuple("\t".join(pair) for pair in toy.MEMORY)
    files |= {f"parts/{start:02}.gz": src[start : start + 4] for start in range(0, 20, 4)}
    for name, lines in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        text = "".join(f"{line}\n" for line in lines).encode()
        (folder / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    documents = {
        "README.md": "# The dog\n\nThe *dog* sees the tree.\n",
        "de.po": 'msgid ""\nmsgstr ""\n\nmsgid "The dog sees."\nmsgstr ""\n',
        "film.srt": "1\n00:00:01,000 --> 00:00:02,000\nThe dog sees.\n",
        "terms.tsv": "dog\tHund\n",
    }
    for name, content in documents.items():
        (folder / name).write_text(content, encoding="utf-8")
    toy.write_table(folder / "pairs.tsv", PAIRS)
    toy.write_table(folder / "field.tsv", toy.sentence_pairs())
    segment = '<tuv xml:lang="{}"><seg>{}</seg></tuv>'
    units = (
        f"<tu>{segment.format('en', src)}{segment.format('de', tgt)}</tu>"
        for src, tgt in toy.MEMORY
    )
    memory = f'<tmx><header srclang="en"/><body>{"".join(units)}</body></tmx>'
    (folder / "memory.tmx").write_text(memory, encoding="utf-8")
    return folder


@pytest.mark.parametrize("page", sorted({page for page, _ in COMMANDS}))
def test_commands_run(
    page: str, workplace: Path, nmt: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the order of the page: a command may need what an earlier one has written."""
    monkeypatch.chdir(workplace)
    monkeypatch.setattr(calibrate, "MIN_SENTENCES", 20)
    monkeypatch.setattr(adaptation, "best_share", lambda *_: 1.0)  # a small model gains nothing
    shutil.rmtree("runs/tatoeba-onnx", ignore_errors=True)  # of another page: not the default run
    for _, words in [each for each in COMMANDS if each[0] == page]:
        if re.match(RUNNABLE, " ".join(words) + " "):
            shutil.rmtree("mine", ignore_errors=True)
            result = nmt(*words[1:])
            assert result.status == 0, result.err
            assert result.out or "-o" in words


def test_json_keys(workplace: Path, nmt: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table on the page about translating has each key of the output, and no other."""
    monkeypatch.chdir(workplace)
    monkeypatch.setattr(calibrate, "MIN_SENTENCES", 20)
    assert nmt("runs", "calibrate", "runs/a").status == 0
    section = text_of("docs/translate.md").partition("## JSON")[2].partition("\n## ")[0]
    keys = re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`.*?) \|", section, re.M)))
    options = ["--run", "runs/a", "--json", "--n-best", "2", "--least-confidence", "0.5"]
    outputs = [
        nmt("translate", *options, "The dog sees. The cat sees.").out,
        nmt("translate", *options, "--memory", "memory.tmx", "Now the dog sees.").out,
    ]
    assert sorted(keys) == sorted({key for output in outputs for key in json.loads(output)})


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds the workers in /proc")
def test_a_corpus_with_dask_loses_nothing_when_a_worker_is_killed(
    workplace: Path, nmt: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program of the page about scale; the worker that translates when the first part is done
    is killed.
    """
    monkeypatch.chdir(workplace)
    (block,) = blocks_of("docs/scale.md", "python")
    Path("translate_corpus.py").write_text(block.text, encoding="utf-8")
    shutil.rmtree("out", ignore_errors=True)
    command = [sys.executable, "translate_corpus.py"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT) as program:
        assert program.stdout is not None
        printed = [program.stdout.readline()]
        # Each part is translated by a process of its own, the child of a worker.
        while not (busy := [each for each in children(program.pid) if children(each)]):
            assert program.poll() is None, "all is translated before a worker could be killed"
            time.sleep(0.02)
        os.kill(busy[0], signal.SIGKILL)
        printed += program.stdout.readlines()
    assert program.returncode == 0
    assert sorted(printed) == [f"parts/{start:02}.gz done\n" for start in range(0, 20, 4)]
    lines = "".join(path.read_text(encoding="utf-8") for path in sorted(Path("out").glob("[0-9]*")))
    assert lines == nmt("translate", "--run", "runs/tatoeba", "--file", "letters.txt").out


def children(process: int) -> list[int]:
    with suppress(FileNotFoundError, ProcessLookupError):
        paths = Path(f"/proc/{process}/task").glob("*/children")
        return [int(child) for path in paths for child in path.read_text(encoding="utf-8").split()]
    return []


def test_your_own_data(tmp_path: Path, nmt: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's pairs.yaml, with more pairs than the page shows and a small model."""
    monkeypatch.chdir(tmp_path)
    table, config, *_ = blocks_of("docs/data.md", "text", "yaml")
    assert all(line.count("\t") == 1 for line in table.text.splitlines())
    toy.write_table(Path("pairs.tsv"), PAIRS)
    Path("pairs.yaml").write_text(config.text, encoding="utf-8")
    small = (
        "data.split.dev=20 data.split.test=20 tokenizer.size=60 training.max_steps=2 "
        "model.decoder.hidden_size=8"
    )
    settings = [word for setting in small.split() for word in ("--set", setting)]
    for words in (["prepare"], ["train", "--dry-run"], ["train"]):
        assert nmt(*words, "-c", "pairs.yaml", *settings).status == 0
    assert nmt("evaluate").status == 0
    assert nmt("translate", "Where is the dog?").status == 0


def test_python_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    table = toy.write_table(Path("pairs.tsv"), PAIRS)
    config = toy.configure(table, model=SIZES, training={"max_steps": 2})
    Path("configs").mkdir()
    Path("configs/tatoeba.yaml").write_text(dump(config), encoding="utf-8")
    names: dict[str, object] = {}  # a block may use what those before it import
    for block in blocks_of("docs/reference/python.md", "python"):
        shutil.rmtree("runs", ignore_errors=True)  # each block trains the same run
        exec(compile(block.text, "python.md", "exec"), names)
    assert re.search(r"\(\d+, \d+\)$", capsys.readouterr().out, re.MULTILINE)


def test_add_parts_of_your_own(tmp_path: Path) -> None:
    """The page's files and commands, in a folder of the user."""
    page, folder = text_of("docs/extend.md"), tmp_path / "first"
    files = re.findall(r"`([\w/]+\.\w+)`:\n\n```\w+\n(.*?)^```", page, re.M | re.S)
    assert {name.partition("/")[0] for name, _ in files} == {"mine", "couplets.yaml"}
    for name, text in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    commands = "".join(block.text for block in blocks_of("docs/extend.md", ""))
    script = f'nmt() {{ "{sys.executable}" -m nmt "$@"; }}\nset -e\n{commands}'
    command = ["bash", "-c", script]
    done = subprocess.run(
        command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"validation .* exact \d", done.stderr)
    assert (folder / "dog.png").is_file()
