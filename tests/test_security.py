"""A run from a stranger is data: it runs no code, leads nowhere else, needs bounded memory, and
loading it writes nothing.
"""

import json
import os
import shutil
import socket
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt import cli
from tests import toy
from tests.conftest import Run
from tests.toy import replace

Edit = Callable[[Path], object]
SENTENCE = "The dog sees the tree."


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    return toy.train(folder, training=toy.ONE_UPDATE, tokenizer={"kind": "bpe", "size": 60})


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    return shutil.copytree(
        trained, tmp_path / "run", ignore=shutil.ignore_patterns("checksums.json")
    )


def checkpoint(run: Path) -> Path:
    return run / "checkpoints" / "step-00000001"


def link(path: Path, target: str) -> None:
    """Replace a file or folder by a link."""
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    path.symlink_to(target)


def resize(run: Path, old: str, new: str) -> None:
    """A larger model, whose graphs are missing."""
    shutil.rmtree(checkpoint(run) / "graphs-int8")
    replace(run / "config.yaml", old, new)


def sparse(path: Path) -> None:
    """A file of 10 GB that takes no space."""
    with path.open("wb") as file:
        file.truncate(10_000_000_000)


def fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def tensors(path: Path, header: bytes, size: int | None = None) -> None:
    path.write_bytes(struct.pack("<Q", len(header) if size is None else size) + header)


def huge_tensor(path: Path) -> None:
    header = {
        "src_embedding.weight": {
            "dtype": "F32",
            "shape": [10**9, 10**9],
            "data_offsets": [0, 4 * 10**18],
        }
    }
    tensors(path, json.dumps(header).encode())


def nested_json(path: Path) -> None:
    path.write_text("[" * 100_000, encoding="utf-8")


HOSTILE: list[tuple[str, Edit, str]] = [
    (
        "linked weights",
        lambda run: link(checkpoint(run) / "model.safetensors", "/etc/passwd"),
        "links to /etc/passwd, outside of the run",
    ),
    (
        "linked graph",
        lambda run: link(next(run.glob("checkpoints/*/graphs-int8/step.onnx")), "/etc/passwd"),
        "links to /etc/passwd, outside of the run",
    ),
    (
        "linked vocabulary",
        lambda run: link(run / "src.vocab.txt", "/dev/zero"),
        "links to /dev/zero, outside of the run; copy the",
    ),
    (
        "linked checkpoint",
        lambda run: link(checkpoint(run), "/etc"),
        "links to /etc, outside of the run; copy the whole run, without",
    ),
    (
        "linked folder",
        lambda run: link(run / "checkpoints", "../.."),
        "outside of the run; copy the whole run, without links",
    ),
    (
        "pipe",
        lambda run: fifo(run / "tgt.vocab.txt"),
        "tgt.vocab.txt: is neither a file nor a folder; copy the whole run again",
    ),
    (
        "pointer outside",
        lambda run: replace(run / "checkpoints/best.json", "step-00000001", "../../x"),
        "best.json: damaged; it",
    ),
    (
        "absolute pointer",
        lambda run: replace(run / "checkpoints/best.json", "step-00000001", "/etc"),
        "best.json: damaged; it should",
    ),
    (
        "nested pointer",
        lambda run: nested_json(run / "checkpoints" / "best.json"),
        "best.json: damaged; it should name a checkpoint",
    ),
    (
        "huge pointer",
        lambda run: sparse(run / "checkpoints" / "best.json"),
        "best.json: damaged; it should name a checkpoint beside it",
    ),
    (
        "huge vocabulary",
        lambda run: sparse(run / "src.vocab.txt"),
        "src.vocab.txt: larger than 268,435,456 bytes",
    ),
    (
        "huge subwords",
        lambda run: sparse(run / "src.spm.model"),
        "src.spm.model: larger than 268,435,456 bytes",
    ),
    (
        "huge configuration",
        lambda run: sparse(run / "config.yaml"),
        "config.yaml: longer than 262,144 characters",
    ),
    (
        "huge checksums",
        lambda run: sparse(run / "checksums.json"),
        "checksums.json: damaged (larger than 16,777,216 bytes)",
    ),
    (
        "huge model",
        lambda run: resize(run, "hidden_size: 24", "hidden_size: 1000000000"),
        "does not fit the weights: it",
    ),
    (
        "large model",
        lambda run: resize(run, "hidden_size: 24", "hidden_size: 30000"),
        "does not fit the weights: it desc",
    ),
    (
        "deep model",
        lambda run: replace(run / "config.yaml", "  layers: 1", "  layers: 1000000000"),
        "layers: must be at most 100; got",
    ),
    (
        "huge tensor",
        lambda run: huge_tensor(checkpoint(run) / "model.safetensors"),
        "model.safetensors: cannot be loaded",
    ),
    (
        "long header",
        lambda run: tensors(checkpoint(run) / "model.safetensors", b"{}", 2**62),
        "model.safetensors: cannot be loaded",
    ),
    (
        "nested header",
        lambda run: tensors(checkpoint(run) / "model.safetensors", b"[" * 99999),
        "model.safetensors: cannot be loaded",
    ),
    (
        "pickle",
        lambda run: (checkpoint(run) / "model.safetensors").write_bytes(
            b"\x80\x04cos\nsystem\n(S'id'\ntR."
        ),
        "cannot be loaded",
    ),
    (
        "python tag",
        lambda run: replace(
            run / "config.yaml", "seed: 1 ", "seed: !!python/object/apply:os.system [id] "
        ),
        "not valid YAML",
    ),
]
HOSTILE = [row for row in HOSTILE if hasattr(os, "mkfifo") or row[0] != "pipe"]


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize(
    ("edit", "text"), [row[1:] for row in HOSTILE], ids=[row[0] for row in HOSTILE]
)
def test_a_run_from_a_stranger(nmt: Run, run: Path, edit: Edit, text: str) -> None:
    edit(run)
    nmt.refuses(text, "translate", "--run", run, SENTENCE)


