"""`nmt train --dry-run`."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from nmt.data.batches import plan_batches
from nmt.training import dry_run
from nmt.training.loop import Training
from tests.conftest import Run
from tests.training.test_loop import limit_memory, make_config, make_corpus, make_model

SCHEDULE = {"schedule": "linear", "warmup_steps": 20, "steps": 200}
TRAINING = {"epochs": 3, "batch": {"size": 16}, "learning_rate": SCHEDULE}


def test_it_estimates_an_epoch_and_writes_nothing(nmt: Run, folder: Path, tmp_path: Path) -> None:
    words = ("train", "-c", folder / "run" / "config.yaml", "-o", tmp_path / "run", "--dry-run")
    before = sorted(folder.rglob("*"))
    result = nmt(*words, "--set", f"training={json.dumps(TRAINING)}")
    assert result.status == 0
    assert result.out.count("\n") < 20  # the configuration is in its file
    assert re.search(r"total +[\d,]+ parameters\n", result.out)
    assert f"the run folder would be {tmp_path / 'run'}" in result.out
    times = r"an epoch takes about \d+ s on this machine, all 99 updates [\d.]+ (s|minutes)"
    assert re.search(times + r", without validation; peak memory about [\d,]+ MB\n", result.out)
    assert re.search(r"learning rate   [▁-█]{48}  0.00\d+ at most, 0.\d+ at step 99\n", result.out)
    assert sorted(folder.rglob("*")) == before
    assert not [*tmp_path.iterdir()]


def test_the_estimate_of_an_epoch_is_near_its_sum() -> None:
    """For batches whose time grows with their positions."""
    n_positions = np.random.default_rng(1).integers(20, 400, size=60)
    seconds = dry_run.estimate_epoch(n_positions, lambda index: 1.0 + 0.25 * n_positions[index])
    assert seconds == pytest.approx((1.0 + 0.25 * n_positions).sum(), rel=0.02)


@pytest.mark.parametrize("max_positions", [10, 100, 777, 2500, 10**9])
def test_a_dry_run_finds_the_largest_batches_that_fit(
    max_positions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a simulated memory, which is emptied after the failed pass, not while it is handled."""
    handled: list[bool] = []

    def largest_batch(size: int) -> int:
        tokens = config.training.batch.model_copy(update={"unit": "tokens", "size": size})
        lengths = corpus.src.lengths, corpus.tgt.lengths
        return max(
            len(pairs) * sum(int(side[pairs].max()) + 1 for side in lengths)
            for pairs in plan_batches(*lengths, tokens, key=(7, 3))
        )

    limit_memory(
        monkeypatch, lambda batch: batch.src.numel() + batch.tgt_in.numel() <= max_positions
    )
    monkeypatch.setattr(
        torch.cuda, "empty_cache", lambda: handled.append(sys.exc_info()[1] is not None)
    )
    config = make_config()
    corpus, _ = make_corpus(200, seed=1, longest=20)
    size, fitting = dry_run.find_batch_size(Training.of(make_model(config), corpus, config))
    if fitting:
        assert largest_batch(fitting) <= max_positions
    if max_positions < 10**9:
        assert largest_batch(max(21, fitting + fitting // 8 + 1)) > max_positions
    assert size == max(21, fitting - fitting // 10)
    assert any(handled) is False
    assert bool(handled) is (max_positions < 10**9)
