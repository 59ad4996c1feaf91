"""`nmt runs check`: what it says of runs and prepared data, whole or damaged."""

import errno
import shutil
from pathlib import Path

import pytest

from nmt.files import CHECKSUMS_FILE, sha256_of
from nmt.run.journal import read_events
from tests.conftest import Run

BEST = "step-00000006"


def not_ok(nmt: Run, folder: Path) -> list[str]:
    """The rows of all that is damaged or has a warning."""
    result = nmt("runs", "check", folder)
    rows = [line for line in result.out.splitlines() if not line.startswith("ok ")]
    assert result.status == any(row.startswith("damaged ") for row in rows)
    return rows


@pytest.mark.parametrize("name", ["run", "prepared"])
def test_all_is_well(nmt: Run, made: Path, name: str) -> None:
    result = nmt("runs", "check", made / name)
    assert (result.status, result.err) == (0, "")
    assert {line.split()[0] for line in result.out.splitlines()} == {"ok"}


def test_every_damage_of_a_run_is_listed_with_its_remedy(nmt: Run, short: Path) -> None:
    weights = short / "checkpoints" / BEST / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-5] + b"12345")
    graph = weights.with_name("graphs-int8") / "step.onnx"
    graph.write_bytes(b"?")
    (short / "checkpoints" / "best.json").unlink()
    optimizer = short / "checkpoints" / "step-00000002" / "optimizer.safetensors"
    whole = optimizer.read_bytes()
    optimizer.write_bytes(b"")
    assert any(str(optimizer) in row for row in not_ok(nmt, short))
    optimizer.write_bytes(whole)
    with (short / "config.yaml").open("a") as config:
        config.write("# mine\n")
    result = nmt("runs", "check", short)
    damaged = f"best.json, checkpoint {BEST}, graphs-int8 of {BEST}"
    assert (result.status, result.err) == (1, f"nmt: damaged: {damaged}\n")
    rows = [line.split(maxsplit=1) for line in result.out.splitlines()]
    assert [row for row in rows if row[0] != "ok"] == [
        [
            "warning",
            f"{short / 'config.yaml'}: edited or damaged since nmt wrote it; if you edited it, "
            f"delete its entry in {CHECKSUMS_FILE} beside it",
        ],
        [
            "damaged",
            f"{short / 'checkpoints' / 'best.json'}: missing; copy the run again, or name one of "
            "its checkpoints",
        ],
        [
            "damaged",
            f"{weights}: damaged, its content has changed since nmt wrote it; copy it again, or "
            "use another checkpoint",
        ],
        [
            "damaged",
            f"{graph}: damaged, its content has changed since nmt wrote it; delete the folder "
            "graphs-int8, and nmt makes it again from the weights",
        ],
    ]
    intact = short / "checkpoints" / "step-00000002"
    assert ["ok", f"checkpoint {intact.name}"] in rows
    assert nmt("translate", "--run", intact, "The dog sees the tree.").status == 0


def test_a_run_with_graphs_alone(nmt: Run, short: Path) -> None:
    checkpoints = short / "checkpoints"
    (checkpoints / "last.json").unlink()
    for path in checkpoints.glob("step-*"):
        if path.name != BEST:
            shutil.rmtree(path)
    weights = checkpoints / BEST / "model.safetensors"
    digest = sha256_of(weights)
    for path in checkpoints.glob("*/*.safetensors"):
        path.unlink()
    assert not_ok(nmt, short) == []
    assert nmt("runs", "show", short).status == 0
    assert nmt("evaluate", short, "--metric", "BLEU").status == 0
    (evaluation,) = read_events(short / "evaluation" / "history.jsonl")
    assert evaluation["provenance"]["model"]["sha256"] == digest


def test_a_checkpoint_that_was_being_deleted_is_no_damage(nmt: Run, short: Path) -> None:
    deleted = short / "checkpoints" / "step-00000003"
    shutil.copytree(short / "checkpoints" / "step-00000002", deleted)
    (deleted / "model.safetensors").unlink()
    assert not_ok(nmt, short) == [
        f"warning  {deleted}: half deleted and not needed; the next training deletes the rest"
    ]
    (short / "checkpoints" / "last.json").write_text("{}")  # it may have named this checkpoint
    assert any(row.startswith("damaged") and "last.json" in row for row in not_ok(nmt, short))


@pytest.mark.parametrize("name", [CHECKSUMS_FILE, "best.json"])
def test_a_lack_of_memory_is_no_damage(
    nmt: Run, short: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Path.read_bytes

    def read_bytes(path: Path) -> bytes:
        if path.name == name:
            raise OSError(errno.ENOMEM, "Cannot allocate memory", str(path))
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", read_bytes)
    for words in (("runs", "check", short), ("translate", "--run", short, "The dog.")):
        result = nmt(*words)
        assert (result.status, result.err.splitlines()[-1][:20]) == (1, "nmt: out of memory; ")
        assert "damaged" not in result.out + result.err


@pytest.mark.parametrize("with_checksums", [True, False])
def test_a_damaged_file_of_prepared_data_is_found(
    nmt: Run, made: Path, tmp_path: Path, with_checksums: bool
) -> None:
    prepared = Path(shutil.copytree(made / "prepared", tmp_path / "prepared"))
    text = prepared / "test.tgt.txt"
    text.write_bytes(text.read_bytes().replace(b"Hund", b"Hand", 1))
    if not with_checksums:
        (prepared / CHECKSUMS_FILE).unlink()
    (made / "pairs.tsv").rename(tmp_path / "pairs.tsv")
    rows = not_ok(nmt, prepared)
    (tmp_path / "pairs.tsv").rename(made / "pairs.tsv")
    starts = {f"damaged  {prepared}", f"warning  {made / 'pairs.tsv'}"}
    assert starts <= {row.split(":")[0] for row in rows}
    assert any(str(text) in row for row in rows) == with_checksums
