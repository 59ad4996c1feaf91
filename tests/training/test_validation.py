"""Validation, and the model that is searched with."""

from pathlib import Path

import pytest
import torch

from nmt.model.inference.int8 import Int8Linear
from nmt.model.inference.pack import PackedLinear
from nmt.run.folder import build_model, load_run_config, load_vocabularies
from nmt.run.load import load_translator
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
    favourite = load_vocabularies(run)[1].ids(["Hund"])[0]
    with torch.no_grad():
        model.output.get_parameter("logits.weight").zero_()
        model.output.get_parameter("logits.bias")[favourite] += 1e-3
    after = validator.validate()
    assert all(set(sample.output.split()) == {"Hund"} for sample in after.samples)
    assert [sample.output for sample in before.samples] != [sample.output for sample in after.samples]
    assert model.output.get_parameter("logits.weight").requires_grad


@pytest.mark.parametrize(("precision", "layer"), [("float32", PackedLinear), ("int8", Int8Linear)])
def test_a_loaded_run_is_laid_out_for_search(run: Path, precision: str, layer: type) -> None:
    translator = load_translator(run, overrides=[f"decoding.precision={precision}"])
    assert isinstance(translator.model.get_submodule("output.logits"), layer)
