"""Loading a run to translate with."""

from pathlib import Path

import pytest

from nmt.model.inference.int8 import Int8Linear
from nmt.model.inference.pack import PackedLinear
from nmt.run.load import load_translator
from tests import toy


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy.train(tmp_path_factory.mktemp("run"))


@pytest.mark.parametrize(("precision", "layer"), [("float32", PackedLinear), ("int8", Int8Linear)])
def test_a_loaded_model_has_packed_weights(run: Path, precision: str, layer: type) -> None:
    translator = load_translator(run, overrides=[f"decoding.precision={precision}"])
    assert isinstance(translator.model.get_submodule("output.logits"), layer)
