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
READ_BY_TRANSLATE = [
    "src.vocab.txt",
    "tgt.vocab.txt",
    "src.spm.model",
    "tgt.spm.model",
    "checksums.json",
    "checkpoints/best.json",
    "checkpoints/step-00000004/model.safetensors",
    "checkpoints/step-00000004/checksums.json",
]
READ_BY_TRAIN = [
    "manifest.json",
    "checkpoints/last.json",
    "checkpoints/step-00000004/optimizer.safetensors",
    "checkpoints/step-00000004/progress.json",
]
PREPARED = [
    "manifest.json",
    "checksums.json",
    *(f"{side}.{end}" for side in ("src", "tgt") for end in ("vocab.txt", "spm.model")),
    *(
        f"{split}.{side}.{end}"
        for split in ("train", "dev")
        for side in ("src", "tgt")
        for end in ("npy", "offsets.npy")
    ),
    *(f"dev.{side}.txt" for side in ("src", "tgt")),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with prepared/ and run/; tests read it."""
    folder = tmp_path_factory.mktemp("made")
    training = {"max_steps": 4, "validate_every": 4, "batch": {"size": 16}}
    toy.train(folder, tokenizer={"kind": "bpe", "size": 60}, training=training)
    return folder


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    """A copy of the run."""
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


@pytest.mark.parametrize("name", READ_BY_TRANSLATE)
def test_translate_refuses_a_run_with_a_flipped_bit(nmt: Run, run: Path, name: str) -> None:
    flip(run / name)
    result = nmt("translate", "--run", run, SENTENCE)
    assert (result.status, result.out) == (1, "")
    assert result.err.startswith(f"nmt: {run / name}")
    assert result.err.count("\n") == 1


@pytest.mark.parametrize("name", READ_BY_TRAIN)
def test_resume_refuses_a_run_with_a_flipped_bit(nmt: Run, run: Path, name: str) -> None:
    flip(run / name)
    result = nmt(
        "train", "-c", run / "config.yaml", "-o", run, "--resume", "--set", "training.max_steps=5"
    )
    assert (result.status, result.err.count("\n")) == (1, 1)
    assert result.err.startswith(f"nmt: {run / name}: ")


@pytest.mark.parametrize("name", PREPARED)
def test_training_refuses_prepared_data_with_a_flipped_bit(
    nmt: Run, made: Path, tmp_path: Path, name: str
) -> None:
    prepared = Path(shutil.copytree(made / "prepared", tmp_path / "prepared"))
    flip(prepared / name)
    result = nmt(
        "train",
        "-c",
        made / "run" / "config.yaml",
        "--set",
        f"data.prepared={prepared}",
        "-o",
        tmp_path / "new",
        "-q",
    )
    assert (result.status, result.err.count("\n")) == (1, 1)
    assert result.err.startswith(f"nmt: {prepared / name}")


@pytest.mark.parametrize("name", ["src.vocab.txt", "tgt.spm.model"])
def test_a_run_with_a_flipped_bit_gives_no_vocabulary(
    nmt: Run, run: Path, tmp_path: Path, name: str
) -> None:
    flip(run / name)
    result = nmt(
        "prepare",
        "-c",
        run / "config.yaml",
        "-o",
        tmp_path / "new",
        "--set",
        f"vocabulary.like={run}",
        "-q",
    )
    assert (result.status, result.err.count("\n")) == (1, 1)
    assert result.err.startswith(f"nmt: {run / name}: damaged, ")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("side", ["src", "tgt"])
def test_evaluate_refuses_a_test_set_with_a_flipped_bit(
    nmt: Run, made: Path, run: Path, tmp_path: Path, side: str
) -> None:
    prepared = Path(shutil.copytree(made / "prepared", tmp_path / "prepared"))
    flip(prepared / f"test.{side}.txt")
    result = nmt("evaluate", run, "--data", prepared)
    assert (result.status, result.out) == (1, "")
    assert result.err.startswith(
        f"nmt: {prepared / f'test.{side}.txt'}: damaged, its content has changed since nmt "
        "wrote "
        "it; "
    )


def test_a_changed_configuration_is_used_with_a_warning(nmt: Run, run: Path) -> None:
    config = run / "config.yaml"
    config.write_text(
        config.read_text(encoding="utf-8").replace("beam: 5", "beam: 4"), encoding="utf-8"
    )
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


@pytest.mark.parametrize(
    "name",
    [
        *READ_BY_TRANSLATE[:4],
        "checkpoints/best.json",
        "checkpoints/step-00000004/model.safetensors",
    ],
)
def test_a_half_copied_run_is_refused(nmt: Run, run: Path, name: str) -> None:
    (run / name).unlink()
    result = nmt("translate", "--run", run, SENTENCE)
    assert (result.status, result.out) == (1, "")
    assert result.err.startswith(f"nmt: {run / name}: ")


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
    words = [
        "train",
        "-c",
        run / "config.yaml",
        "--set",
        f"data.prepared={prepared}",
        "-o",
        run,
        "--resume",
        "-q",
    ]
    assert nmt(*words, "--set", "training.max_steps=6").status == 0
    assert nmt("evaluate", run, "--data", prepared).status == 0
