"""One flipped bit in any file of a run or of prepared data is noticed when the file is read, and
the message names the file.
"""

import json
import shutil
from pathlib import Path

import pytest

from nmt.files import CHECKSUMS_FILE
from tests import toy
from tests.conftest import Run

SENTENCE = "The dog sees the tree."
TOOLS = [f"{side}.{end}" for side in ("src", "tgt") for end in ("vocab.txt", "spm.model")]
CHECKPOINT = "checkpoints/step-00000004"
GRAPHS = [f"{name}.onnx" for name in ("encoder", "step", "output", "check")]
TRAIN = "train -q -c {run}/config.yaml"
# A command, and the files that it reads.
READ = {
    f"translate --run {{run}} {SENTENCE}": [
        *(f"run/{name}" for name in (*TOOLS, "checkpoints/best.json", "checksums.json")),
        *(f"run/{CHECKPOINT}/graphs-int8/{name}" for name in (*GRAPHS, "graphs.json")),
        f"run/{CHECKPOINT}/checksums.json",
    ],
    f"{TRAIN} -o {{run}} --resume --set training.max_steps=5": [
        "run/manifest.json",
        "run/checkpoints/last.json",
        f"run/{CHECKPOINT}/model.safetensors",
        f"run/{CHECKPOINT}/optimizer.safetensors",
        f"run/{CHECKPOINT}/progress.json",
    ],
    f"{TRAIN} --set data.prepared={{prepared}} -o {{run}}-new": [
        f"prepared/{name}"
        for name in (
            *("manifest.json", "checksums.json", *TOOLS, "dev.src.txt", "dev.tgt.txt"),
            *(f"train.{side}.{end}" for side in ("src", "tgt") for end in ("npy", "offsets.npy")),
            *(f"dev.{side}.{end}" for side in ("src", "tgt") for end in ("npy", "offsets.npy")),
        )
    ],
    "prepare -q -c {run}/config.yaml -o {run}-new --set vocabulary.like={run}": [
        "run/src.vocab.txt",
        "run/tgt.spm.model",
    ],
    "evaluate {run} --data {prepared}": ["prepared/test.src.txt", "prepared/test.tgt.txt"],
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with prepared/ and run/; tests read it."""
    folder = tmp_path_factory.mktemp("made")
    training = {"max_steps": 4, "validate_every": 4, "batch": {"size": 16}}
    toy.train(folder, tokenizer={"kind": "bpe", "size": 60}, training=training)
    return folder


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made / "run", tmp_path / "run"))


def flip(path: Path) -> None:
    """Flip the lowest bit of the byte in the middle, or of a letter or digit near it: the file
    stays readable text.
    """
    content = bytearray(path.read_bytes())
    index = next(
        (i for i in range(len(content) // 2, len(content)) if chr(content[i]).isalnum()),
        len(content) // 2,
    )
    content[index] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("command", "name"), [(command, name) for command, names in READ.items() for name in names]
)
def test_a_flipped_bit_is_noticed(
    nmt: Run, made: Path, run: Path, tmp_path: Path, command: str, name: str
) -> None:
    prepared = made / "prepared"
    if name.startswith("prepared"):
        prepared = Path(shutil.copytree(prepared, tmp_path / "prepared"))
    flip(tmp_path / name)
    result = nmt(*(word.format(run=run, prepared=prepared) for word in command.split()))
    assert (result.status, result.out, result.err.count("\n")) == (1, "", 1)
    assert result.err.startswith(f"nmt: {tmp_path / name}")
    assert not (tmp_path / "run-new" / "checkpoints").exists()


def test_a_changed_configuration_is_used_with_a_warning(nmt: Run, run: Path) -> None:
    config = run / "config.yaml"
    toy.replace(config, "beam: 5", "beam: 4")
    result = nmt("translate", "--run", run, SENTENCE)
    reason = (
        "edited or damaged since nmt wrote it; if you edited it, delete its entry in "
        f"{CHECKSUMS_FILE} beside it"
    )
    assert result.status == 0
    assert result.err.count("warning") == 1
    assert result.err.startswith(f"nmt: warning: {config}: {reason}\n")
    record = json.loads((run / CHECKSUMS_FILE).read_text())
    del record["sha256"]["config.yaml"], record["checksum"]
    (run / CHECKSUMS_FILE).write_text(json.dumps(record))
    assert "warning" not in nmt("translate", "--run", run, SENTENCE).err


def test_a_run_and_data_without_checksums_are_used(
    nmt: Run, made: Path, run: Path, tmp_path: Path
) -> None:
    """As older versions wrote them."""
    prepared = Path(shutil.copytree(made / "prepared", tmp_path / "prepared"))
    for path in [*run.rglob(CHECKSUMS_FILE), *prepared.rglob(CHECKSUMS_FILE)]:
        path.unlink()
    for path in [*run.rglob("*.json"), prepared / "manifest.json"]:
        value = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(value, dict):
            del value["checksum"]
            path.write_text(json.dumps(value), encoding="utf-8")
    expected = nmt("translate", "--run", made / "run", SENTENCE)
    assert nmt("translate", "--run", run, SENTENCE) == expected
    sets = ["--set", f"data.prepared={prepared}", "--set", "training.max_steps=6"]
    config = run / "config.yaml"
    assert nmt("train", "-c", config, *sets, "-o", run, "--resume", "-q").status == 0
    assert nmt("evaluate", run, "--data", prepared).status == 0
