"""A model whose graphs onnxruntime computes, on a CPU and without torch.

nmt/model/graphs.py writes the graphs, and says which tensors they take and give.
"""

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmt.cores import usable_cores
from nmt.data.padding import pad_with_eos
from nmt.decoding.model import IdLists, StepOutput, TranslationModel
from nmt.errors import CheckpointError, NonFiniteError
from nmt.model.lexicon import LEXICON, Lexicon

# No telemetry; onnxruntime reads it when it is imported.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
import onnxruntime

Array = NDArray[Any]
FILES = ("encoder.onnx", "step.onnx", "output.onnx")
CHECK = "check.onnx"  # beside graphs in 8 bits: it shows whether such products are exact
# Rows of the output layer at a time: so the numbers for all words stay in the cache.
CHUNK_ROWS = 128


class Tensors(NamedTuple):
    """Tensors by their names in the graphs, of a memory or a state. `position` of a state is the
    number of steps so far, without rows.
    """

    by_name: Mapping[str, Array]

    def select(self, rows: NDArray[np.int64]) -> "Tensors":
        """The rows of each of them, in that order."""
        given = self.by_name.items()
        return Tensors({name: tensor[rows] if tensor.ndim else tensor for name, tensor in given})


class Vectors(NamedTuple):
    """What the output layer reads for N hypotheses.

    Attributes:
        values: [N, r]. bias: [N, U], of the lexicon's translations, if there are any.
        ids: [B, U], of these translations. sentences: [N], the row of `ids` of each hypothesis.
    """

    values: NDArray[np.float32]
    bias: Array | None = None
    ids: Array | None = None
    sentences: Array | None = None

    def select(self, rows: NDArray[np.int64]) -> "Vectors":
        """Those of the hypotheses `rows`, in that order."""
        if self.bias is None or self.sentences is None:
            return Vectors(self.values[rows])
        return Vectors(self.values[rows], self.bias[rows], self.ids, self.sentences[rows])

    def inputs(self) -> dict[str, Array]:
        """By the names of the graph's inputs."""
        if self.bias is None or self.ids is None:
            return {"vectors": self.values}
        return {"vectors": self.values, "bias": self.bias, "bias_ids": self.ids[self.sentences]}


