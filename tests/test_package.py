"""What `import nmt` offers: prepare, train and load, as the commands of the same names do."""

import subprocess
import sys
from pathlib import Path

import pytest

import nmt
from nmt.config.yaml_text import dump
from nmt.errors import ConfigError
from tests import toy


def test_importing_nmt_is_cheap(root: Path) -> None:
    heavy = {"torch", "numpy", "spacy", "matplotlib", "sacrebleu", "pydantic", "yaml", "typer"}
    code = "import sys, nmt; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=root)
    assert heavy.isdisjoint(done.stdout.split())


def test_prepare_train_and_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config = toy.configure(
        toy.write_table(tmp_path / "pairs.tsv", toy.sentence_pairs()),
        model={"embedding_size": 8, "encoder": {"hidden_size": 8}, "decoder": {"hidden_size": 8}},
        training={"max_steps": 2},
    )
    Path("toy.yaml").write_text(dump(config), encoding="utf-8")
    assert nmt.prepare("toy.yaml", folder="elsewhere")["already_prepared"] is False
    assert nmt.prepare(config, folder="elsewhere")["already_prepared"] is True

    prepared = ["data.prepared=elsewhere"]
    run = nmt.train("toy.yaml", overrides=prepared, quiet=True)
    assert run == Path("runs/toy")
    assert nmt.train(config, overrides=[*prepared, "seed=2"], folder="second", device="cpu", quiet=True) == Path("second")
    (translation,) = nmt.load(run, overrides=["decoding.max_length_ratio=1"]).translate(["The dog sees the man."])
    assert isinstance(translation.text, str)
    with pytest.raises(ConfigError, match="contains a run already"):
        nmt.train(config, overrides=prepared, quiet=True)
    assert nmt.train(config, overrides=prepared, resume=True, quiet=True) == run
    with pytest.raises(ConfigError, match=r"^configuration with --set seed=x: seed: must be a whole number; got \"x\"$"):
        nmt.train(config, overrides=["seed=x"])
