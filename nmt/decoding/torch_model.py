"""Search with a model that torch computes: on a GPU, and in validations while it is trained. And
its graphs, for search without torch.
"""

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from nmt.config.schema import Precision
from nmt.data.batches import send
from nmt.data.padding import pad_with_eos
from nmt.decoding.model import IdLists, StepOutput, TranslationModel
from nmt.decoding.onnx_model import CHECK, OnnxModel, check_finite
from nmt.errors import NonFiniteError, pass_on_lack_of_memory
from nmt.model.graphs import make_graphs
from nmt.model.int8 import check_graph, to_int8
from nmt.model.lexical_bias import Translations
from nmt.model.seq2seq import Seq2Seq, rows_of
from nmt.text.vocabulary import SOS, UNK

TOLERANCE = 1e-3  # nats, between log-probabilities of torch and of onnxruntime


class OnDevice(NamedTuple):
    """A memory, a state or the vectors of a step, with rows that an array selects."""

    part: Any
    device: torch.device

    def select(self, rows: NDArray[np.int64]) -> "OnDevice":
        """The rows, in that order."""
        return OnDevice(rows_of(self.part, send(torch.from_numpy(rows), self.device)), self.device)

    @property
    def values(self) -> NDArray[np.float32]:
        """[N, r], of vectors."""
        return self.part.values.cpu().numpy()  # type: ignore[no-any-return]


class TorchModel(TranslationModel):
    """The model as it is: what changes its weights changes the translations.

    Args:
        model: in evaluation mode.

    Raises:
        ValueError: the model is in training mode, in which dropout would change the translations.
    """

    def __init__(self, model: Seq2Seq) -> None:
        if model.training:
            raise ValueError("the model is in training mode; call model.eval() first")
        self.model = model
        if model.lexical_bias is not None:
            self.lexicon = model.lexical_bias.lexicon()

    @torch.inference_mode()
    def encode(self, sources: IdLists) -> tuple[OnDevice, OnDevice]:
        device = self.model.device
        src, src_lengths = map(torch.from_numpy, pad_with_eos(sources))
        memory = self.model.encode(send(src, device), src_lengths)
        if self.terms is not None:
            found = (send(torch.from_numpy(part), device) for part in self.terms.look_up(sources))
            memory = memory._replace(translations=Translations(*found))
        state = self.model.start(memory)
        return OnDevice(memory, device), OnDevice(state, device)

    @torch.inference_mode()
    def step(self, ids: NDArray[np.int64], state: OnDevice, memory: OnDevice) -> StepOutput:
        device = self.model.device
        output = self.model.step(send(torch.from_numpy(ids), device), state.part, memory.part)
        return StepOutput(
            OnDevice(output.vector, device),
            output.attention.float().cpu().numpy(),
            OnDevice(output.state, device),
        )

    @torch.inference_mode()
    def log_probs(self, vectors: OnDevice) -> NDArray[np.floating[Any]]:
        log_probs = self.model.log_probs(vectors.part).cpu().numpy()
        check_finite(log_probs)
        return log_probs

    @torch.inference_mode()
    def best(self, vectors: OnDevice, k: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        log_probs = self.model.log_probs(vectors.part)
        largest, ids = log_probs.topk(min(k, log_probs.shape[1]))
        numbers = largest.cpu().numpy()
        check_finite(numbers)
        return ids.cpu().numpy(), numbers


def graphs_of(model: Seq2Seq, precision: Precision) -> dict[str, bytes] | None:
    """The files for `OnnxModel`. None if the model has parts that graphs cannot express: the graphs
    in float32 must give what torch gives.

    Raises:
        NonFiniteError: as `TranslationModel.log_probs`.
    """
    try:
        files = make_graphs(model)
        if not _agree(OnnxModel(files), TorchModel(model)):
            return None
    except NonFiniteError:
        raise
    except Exception as error:  # noqa: BLE001 # of the exporter, of onnxruntime, or of such a part
        pass_on_lack_of_memory(error)
        return None
    if precision == "int8":
        files |= {name: to_int8(files[name]) for name in ("step.onnx", "output.onnx")}
        files[CHECK] = check_graph()
    return files


def _agree(one: TranslationModel, other: TranslationModel) -> bool:
    """Whether two models give the same log-probabilities for sentences of some tokens. Their number
    and that of the hypotheses are other ones than in the example that graphs are made with.
    """
    sources, hypotheses = [[UNK] * 7, [UNK] * 2], 5
    found = []
    for model in (one, other):
        memory, state = model.encode(sources)
        state = state.select(np.arange(len(sources)).repeat(hypotheses))
        for index in (SOS, UNK):
            output = model.step(np.full(len(sources) * hypotheses, index), state, memory)
            state = output.state
        found.append(model.log_probs(output.vectors))
    return np.allclose(found[0], found[1], atol=TOLERANCE)
