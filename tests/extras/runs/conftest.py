"""A short training, for the tests of all that needs a finished one with several checkpoints."""

import shutil
from pathlib import Path

import pytest

from tests import toy


@pytest.fixture(scope="package")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with pairs.tsv, prepared/ and run/, which keeps the steps 2, 4 and 6; tests read it.
    A limit of time could have ended the training.
    """
    folder = tmp_path_factory.mktemp("made")
    steps = {"max_steps": 6, "max_minutes": 5, "validate_every": 2, "log_every": 2}
    kept = {"metric": "loss", "keep_best": 2, "keep_last": 3}
    toy.train(folder, training={**steps, **kept, "batch": {"size": 16}})
    return folder


@pytest.fixture
def short(made: Path, tmp_path: Path) -> Path:
    """A copy of the run, to write to."""
    return Path(shutil.copytree(made / "run", tmp_path / "short"))
