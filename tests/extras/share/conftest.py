"""What the tests of bundles and of the hub share."""

import shutil
from pathlib import Path

import pytest

from nmt.commands import evaluate
from nmt.extras.lexicon.lexicon import Entry, save_lexicon


@pytest.fixture(scope="package")
def trained(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a lexicon and an evaluation; tests read it."""
    run = shutil.copytree(folder / "run", tmp_path_factory.mktemp("share") / "run")
    save_lexicon(run / "lexicon.tsv", {"dog": [Entry("Hund", 1.0, 7)]})
    evaluate.command([run], metric=["BLEU"])
    return run
