"""`nmt train --dry-run`."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from nmt.training import dry_run
from tests.conftest import Run

TRAINING = {"epochs": 3, "batch": {"size": 16}}


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
    assert sorted(folder.rglob("*")) == before
    assert not [*tmp_path.iterdir()]


def test_the_estimate_of_an_epoch_is_near_its_sum() -> None:
    """For batches whose time grows with their positions."""
    n_positions = np.random.default_rng(1).integers(20, 400, size=60)
    seconds = dry_run.estimate_epoch(n_positions, lambda index: 1.0 + 0.25 * n_positions[index])
    assert seconds == pytest.approx((1.0 + 0.25 * n_positions).sum(), rel=0.02)
