"""The files of weights, and the models that get them."""

from pathlib import Path

import torch

from nmt.config.schema import ModelConfig
from nmt.model.seq2seq import Seq2Seq
from nmt.run.folder import load_run_config
from nmt.run.load import find_run_and_checkpoint
from nmt.run.weights import build_model, load_model, load_weights, save_weights


def test_equal_weights_are_written_as_equal_files(tmp_path: Path) -> None:
    config = ModelConfig.model_validate({"embedding_size": 8, "tie_embeddings": "all"})
    model = Seq2Seq(config, 9, 9)  # three names for one matrix
    for number in range(9):
        save_weights(model, tmp_path / f"{number}.safetensors")
    assert len({path.read_bytes() for path in tmp_path.iterdir()}) == 1


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
