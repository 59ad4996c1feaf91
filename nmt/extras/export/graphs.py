"""A trained model as two ONNX graphs: the encoder with the first state, and a step of the decoder.

The graphs do the work of `Seq2Seq.encode`, `start`, `step` and `topk_log_probs`. Tensors `memory.*`
have a row per sentence (B), `state.*` a row per hypothesis (R = B * K), and `next.*` are the state
after the step. Lengths and numbers of rows may differ from call to call.
"""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx
import torch
from torch import Tensor, nn
from torch.nn import functional

from nmt.decoding.fast import pack_decoder, replace_submodules
from nmt.model.attention import AttentionState, Memory
from nmt.model.decoder import DecoderState
from nmt.model.encoder import Summary
from nmt.model.lexical_bias import LexicalBias, Translations
from nmt.model.output import Adaptive, Vectors
from nmt.model.recurrent import FusedLayer, LayerState, RecurrentLayer, RecurrentState
from nmt.model.seq2seq import Seq2Seq

# The dimensions that differ from call to call; of other tensors, the first one.
DYNAMIC: dict[str, tuple[int, ...]] = {
    "k": (),
    "position": (),
    **dict.fromkeys(("src", "attention", "best_ids", "best_logits", "memory.mask"), (0, 1)),
    **dict.fromkeys(("state.coverage", "next.coverage", "memory.translation_ids"), (0, 1)),
    **dict.fromkeys(("memory.values", "memory.keys", "memory.translations"), (0, 1, 2)),
}
# The operator of ONNX for a layer with these gates, and its order of them, as positions in torch's.
OPERATORS: dict[str, tuple[str, Sequence[int]]] = {
    "ifgo": ("LSTM", (0, 3, 1, 2)),
    "rzn": ("GRU", (1, 0, 2)),
    "h": ("RNN", (0,)),
}


class EncoderGraph(nn.Module):
    """Ids [B, S] and lengths [B] -> `memory.*` and `state.*`, in the order of `names`."""

    def __init__(self, model: Seq2Seq) -> None:
        super().__init__()
        layers = nn.ModuleList(
            _OnnxLayer(layer)
            if isinstance(layer, FusedLayer) and layer.gates in OPERATORS
            else layer
            for layer in model.encoder.layers
        )
        encoder = replace_submodules(model.encoder, layers=layers)
        # The lexical bias is looked up here, in a way that can be traced.
        self.model = replace_submodules(model, encoder=encoder, lexical_bias=nn.Identity())
        self.model.lexical_bias = None
        self.lexical_bias = model.lexical_bias
        self.names: list[str] = []

    def forward(self, src: Tensor, src_lengths: Tensor) -> tuple[Tensor, ...]:
        """The tensors for `StepGraph`."""
        memory = self.model.encode(src, src_lengths)
        tensors = _to_tensors(memory, self.model.start(memory))
        if self.lexical_bias is not None:
            translations = _look_up(self.lexical_bias, src)
            tensors |= {
                "memory.translation_ids": translations.ids,
                "memory.translations": translations.probabilities,
            }
        self.names = [*tensors]
        return tuple(tensors.values())


class StepGraph(nn.Module):
    """One step of R hypotheses, and the k most probable words for N of them.

    Args:
        names: of the tensors that `forward` takes after the first four.
    """

    def __init__(self, model: Seq2Seq, names: list[str]) -> None:
        super().__init__()
        output, decoder = model.output, pack_decoder(model.decoder, lambda linear: linear)
        self.model = replace_submodules(model, decoder=decoder)
        self.compute_logits = self.model.compute_logits
        if isinstance(output, Adaptive):
            self.compute_logits = AdaptiveLogits(output)
        self.names = names
        self.next_names: list[str] = []

    def forward(
        self, ids: Tensor, rows: Tensor, k: Tensor, position: Tensor, *tensors: Tensor
    ) -> tuple[Tensor, ...]:
        """The words and the next state.

        Args:
            ids: [R], the last token of each hypothesis.
            rows: [N], the hypotheses for which words are wanted.
            k: [], at most V.
            position: [], the number of steps so far.

        Returns:
            ids [N, k] and logits [N, k] of the words, most probable first, the log sum exp [N] of
            all logits, the attention weights [R, S], and the tensors `next_names`.
        """
        given, translations = dict(zip(self.names, tensors, strict=True)), None
        if "memory.translations" in given:
            translations = Translations(
                given["memory.translation_ids"], given["memory.translations"]
            )
        recurrent = RecurrentState(given["state.hidden"], given.get("state.cell"))
        summary = Summary(given["memory.summary"], recurrent)  # only the bridge reads the states
        values = given["memory.values"]
        keys = given.get("memory.keys", values)
        memory = Memory(values, keys, given["memory.mask"], summary, translations)
        attention = AttentionState(position, given.get("state.coverage"))  # type: ignore[arg-type]
        state = DecoderState(recurrent, attention, given.get("state.fed"))
        step = self.model.step(ids, state, memory)
        logits = self.compute_logits(step.vector.select(rows))
        best, best_ids = logits.topk(k)  # type: ignore[arg-type] # a tensor, so that the graph has it as an input
        tensors_after = _to_tensors(None, step.state)
        self.next_names = [name.replace("state.", "next.") for name in tensors_after]
        return best_ids, best, logits.logsumexp(1), step.attention, *tensors_after.values()


