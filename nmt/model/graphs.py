"""A trained model as three ONNX graphs, which onnxruntime computes without torch.

encoder.onnx   a batch of sources -> the memory, with a row per sentence (B), and the first state
step.onnx      a step of the decoder, with a row per hypothesis (R = B * K) -> the vectors that the
               output layer reads, the attention weights, and the next state
output.onnx    vectors -> the log-probabilities of all words, and the k most probable words

Tensors `memory.*` belong to the memory, `state.*` to the state, and `next.*` to the state after the
step. Lengths and numbers of rows may differ from call to call.
"""

import warnings
from collections.abc import Mapping, Sequence
from copy import copy, deepcopy
from io import BytesIO
from typing import Any, TypeVar

import onnx
import torch
from torch import Tensor, nn

from nmt.model.attention import AttentionState, Memory
from nmt.model.decoder import DecoderState, DeepReadout, MaxoutReadout
from nmt.model.encoder import Summary
from nmt.model.lexical_bias import Translations
from nmt.model.lexicon import LEXICON
from nmt.model.output import Output
from nmt.model.recurrent import (
    FusedLayer,
    LayerState,
    RecurrentLayer,
    RecurrentStack,
    RecurrentState,
)
from nmt.model.seq2seq import Seq2Seq

# The dimensions that differ from call to call; of other tensors, the first one.
DYNAMIC: dict[str, tuple[int, ...]] = {
    "k": (),
    "position": (),
    **dict.fromkeys(("src", "attention", "best_ids", "best", "bias_ids", "bias"), (0, 1)),
    **dict.fromkeys(("memory.mask", "state.coverage", "next.coverage"), (0, 1)),
    **dict.fromkeys(("memory.values", "memory.keys", "memory.translations"), (0, 1, 2)),
}
# The operator of ONNX for a layer with these gates, and its order of them, as positions in torch's.
OPERATORS: dict[str, tuple[str, Sequence[int]]] = {
    "ifgo": ("LSTM", (0, 3, 1, 2)),
    "rzn": ("GRU", (1, 0, 2)),
    "h": ("RNN", (0,)),
}

# Weight decay leaves tiny numbers, as for <pad>. Processors multiply some of them a hundred times
# slower.
SMALLEST = 1e-20

Module = TypeVar("Module", bound=nn.Module)


@torch.no_grad()
def make_graphs(model: Seq2Seq) -> dict[str, bytes]:
    """The graphs in float32, and the lexicon of the lexical bias, as the contents of files.

    Args:
        model: on the CPU, in evaluation mode; it stays as it is.
    """
    model = deepcopy(model)
    for weight in model.parameters():
        weight[weight.abs() < SMALLEST] = 0
    encoder, hypotheses = _EncoderGraph(model), 2
    src_lengths = torch.tensor([3, 5, 4])  # different, so that the graph includes padding
    src = torch.ones(len(src_lengths), int(src_lengths.max()), dtype=torch.long)
    from_encoder = encoder(src, src_lengths)
    given = {
        name: tensor.repeat_interleave(hypotheses, 0) if name.startswith("state.") else tensor
        for name, tensor in zip(encoder.names, from_encoder, strict=True)
    }
    files = dict[str, bytes]()
    if model.lexical_bias is not None:
        given["memory.translations"] = torch.ones(*src.shape, 2)
        files[LEXICON] = model.lexical_bias.lexicon().to_bytes()
    ids = torch.ones(len(src) * hypotheses, dtype=torch.long)
    for_step = {"ids": ids, "position": torch.tensor(1), **given}
    step = _StepGraph(model, [*given])
    results = step(*for_step.values())
    from_step = dict(zip(step.names, results, strict=True))
    for_output = {"k": torch.tensor(2), "vectors": from_step["vectors"]}
    if model.lexical_bias is not None:
        for_output["bias"] = from_step["bias"]
        for_output["bias_ids"] = torch.ones(for_output["bias"].shape, dtype=torch.long)
    for_encoder = {"src": src, "src_lengths": src_lengths}
    output = _OutputGraph(model.output)
    return files | {
        "encoder.onnx": _export(encoder, for_encoder, encoder.names),
        "step.onnx": _export(step, for_step, step.names),
        "output.onnx": _export(output, for_output, ["log_probs", "best_ids", "best"]),
    }


