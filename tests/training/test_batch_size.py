"""`training.batch.size: auto`, with a simulated memory."""

import gc
import json
import os
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch.optim import Optimizer

from nmt.commands import prepare, train
from nmt.config.schema import Config
from nmt.config.yaml_text import dump
from nmt.data.batches import Batch, plan_batches
from nmt.data.corpus import Corpus
from nmt.errors import ConfigError, TrainingError
from nmt.model.seq2seq import Seq2Seq
from nmt.run.folder import build_model, create_run, load_run_config
from nmt.training import batch_size, dry_run, objective
from nmt.training.loss import Loss, batch_loss
from nmt.training.optimization import build_optimizer
from tests import toy
from tests.training.test_loop import make_config, make_corpus, make_model

ROOT = Path(__file__).resolve().parent.parent.parent
AUTO = {"size": "auto", "unit": "tokens"}
SIZES = {
    "embedding_size": 16,
    "encoder": {"hidden_size": 16},
    "decoder": {"hidden_size": 16},
    "dropout": 0.1,
}


def positions(batch: Batch) -> int:
    return batch.src.numel() + batch.tgt_in.numel()


def limit_memory(monkeypatch: pytest.MonkeyPatch, max_positions: int) -> list[Batch]:
    """From now on a batch of more than `max_positions` positions does not fit; returns those that
    did.
    """
    fitted: list[Batch] = []

    def limited(model: Seq2Seq, batch: Batch, *arguments: Any) -> Loss:
        if positions(batch) > max_positions:
            raise torch.OutOfMemoryError
        fitted.append(batch)
        return batch_loss(model, batch, *arguments)

    monkeypatch.setattr(objective, "batch_loss", limited)
    monkeypatch.setattr(batch_size, "check_device", lambda _: None)
    return fitted


def largest_batch(corpus: Corpus, config: Config, size: int) -> int:
    """The number of positions of the largest batch of an epoch."""
    plan = plan_batches(
        corpus.src.lengths,
        corpus.tgt.lengths,
        batch_size.with_batch_size(config, size).training.batch,
        key=(7, 3),
    )
    return max(
        len(pairs) * int(corpus.src.lengths[pairs].max() + corpus.tgt.lengths[pairs].max() + 2)
        for pairs in plan
    )


def measure(n_pairs: int, config: Config) -> tuple[batch_size.BatchSizeResult, Corpus]:
    corpus, _ = make_corpus(n_pairs, seed=1, longest=20)
    model = make_model(config)
    return batch_size.find_batch_size(
        model, build_optimizer(model, config.training), corpus, config
    ), corpus