class OnnxModel(TranslationModel):
    """Threads may use one model at the same time.

    Args:
        files: as `nmt.model.graphs` makes them: three graphs, and perhaps a lexicon.
        threads: as in `TranslationModel`; default: as many as this process may use.

    Raises:
        CheckpointError: a graph or the lexicon cannot be loaded.
    """

    def __init__(
        self,
        files: Mapping[str, bytes],
        threads: int | None = None,
    ) -> None:
        self.encoder, self.decoder, self.output = (_Graph(name, files[name]) for name in FILES)
        self.threads = threads or _usable_threads()
        self.precision = "int8" if CHECK in files else "float32"
        if LEXICON in files:
            try:
                self.lexicon = Lexicon.of_bytes(files[LEXICON])
            except ValueError as error:
                raise CheckpointError(f"{LEXICON}: cannot be loaded ({error})") from None

    def encode(self, sources: IdLists) -> tuple[Tensors, Tensors]:
        src, src_lengths = pad_with_eos(sources)
        memory, state = dict[str, Array](), {"position": np.array(0)}
        for name, tensor in self.encoder.run({"src": src, "src_lengths": src_lengths}).items():
            (state if name.startswith("state.") else memory)[name] = tensor
        lexicon = self.terms or self.lexicon
        if lexicon is not None:
            memory["translation_ids"], memory["memory.translations"] = lexicon.look_up(sources)
        return Tensors(memory), Tensors(state)

    def step(self, ids: NDArray[np.int64], state: Tensors, memory: Tensors) -> StepOutput:
        tensors = self.decoder.run({**memory.by_name, **state.by_name, "ids": ids})
        after = {
            f"state.{name.removeprefix('next.')}": tensor
            for name, tensor in tensors.items()
            if name.startswith("next.")
        }
        after["position"] = np.array(state.by_name["position"] + 1)
        vectors = Vectors(tensors["vectors"])
        if (bias := tensors.get("bias")) is not None:
            all_ids = memory.by_name["translation_ids"]
            sentences = np.repeat(np.arange(len(all_ids)), len(ids) // len(all_ids))
            vectors = Vectors(tensors["vectors"], bias, all_ids, sentences)
        return StepOutput(vectors, tensors["attention"], Tensors(after))

    def log_probs(self, vectors: Vectors) -> NDArray[np.floating[Any]]:
        log_probs = self.output.run(vectors.inputs() | {"k": np.array(1)}, ["log_probs"])
        check_finite(log_probs["log_probs"])
        return log_probs["log_probs"]

    def best(self, vectors: Vectors, k: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        inputs, parts = vectors.inputs(), list[dict[str, Array]]()
        names = ["best_ids", "best"]
        limit = {"k": np.array(min(k, self.output.n_words))}
        for start in range(0, len(vectors.values), CHUNK_ROWS):
            chunk = {name: array[start : start + CHUNK_ROWS] for name, array in inputs.items()}
            parts.append(self.output.run(chunk | limit, names))
        ids, log_probs = (np.concatenate([part[name] for part in parts]) for name in names)
        check_finite(log_probs)
        return ids, log_probs


def _usable_threads() -> int:
    """How many threads may compute: OMP_NUM_THREADS or, without it, one for each core."""
    words = os.environ.get("OMP_NUM_THREADS", "")
    return max(1, int(words)) if words.isdecimal() else usable_cores()


class _Graph:
    """A session of onnxruntime.

    Attributes:
        n_words: V, of the graph of the output layer.
    """

    def __init__(self, name: str, content: bytes) -> None:
        self.name = name
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # batches run in threads of their own
        options.log_severity_level = 4  # errors are raised
        try:
            self.session = onnxruntime.InferenceSession(
                content,
                options,
                providers=["CPUExecutionProvider"],
                enable_fallback=False,  # it would print to stdout
            )
        except Exception as error:  # noqa: BLE001 # the errors of onnxruntime have no other base class
            raise _explained(error, f"{name}: cannot be loaded") from None
        self.inputs = [each.name for each in self.session.get_inputs()]
        self.outputs = [each.name for each in self.session.get_outputs()]
        shape = self.session.get_outputs()[0].shape
        self.n_words = shape[-1] if shape else 0

    def run(self, tensors: Mapping[str, Array], names: list[str] | None = None) -> dict[str, Array]:
        """The outputs by name, or some of them. Tensors that the graph does not take are ignored.

        Raises:
            CheckpointError: the graph does not fit these tensors.
            MemoryError: they need more memory than there is.
        """
        try:
            values: Any = self.session.run(names, {name: tensors[name] for name in self.inputs})
        except Exception as error:  # noqa: BLE001 # as above
            raise _explained(
                error, f"{self.name}: does not fit the other files of the run"
            ) from None
        return dict(zip(names or self.outputs, values, strict=True))


def check_finite(log_probs: NDArray[np.floating[Any]]) -> None:
    """Raises: NonFiniteError if the most probable words [N, k] have no finite log-probabilities."""
    if not np.isfinite(log_probs[:, 0]).all():
        raise NonFiniteError(
            "the model's logits are not finite: its weights are damaged, or its training has "
            "diverged"
        )


def computes_exactly(check: bytes) -> bool:
    """Whether products of 8-bit integers are exact on this processor: `check_graph` of
    nmt/model/int8.py shows it.
    """
    return not _Graph(CHECK, check).run({})["error"]


def _explained(error: Exception, text: str) -> MemoryError | CheckpointError:
    reason = str(error).strip().split("\n")[0][:300]
    is_memory = isinstance(error, MemoryError) or "alloc" in reason.lower()
    return MemoryError(reason) if is_memory else CheckpointError(f"{text} ({reason})")