class AdaptiveLogits(nn.Module):
    """Logits of the adaptive softmax for all words; those of rare words include their cluster's."""

    def __init__(self, output: Adaptive) -> None:
        super().__init__()
        self.softmax = output.softmax

    def forward(self, vectors: Vectors) -> Tensor:
        """N rows -> [N, V]."""
        values = vectors.values
        head, n_frequent = self.softmax.head(values), self.softmax.shortlist_size
        parts = [head[:, :n_frequent]]
        for cluster, tail in enumerate(self.softmax.tail, n_frequent):
            parts.append(functional.log_softmax(tail(values), 1) + head[:, cluster : cluster + 1])
        return torch.cat(parts, 1)


@torch.no_grad()
def export_graphs(model: Seq2Seq, encoder_file: Path, step_file: Path) -> None:
    """Write the ONNX files of the encoder and of the step, in float32.

    Args:
        model: on the CPU, in evaluation mode; it stays as it is.
    """
    encoder = EncoderGraph(model)
    src_lengths = torch.tensor([3, 5, 4])  # different, so that the graph includes padding
    src = torch.ones(len(src_lengths), int(src_lengths.max()), dtype=torch.long)
    from_encoder = encoder(src, src_lengths)
    step, n_hypotheses = StepGraph(model, encoder.names), 2
    tensors = [
        tensor.repeat_interleave(n_hypotheses, 0) if name.startswith("state.") else tensor
        for name, tensor in zip(encoder.names, from_encoder, strict=True)
    ]
    ids = torch.ones(len(src) * n_hypotheses, dtype=torch.long)
    arguments = (ids, torch.arange(len(ids) - 1), torch.tensor(2), torch.tensor(1), *tensors)
    step(*arguments)  # sets its names
    _export(encoder_file, encoder, (src, src_lengths), ["src", "src_lengths"], encoder.names)
    outputs = ["best_ids", "best_logits", "log_norm", "attention", *step.next_names]
    _export(step_file, step, arguments, ["ids", "rows", "k", "position", *encoder.names], outputs)
    model.eval()  # the exporter has put all parts into the mode of the graphs


def _export(
    file: Path,
    graph: nn.Module,
    arguments: tuple[Tensor, ...],
    inputs: list[str],
    outputs: list[str],
) -> None:
    axes = {
        name: {dimension: f"{name}.{dimension}" for dimension in DYNAMIC.get(name, (0,))}
        for name in (*inputs, *outputs)
    }
    # torch warns that it prefers another exporter, which cannot make an LSTM that knows the length
    # of each sequence; and wherever a number of the example becomes a constant.
    with warnings.catch_warnings(action="ignore"):
        torch.onnx.export(
            graph,
            arguments,
            file,
            input_names=inputs,
            output_names=outputs,
            dynamic_axes=axes,
            opset_version=17,
            dynamo=False,
            autograd_inlining=False,
        )


def _to_tensors(memory: Memory | None, state: DecoderState) -> dict[str, Tensor]:
    """The tensors of a memory and of a state, by name."""
    tensors: dict[str, Tensor | None] = {}
    if memory is not None:
        same = memory.keys is memory.values
        tensors |= {"memory.values": memory.values, "memory.keys": None if same else memory.keys}
        tensors |= {"memory.mask": memory.mask, "memory.summary": memory.summary.vector}
    recurrent = state.recurrent
    tensors |= {"state.hidden": recurrent.hidden, "state.cell": recurrent.cell}
    tensors |= {"state.fed": state.fed, "state.coverage": state.attention.coverage}
    return {name: tensor for name, tensor in tensors.items() if tensor is not None}