@pytest.mark.usefixtures("little_memory")
def test_a_huge_manifest_is_not_read(nmt: Run, run: Path) -> None:
    """Translation does without it."""
    sparse(run / "manifest.json")
    sparse(run / "provenance.json")
    assert nmt("translate", "--run", run, SENTENCE).status == 0
    assert "manifest.json: damaged (larger than 16,777,216 bytes)" in nmt("runs", "show", run).err


def test_links_inside_of_a_run_are_followed(nmt: Run, run: Path) -> None:
    (run / "tgt.vocab.txt").rename(run / "x.txt")
    (run / "tgt.vocab.txt").symlink_to("x.txt")
    (run.parent / "link").symlink_to(run)
    assert nmt("translate", "--run", run.parent / "link", SENTENCE).status == 0


@pytest.mark.slow
def test_no_command_runs_code_from_data_nor_does_more_than_it_should(tmp_path: Path) -> None:
    toy.write_table(tmp_path / "pairs.tsv", toy.sentence_pairs())
    config = toy.configure(
        Path("pairs.tsv"),
        data={"split": {"dev": 200, "test": 20}},
        tokenizer={"kind": "bpe", "size": 60},
        model={"embedding_size": 8, "encoder": {"hidden_size": 8}, "decoder": {"hidden_size": 8}},
        training={
            "max_steps": 4,
            "validate_every": 2,
            "validation_pairs": 4,
            "keep_last": 2,
            "final_pairs": 4,
            "batch": {"size": 8},
            "learning_rate": {"peak": 0.02},
        },
        decoding={"beam": 2, "max_length_ratio": 1},
    )
    toy.write_table(tmp_path / "memory.tsv", toy.MEMORY)
    (tmp_path / "part.txt").write_text("The dog sees the tree.\n")
    (tmp_path / "teil").write_text("Der Hund sieht den Baum.\n")
    (tmp_path / "page.md").write_text("# The dog\n\nThe *dog* sees `code`. The tree sees {0}.\n")
    (tmp_path / "c.yaml").write_text(json.dumps(config.to_dict()), encoding="utf-8")
    train = ["train", "-c", "c.yaml", "-q"]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    commands = [
        ("write", ["init", "new"]),
        ("", ["--version"]),
        ("write", ["prepare", "-c", "c.yaml", "-q"]),
        ("write", ["train", "-c", "c.yaml", "--dry-run"]),
        ("write", [*train, "--set", "training.max_steps=2"]),
        ("write", [*train, "--resume"]),
        ("write", ["runs", "average", "runs/toy", "--kept", "last"]),
        ("write", ["neighbors", "runs/toy"]),
        ("write", ["adapt", "runs/toy", "--with", "memory.tsv", "--max-loss", "100", "-q"]),
        ("", ["translate", "--run", "runs/toy", "--memory", "memory.tsv", SENTENCE]),
        ("write", ["evaluate", "runs/toy", "--metric", "chrF"]),
        ("write", ["analyze", "runs/toy", "--split", "dev", "--report", "report"]),
        ("write", ["augment", "data/prepared/toy", "-o", "more", "--forward", "runs/toy"]),
        ("write", ["runs", "calibrate", "runs/toy"]),
        ("", ["runs", "check", "runs/toy"]),
        ("", ["runs", "check", "more"]),
        ("write", ["share", "bundle", "runs/toy", "-o", "toy.nmt"]),
        ("write", ["translate", "--run", "toy.nmt", "--attention", "x.html", SENTENCE]),
        # Takes the lock of a training, to see whether there is one.
        ("write", ["runs", "show", "runs/toy"]),
        ("write", ["runs", "list", "runs"]),
        ("write", ["export", "runs/toy", "-o", "exported", "--set", "decoding.precision=int8"]),
        ("", ["translate", "--run", "runs/toy", SENTENCE]),
        ("write", ["translate", "--run", "runs/toy", "--file", "page.md", "-o", "seite.md"]),
        ("", ["check", "part.txt", "teil", "--json"]),
        ("", ["translate", "--run", "runs/toy", "--json", "--n-best", "2", SENTENCE]),
        ("write", ["translate-files", "--run", "runs/toy", "--file", "*.txt", "-o", "translated"]),
        ("", ["translate", "--run", "exported", SENTENCE]),
        ("connect", ["serve", "runs/toy", "--port", port]),
    ]
    script = Path(__file__).with_name("watched_commands.py")
    paths = [*sys.path, os.environ["PYTHONPATH"]]
    process = subprocess.run(
        [sys.executable, script, json.dumps(commands)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr[-2000:]
    assert '"translatedText":' in process.stdout
    watched = {name for _, words in commands for name in (words[0], " ".join(words[:2]))}
    names = {name for name, row in cli.all_commands().items() if row.place}
    assert names <= watched, "the watch does not run a new command"


# No test reaches another machine, nor does a process that it starts; see no_network/

FAR = "192.0.2.1"  # no machine has this address


@pytest.mark.parametrize(
    "reach",
    [
        lambda: socket.create_connection((FAR, 80), timeout=1),
        lambda: socket.create_connection(("example.com", 80), timeout=1),
        lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", (FAR, 80)),
        lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM).connect_ex((FAR, 80)),
        lambda: socket.gethostbyname("example.com"),
    ],
)
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_other_machines_are_out_of_reach(reach: Callable[[], object]) -> None:
    with pytest.raises(PermissionError, match=r"a test (connects to|looks up)"):
        reach()


def test_processes_are_cut_off_too() -> None:
    script = f"import socket; socket.create_connection(('{FAR}', 80), timeout=1)"
    result = subprocess.run(
        [sys.executable, "-c", script], env=os.environ, capture_output=True, text=True, check=False
    )
    assert "PermissionError: a test connects to 192.0.2.1" in result.stderr
