"""The classes of a model that a subclass must complete: an incomplete one fails at construction."""

import pytest

from nmt.model.attention import Attention, AttentionScore
from nmt.model.decoder import Decoder, Readout
from nmt.model.encoder import Bridge
from nmt.model.interface import TranslationModel
from nmt.model.output import Output
from nmt.model.recurrent import RecurrentLayer

METHODS: dict[type, list[str]] = {
    TranslationModel: ["vector_size", "device", "encode", "start", "step", "compute_logits"],
    Attention: ["forward"],
    AttentionScore: ["forward"],
    RecurrentLayer: ["run", "step"],
    Bridge: ["forward"],
    Decoder: ["step"],
    Output: ["forward", "loss"],
    Readout: ["forward"],
}


@pytest.mark.parametrize(
    ("base", "method"), [(base, method) for base, methods in METHODS.items() for method in methods]
)
def test_an_incomplete_class_fails_at_construction(base: type, method: str) -> None:
    incomplete = type(
        "Incomplete", (base,), {name: lambda *_: None for name in METHODS[base] if name != method}
    )
    with pytest.raises(TypeError, match=rf"abstract.*\b{method}\b"):
        incomplete()
