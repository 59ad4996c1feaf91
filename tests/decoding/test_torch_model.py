"""Models of torch in search, and those that no graph expresses."""

from typing import Any
from unittest.mock import Mock

import pytest
import torch
from torch import Tensor

from nmt.config.schema import DecodingConfig, ModelConfig
from nmt.decoding.search import search
from nmt.decoding.torch_model import TorchModel, graphs_of
from nmt.errors import NonFiniteError
from nmt.model.decoder import AttentionalReadout
from nmt.model.recurrent import GRU, LayerState
from nmt.model.seq2seq import Seq2Seq
from tests.model.test_graphs import onnx_model
from tests.outside.my_parts import MinimalCell


def make() -> Seq2Seq:
    torch.manual_seed(1)
    sections: dict[str, Any] = {
        "embedding_size": 8,
        "encoder": {"cell": "gru", "hidden_size": 8, "bidirectional": False},
        "decoder": {"cell": "gru", "hidden_size": 8},
    }
    return Seq2Seq(ModelConfig.model_validate(sections), 12, 12).eval()


def test_a_model_in_training_mode_is_refused() -> None:
    with pytest.raises(ValueError, match="the model is in training mode"):
        TorchModel(make().train())


def test_a_model_of_torch_has_the_weights_as_they_are_now() -> None:
    seq2seq, options = make(), DecodingConfig(beam=2)
    as_it_is, as_it_was = TorchModel(seq2seq), onnx_model(seq2seq)
    ((before,),) = search(as_it_was, [[4, 5]], options)
    seq2seq.get_parameter("output.logits.bias").data[7] += 50
    assert search(as_it_was, [[4, 5]], options)[0][0].ids == before.ids
    assert set(search(as_it_is, [[4, 5]], options)[0][0].ids) == {7}


class NumpyReadout(AttentionalReadout):
    """Its numbers leave torch, so that they are constants of a graph."""

    def forward(self, state: Tensor, embedded: Tensor, context: Tensor) -> Tensor:
        return torch.from_numpy(super().forward(state, embedded, context).detach().numpy())


class DependentReadout(AttentionalReadout):
    """What it does depends on the number of hypotheses."""

    def forward(self, state: Tensor, embedded: Tensor, context: Tensor) -> Tensor:
        return super().forward(state, embedded, context) * (2 if len(state) > 8 else 1)


class FailingReadout(AttentionalReadout):
    """Fails while a graph is made, with an error of any kind."""

    def forward(self, state: Tensor, embedded: Tensor, context: Tensor) -> Tensor:
        if torch._C._get_tracing_state() is not None:
            raise KeyError("state")
        return super().forward(state, embedded, context)


class OtherCell(GRU):
    """An heir of a cell of nmt."""

    def step(self, inputs: Tensor, state: LayerState) -> LayerState:
        return 0.9 * super().step(inputs, state)[0], None


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("recurrent.GRU", MinimalCell),
        ("recurrent.GRU", OtherCell),
        ("decoder.AttentionalReadout", NumpyReadout),
        ("decoder.AttentionalReadout", DependentReadout),
        ("decoder.AttentionalReadout", FailingReadout),
    ],
)
def test_parts_that_graphs_cannot_express_stay_in_torch(
    name: str, part: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"nmt.model.{name}", part)
    model = make()
    assert graphs_of(model, "int8") is None
    assert not any(each.training for each in model.modules())


def test_damaged_weights_and_lack_of_memory_are_no_reason_for_torch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = make()
    model.get_parameter("output.logits.bias").data[7] = float("nan")
    with pytest.raises(NonFiniteError, match="the model's logits are not finite"):
        graphs_of(model, "float32")
    lack = Mock(side_effect=RuntimeError("DefaultCPUAllocator: can't allocate memory"))
    monkeypatch.setattr("nmt.decoding.torch_model.make_graphs", lack)
    with pytest.raises(MemoryError):
        graphs_of(make(), "float32")
