"""Loading a run to translate with."""

import shutil
from pathlib import Path

import pytest
import torch

from nmt.decoding.fast import Int8Linear, PackedLinear
from nmt.files import replacing
from nmt.model.seq2seq import Seq2Seq
from nmt.run import load
from nmt.run.checkpoint import load_weights
from nmt.run.folder import build_model, load_run_config
from nmt.run.load import find_run_and_checkpoint, load_model, load_translator
from tests.conftest import Run


@pytest.mark.parametrize(("precision", "layer"), [("float32", PackedLinear), ("int8", Int8Linear)])
def test_a_loaded_model_has_packed_weights(run: Path, precision: str, layer: type) -> None:
    translator = load_translator(run, overrides=[f"decoding.precision={precision}"])
    assert isinstance(translator.model.get_submodule("output.logits"), layer)


def test_no_initial_weights_are_drawn_for_a_model_that_is_loaded(run: Path) -> None:
    before, (_, checkpoint) = torch.get_rng_state(), find_run_and_checkpoint(run)
    loaded = load_model(run, checkpoint)
    assert torch.get_rng_state().equal(before)
    model = build_model(run, load_run_config(run))
    assert not torch.get_rng_state().equal(before)
    load_weights(checkpoint, model)
    for (name, tensor), (other, expected) in zip(
        [*loaded.named_parameters(), *loaded.named_buffers()],
        [*model.named_parameters(), *model.named_buffers()],
        strict=True,
    ):
        assert name == other
        assert tensor.equal(expected), name


@pytest.mark.parametrize("name", ["src.vocab.txt", "lexicon.tsv", "checkpoints"])
def test_a_run_that_is_replaced_while_it_is_loaded(
    nmt: Run, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Old weights do not get a new vocabulary."""
    changed = (
        next(run.glob("checkpoints/*/model.safetensors")) if name == "checkpoints" else run / name
    )

    def load_and_replace(checkpoint: Path, model: Seq2Seq) -> None:
        load_weights(checkpoint, model)
        content = (
            changed.read_bytes() if changed.exists() else b"source\ttarget\tprobability\tcount\n"
        )
        with replacing(changed) as new:
            new.write_bytes(content)

    for words in (("translate", "--run", run, "A dog."), ("export", run, "-o", tmp_path / "new")):
        monkeypatch.setattr(load, "load_weights", load_and_replace)
        result = nmt(*words)
        line = f"nmt: {changed}: was changed while the run was loaded; repeat the command\n"
        assert (result.status, result.out, result.err) == (1, "", line)
        monkeypatch.undo()
        changed.unlink() if name == "lexicon.tsv" else None
    assert not (tmp_path / "new").exists()
    assert nmt("translate", "--run", run, "A dog.").status == 0


def test_a_checkpoint_that_a_training_deletes_after_it_was_read(
    nmt: Run, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load_and_delete(checkpoint: Path, model: Seq2Seq) -> None:
        load_weights(checkpoint, model)
        shutil.rmtree(checkpoint)

    expected = nmt("translate", "--run", run, "A dog.")
    monkeypatch.setattr(load, "load_weights", load_and_delete)
    assert nmt("translate", "--run", run, "A dog.") == expected
