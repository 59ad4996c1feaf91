"""A small run, loaded once for all tests of the server."""

from pathlib import Path

import pytest

from nmt.serve.answers import ServedRun
from tests import toy


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run; tests read it."""
    return toy.train(tmp_path_factory.mktemp("served"))


@pytest.fixture(scope="session")
def served(run_folder: Path) -> list[ServedRun]:
    """The same run twice, under two names."""
    from nmt.serve.server import load_runs

    return load_runs([run_folder, run_folder], device="cpu", overrides=())