def _look_up(bias: LexicalBias, src: Tensor) -> Translations:
    """As `LexicalBias.look_up`, but the graph computes the number of columns, and ONNX has no
    `searchsorted`.
    """
    rows = src
    if bias.n_words:
        _, keys = bias.words(src)
        places = torch.zeros_like(keys)  # of the last word that is not after the key
        for power in reversed(range((bias.n_words - 1).bit_length())):
            later = (places + 2**power).clamp(max=bias.n_words - 1)
            places = torch.where(bias.word_keys[later] <= keys, later, places)
        rows = torch.where(bias.word_keys[places] == keys, bias.src_size + places, src)
    ids = bias.ids[rows].flatten(1)  # [B, S * k]
    in_order, order = ids.sort(1, descending=True)
    is_new = (in_order[:, 1:] != in_order[:, :-1]).long()
    column = torch.cat([torch.zeros_like(ids[:, :1]), is_new.cumsum(1)], 1)
    n_columns = column[:, -1].amax(0) + 1
    unique = torch.zeros_like(ids).scatter(1, column, in_order)[:, :n_columns]
    columns = torch.zeros_like(column).scatter(1, order, column)
    columns = columns.view(*src.shape, bias.size)  # [B, S, k]
    probabilities = torch.zeros([*src.shape, n_columns]).scatter_add(  # type: ignore[list-item] # a tensor, as above
        2, columns, bias.probabilities[rows]
    )
    return Translations(unique, probabilities)


class _OnnxLayer(RecurrentLayer):
    """A layer of torch that becomes one ONNX operator, which knows the length of each sequence."""

    def __init__(self, layer: FusedLayer) -> None:
        super().__init__()
        assert isinstance(layer, nn.RNNBase)
        self.layer, self.hidden_size = layer, layer.hidden_size
        self.has_cell_state = layer.has_cell_state
        self.operator, order = OPERATORS[layer.gates]

        def stack(*parts: int) -> Tensor:
            """Weights of both directions, gates in the order of ONNX."""
            return torch.stack(
                [
                    torch.cat([_reorder(weights[part], order) for part in parts])
                    for weights in layer.all_weights
                ]
            )

        self.weights = [stack(0), stack(1), stack(2, 3)]  # of the input, recurrent, and both biases

    def run(
        self, inputs: Tensor, lengths: Tensor | None = None, state: LayerState | None = None
    ) -> tuple[Tensor, LayerState]:
        outputs, *last = _RecurrentOperator.apply(  # type: ignore[no-untyped-call]
            inputs.transpose(0, 1), lengths, *self.weights, self
        )
        hidden, cell = (*(part.transpose(0, 1).flatten(1) for part in last), None)[:2]
        return outputs.permute(2, 0, 1, 3).flatten(2), (hidden, cell)

    def step(self, inputs: Tensor, state: LayerState) -> LayerState:
        raise NotImplementedError("layers of the encoder run over whole sequences")


class _RecurrentOperator(torch.autograd.Function):
    """In torch, the layer itself; in the graph, the operator of ONNX, with its layout."""

    @staticmethod
    def forward(_ctx: Any, inputs: Tensor, lengths: Tensor, *arguments: Any) -> tuple[Tensor, ...]:
        layer: FusedLayer = arguments[-1].layer
        outputs, last = layer.run(inputs.transpose(0, 1), lengths)
        size = (-1, layer.hidden_size)
        states = [part.unflatten(1, size).transpose(0, 1) for part in last if part is not None]
        return outputs.unflatten(2, size).permute(1, 2, 0, 3), *states

    @staticmethod
    def symbolic(
        g: Any, inputs: Any, lengths: Any, weight: Any, hidden: Any, bias: Any, layer: _OnnxLayer
    ) -> Any:
        options = {
            "hidden_size_i": layer.hidden_size,
            "direction_s": "bidirectional" if layer.weights[0].shape[0] == 2 else "forward",
        }
        options |= {"linear_before_reset_i": 1} if layer.operator == "GRU" else {}
        lengths = g.op("Cast", lengths, to_i=onnx.TensorProto.INT32)
        return g.op(
            layer.operator,
            inputs,
            weight,
            hidden,
            bias,
            lengths,
            outputs=2 + layer.has_cell_state,
            **options,
        )


def _reorder(weight: Tensor, order: Sequence[int]) -> Tensor:
    return torch.cat([weight.detach().chunk(len(order))[index] for index in order])
