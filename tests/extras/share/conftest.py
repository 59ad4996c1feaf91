"""What the tests of bundles and of the hub share."""

import shutil
from pathlib import Path

import pytest

from nmt.commands import evaluate


@pytest.fixture(scope="package")
def trained(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with an evaluation; tests read it."""
    run = shutil.copytree(folder / "run", tmp_path_factory.mktemp("share") / "run")
    evaluate.command([run], metric=["BLEU"])
    return run