@pytest.mark.parametrize("max_positions", [100, 777, 2500])
def test_finds_the_largest_size_whose_batches_all_fit(
    max_positions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = make_config(training={"batch": AUTO})
    fitted = limit_memory(monkeypatch, max_positions)
    result, corpus = measure(600, config)
    assert largest_batch(corpus, config, result.fitting) <= max_positions
    larger = range(
        result.fitting + 1, result.fitting + result.fitting // batch_size.TOLERANCE_DIVISOR + 2
    )
    assert any(largest_batch(corpus, config, size) > max_positions for size in larger)
    assert result.size == result.fitting - result.fitting // 10
    assert max(pairs * (src + tgt) for pairs, src, tgt in result.tried) == largest_batch(
        corpus, config, result.fitting
    )
    assert max(map(positions, fitted)) <= max_positions
    pairs, src, tgt = result.tried[0]
    assert (
        f"{result.fitting:,} fit into the memory, tried with {pairs:,} pairs of {src} and {tgt}"
        in str(result)
    )


def test_stops_when_one_batch_holds_all_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = limit_memory(monkeypatch, 10**9)
    result, corpus = measure(40, make_config(training={"batch": AUTO}))
    assert max(map(len, fitted)) == len(corpus) == 40
    assert result.fitting < 4 * 40 * 21


def test_memory_is_freed_after_the_handler(monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory is emptied when the failed pass is gone, not while it is being handled."""
    limit_memory(monkeypatch, 500)
    handled: list[bool] = []
    monkeypatch.setattr(
        torch.cuda, "empty_cache", lambda: handled.append(sys.exc_info()[1] is not None)
    )
    measure(300, make_config(training={"batch": AUTO}))
    assert len(handled) > 4
    assert not any(handled)


def test_a_sentence_that_does_not_fit_alone_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    limit_memory(monkeypatch, 30)
    with pytest.raises(
        TrainingError, match="out of memory with batches of 21 target tokens, which the longest"
    ):
        measure(300, make_config(training={"batch": AUTO}))


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Config:
    folder = tmp_path_factory.mktemp("capacity")
    config = toy.configure(
        toy.write_table(folder / "pairs.tsv", toy.sentence_pairs()[:200]),
        data={"split": {"dev": 10, "test": 10}, "prepared": str(folder / "prepared")},
        model=SIZES,
        training={"max_steps": 6, "validation_pairs": 5, "batch": AUTO},
    )
    prepare.run(config, progress=False)
    return config


def stopped_at(config: Config, step: int) -> Config:
    return config.model_copy(
        update={"training": config.training.model_copy(update={"max_steps": step})}
    )


def test_a_run_keeps_the_size_and_resumes_with_it(
    prepared: Config,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    limit_memory(monkeypatch, 1500)
    train.run(stopped_at(prepared, 3), tmp_path / "parts", device="cpu")
    size = load_run_config(tmp_path / "parts").training.batch.fixed_size
    assert f"training.batch.size: auto is {size} target tokens; " in capsys.readouterr().err
    monkeypatch.undo()  # whatever fits now, and even on a CPU
    train.run(prepared, tmp_path / "parts", device="cpu", resume=True)
    assert "auto is" not in capsys.readouterr().err
    assert load_run_config(tmp_path / "parts").training.batch.fixed_size == size
    train.run(
        batch_size.with_batch_size(prepared, size), tmp_path / "whole", device="cpu", quiet=True
    )
    one, other = (
        load_file(tmp_path / run / "checkpoints/step-00000006/model.safetensors")
        for run in ("parts", "whole")
    )
    assert one.keys() == other.keys()
    assert all(torch.equal(value, other[name]) for name, value in one.items())


def test_the_search_leaves_no_tensors_behind(
    prepared: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit_memory(monkeypatch, 1500)
    measure, tensors = batch_size.find_batch_size, list[weakref.ref[torch.Tensor]]()

    def watched(
        model: Seq2Seq, optimizer: Optimizer, corpus: Corpus, config: Config
    ) -> batch_size.BatchSizeResult:
        result = measure(model, optimizer, corpus, config)
        states = [state["exp_avg"] for state in optimizer.state.values()]
        tensors.extend(map(weakref.ref, [*model.parameters(), *states]))
        return result

    def counting(folder: Path, config: Config) -> Seq2Seq:
        alive.append(sum(tensor() is not None for tensor in tensors))
        return build_model(folder, config)

    alive = list[int]()
    monkeypatch.setattr(batch_size, "find_batch_size", watched)
    monkeypatch.setattr(train, "build_model", counting)
    gc.disable()
    try:
        train.run(stopped_at(prepared, 1), tmp_path / "run", device="cpu", quiet=True)
    finally:
        gc.enable()
    assert len(tensors) > 20
    assert alive == [0, 0]


def test_a_folder_with_a_run_is_refused_before_the_search(
    prepared: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted = limit_memory(monkeypatch, 1500)
    create_run(tmp_path / "run", prepared, prepared.prepared_folder)
    with pytest.raises(ConfigError, match="run: contains a run already"):
        train.run(prepared, tmp_path / "run", device="cpu", quiet=True)
    assert fitted == []


def test_a_cpu_is_refused_and_no_folder_is_made(prepared: Config, tmp_path: Path) -> None:
    message = (
        "training.batch.size: auto measures the memory of a GPU, but this training runs on "
        "cpu; set a number, such as 2000"
    )
    with pytest.raises(ConfigError, match=message):
        train.run(prepared, tmp_path / "run", device="cpu")
    with pytest.raises(ConfigError, match=message):
        dry_run.describe(prepared, device="cpu")
    assert not (tmp_path / "run").exists()


def test_a_dry_run_uses_the_size(prepared: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    limit_memory(monkeypatch, 1500)
    text = dry_run.describe(prepared, device="cpu")
    assert "training.batch.size: auto is " in text
    assert "batches per epoch" in text


def test_planning_batches_with_auto_is_an_error() -> None:
    with pytest.raises(
        ConfigError,
        match=r"training\.batch\.size: only `nmt train` can find the size for auto; set a number",
    ):
        plan_batches(
            np.array([3], np.int32),
            np.array([3], np.int32),
            make_config(training={"batch": AUTO}).training.batch,
            key=(1, 0),
        )


@pytest.mark.parametrize(
    ("batch", "fault"),
    [
        (
            {"size": "auto"},
            "training.batch.size, training.batch.unit: auto counts tokens; set unit to tokens",
        ),
        ({"size": "much"}, 'training.batch.size: must be a whole number or auto; got "much"'),
        ({"size": 0}, "training.batch.size: must be at least 1 or auto; got 0"),
    ],
    ids=str,
)
def test_an_invalid_size_is_reported_with_all_other_problems(
    batch: dict[str, Any], fault: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        make_config(training={"batch": batch, "momentum": 0.5})
    momentum = "training.momentum, training.optimizer: only sgd uses momentum, not adamw"
    assert str(raised.value).splitlines()[1:] == [f"  {fault}", f"  {momentum}"]


SCRIPT = """
import os, sys, torch
from pathlib import Path
from nmt.commands import train
from nmt.config import load as config
from nmt.training import batch_size, objective
from nmt.training.loss import batch_loss

def limited(model, batch, *arguments):
    if batch.src.numel() + batch.tgt_in.numel() > (900, 1500)[1 - int(os.environ["RANK"])]:
        raise torch.OutOfMemoryError
    return batch_loss(model, batch, *arguments)

objective.batch_loss, batch_size.check_device = limited, lambda _: None
train.run(config.load(Path("toy.yaml")), Path(sys.argv[1]), device="cpu")
"""


@pytest.mark.slow
def test_the_smallest_size_of_all_processes_is_used(
    prepared: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first process has the larger memory here."""
    (tmp_path / "toy.yaml").write_text(dump(stopped_at(prepared, 2)), encoding="utf-8")
    (tmp_path / "script.py").write_text(SCRIPT, encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node=2",
        "script.py",
        "together",
    ]
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ["PYTHONPATH"]]),
    }
    done = subprocess.run(
        command,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    limit_memory(monkeypatch, 900)
    train.run(stopped_at(prepared, 1), tmp_path / "alone", device="cpu", quiet=True)
    together, alone = (
        load_run_config(tmp_path / run).training.batch.fixed_size for run in ("together", "alone")
    )
    assert together == alone
    assert f"auto is {together} target tokens" in done.stderr
    assert json.loads((tmp_path / "together/checkpoints/last.json").read_text())["step"] == 2
