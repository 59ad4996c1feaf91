"""Validation on the dev set."""

from pathlib import Path

import pytest
import torch

from nmt.run.folder import build_model, load_run_config, load_vocabularies
from nmt.training.validation import Validator
from tests import toy


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy.train(tmp_path_factory.mktemp("run"))


def test_validation_follows_the_weights(run: Path) -> None:
    config = load_run_config(run)
    model = build_model(run, config).eval()
    validator = Validator(model, config, run)
    before = validator.validate()
    favorite = load_vocabularies(run)[1].ids(["Hund"])[0]
    with torch.no_grad():
        model.output.get_parameter("logits.weight").zero_()
        model.output.get_parameter("logits.bias")[favorite] += 1e-3
    after = validator.validate()
    assert all(set(sample.output.split()) == {"Hund"} for sample in after.samples)
    assert [sample.output for sample in before.samples] != [
        sample.output for sample in after.samples
    ]
    assert model.output.get_parameter("logits.weight").requires_grad