class _EncoderGraph(nn.Module):
    """Ids [B, S] and lengths [B] -> `memory.*` and `state.*`, in the order of `names`."""

    def __init__(self, model: Seq2Seq) -> None:
        super().__init__()
        layers = (
            _OnnxLayer(layer)
            if isinstance(layer, FusedLayer) and layer.gates in OPERATORS
            else layer
            for layer in model.encoder.layers
        )
        encoder = _with_parts(model.encoder, layers=nn.ModuleList(layers))
        self.model = _with_parts(model, encoder=encoder, lexical_bias=None)
        self.names: list[str] = []

    def forward(self, src: Tensor, src_lengths: Tensor) -> tuple[Tensor, ...]:
        """The tensors that a step reads."""
        memory = self.model.encode(src, src_lengths)
        values, keys = memory.values, memory.keys
        tensors = {"memory.values": values, "memory.mask": memory.mask}
        tensors |= {} if keys is values else {"memory.keys": keys}
        tensors |= {"memory.summary": memory.summary.vector}
        tensors |= _named(self.model.start(memory), "state")
        self.names = [*tensors]
        return tuple(tensors.values())


class _StepGraph(nn.Module):
    """One step of R hypotheses; `names` are those of its results.

    Args:
        given: the names of the tensors that `forward` takes after the first two.
    """

    def __init__(self, model: Seq2Seq, given: Sequence[str]) -> None:
        super().__init__()
        stacks = {
            name: _step_stack(part)
            for name, part in model.decoder.named_children()
            if isinstance(part, RecurrentStack)
        }
        readout: nn.Module = model.decoder.readout
        if type(readout) is DeepReadout or type(readout) is MaxoutReadout:
            readout = _StepReadout(readout)
        decoder = _with_parts(model.decoder, readout=readout, **stacks)
        self.model = _with_parts(model, decoder=decoder)
        self.given = given
        self.names: list[str] = []

    def forward(self, ids: Tensor, position: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:
        """The vectors [R, r], the attention weights [R, S], the next state, and the lexical bias.

        Args:
            ids: [R], the last token of each hypothesis. position: [], the number of steps so far.
        """
        given = dict(zip(self.given, tensors, strict=True))
        values = given["memory.values"]
        layers = list[LayerState]()
        while (hidden := given.get(f"state.hidden.{len(layers)}")) is not None:
            layers.append((hidden, given.get(f"state.cell.{len(layers)}")))
        recurrent = RecurrentState(tuple(layers))
        memory = Memory(
            values,
            given.get("memory.keys", values),
            given["memory.mask"],
            Summary(given["memory.summary"], recurrent),  # only the bridge reads the states
        )
        attention = AttentionState(position, given.get("state.coverage"))  # type: ignore[arg-type]
        state = DecoderState(recurrent, attention, given.get("state.fed"))
        step = self.model.decoder.step(self.model.tgt_embedding(ids), state, memory)
        after = {"vectors": step.vector, "attention": step.attention}
        after |= _named(step.state, "next")
        if self.model.lexical_bias is not None:
            translations = Translations(values, given["memory.translations"])  # without ids
            weights = step.attention.view(values.shape[0], -1, step.attention.shape[1])
            after["bias"] = self.model.lexical_bias(weights, translations).flatten(0, 1)
        self.names = [*after]
        return tuple(after.values())


class _OutputGraph(nn.Module):
    """The log-probabilities [N, V] of all words, and the k most probable words of each row."""

    def __init__(self, output: Output) -> None:
        super().__init__()
        self.output = output

    def forward(
        self, k: Tensor, vectors: Tensor, bias: Tensor | None = None, bias_ids: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """log_probs [N, V], best_ids [N, k] and best [N, k], the most probable first."""
        logits = self.output(vectors)
        if bias is not None and bias_ids is not None:
            logits = logits.scatter_add(1, bias_ids, bias)
        log_probs = logits.log_softmax(1)
        best, best_ids = log_probs.topk(k)  # a tensor, so that the graph has it as an input
        return log_probs, best_ids, best


def _named(state: DecoderState, prefix: str) -> dict[str, Tensor]:
    """The tensors of a state, by name."""
    tensors: dict[str, Tensor | None] = {}
    for index, (hidden, cell) in enumerate(state.recurrent.layers):
        tensors |= {f"{prefix}.hidden.{index}": hidden, f"{prefix}.cell.{index}": cell}
    tensors |= {f"{prefix}.fed": state.fed, f"{prefix}.coverage": state.attention.coverage}
    return {name: tensor for name, tensor in tensors.items() if tensor is not None}


def _with_parts(module: Module, **parts: nn.Module | None) -> Module:
    """A copy of a module with other submodules under these names; it shares everything else."""
    other = copy(module)
    other._modules = {**module._modules, **parts}
    return other


def _export(graph: nn.Module, inputs: Mapping[str, Tensor], outputs: Sequence[str]) -> bytes:
    """The ONNX graph of a module, by the example of `inputs`."""
    axes = {
        name: {dimension: f"{name}.{dimension}" for dimension in DYNAMIC.get(name, (0,))}
        for name in (*inputs, *outputs)
    }
    file = BytesIO()
    # torch warns that it prefers another exporter, which cannot make an LSTM that knows the length
    # of each sequence; and wherever a number of the example becomes a constant.
    with warnings.catch_warnings(action="ignore"):
        torch.onnx.export(
            graph.eval(),  # the exporter leaves all parts in this mode
            tuple(inputs.values()),
            file,  # type: ignore[arg-type] # as the exporter's documentation says
            input_names=[*inputs],
            output_names=[*outputs],
            dynamic_axes=axes,
            opset_version=17,
            dynamo=False,
            autograd_inlining=False,
        )
    return file.getvalue()


def _step_stack(stack: RecurrentStack) -> RecurrentStack:
    layers = [
        _StepLayer(layer) if isinstance(layer, FusedLayer) else layer for layer in stack.layers
    ]
    return _with_parts(stack, layers=nn.ModuleList(layers))


class _StepLayer(RecurrentLayer):
    """One step of a layer of torch, with as few products as possible."""

    def __init__(self, layer: FusedLayer) -> None:
        super().__init__()
        self.gates, self.has_cell_state = layer.gates, layer.has_cell_state
        self.hidden_size = layer.hidden_size
        assert isinstance(layer, nn.RNNBase)
        of_input, of_hidden, input_bias, hidden_bias = layer.all_weights[0]
        if layer.gates == "rzn":
            self.input = _linear(of_input, input_bias)
            self.hidden = _linear(of_hidden, hidden_bias)
        else:
            self.both = _linear(torch.cat([of_input, of_hidden], 1), input_bias + hidden_bias)

    def step(self, inputs: Tensor, state: LayerState) -> LayerState:
        before, cell_before = state
        if self.gates == "rzn":
            (r, z, n), (r_hidden, z_hidden, n_hidden) = (
                self.input(inputs).split(self.hidden_size, 1),
                self.hidden(before).split(self.hidden_size, 1),
            )
            new = torch.tanh(n + (r + r_hidden).sigmoid() * n_hidden)
            return new + (z + z_hidden).sigmoid() * (before - new), None
        both = self.both(torch.cat([inputs, before], 1))
        if self.gates == "h":
            return torch.tanh(both), None
        assert cell_before is not None
        i, f, g, o = both.split(self.hidden_size, 1)
        cell = f.sigmoid() * cell_before + i.sigmoid() * torch.tanh(g)
        return o.sigmoid() * torch.tanh(cell), cell


class _StepReadout(nn.Module):
    """A deep readout with one product of its three inputs side by side."""

    def __init__(self, readout: DeepReadout) -> None:
        super().__init__()
        parts = readout.state, readout.embedded, readout.context
        weight = torch.cat([part.weight for part in parts], 1)
        self.total, self.squash = _linear(weight, readout.state.bias), readout.squash

    def forward(self, state: Tensor, embedded: Tensor, context: Tensor) -> Tensor:
        return self.squash(self.total(torch.cat([state, embedded, context], 1)))


def _linear(weight: Tensor, bias: Tensor) -> nn.Linear:
    """A layer with these weights [O, I] and [O]."""
    linear = nn.Linear(weight.shape[1], weight.shape[0], device="meta")  # draws no random numbers
    linear.weight, linear.bias = nn.Parameter(weight.detach()), nn.Parameter(bias.detach())
    return linear


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
