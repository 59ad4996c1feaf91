"""The fast form of a trained model, for search: packed weights, and precomputed gates.

`for_search` copies a model and replaces submodules of the copy, so the classes of `nmt.model` stay
plain. torch uses MKL for products of float32, which repacks the weight on every call and is slower
on processors not made by Intel; oneDNN packs it once. The product of the input weights with a
word's embedding is always the same, so a table holds it for the whole vocabulary (Devlin 2017).
H units, G gates.
"""

import warnings
from collections.abc import Callable
from copy import copy
from functools import cache
from typing import Any, Self, TypeVar

import torch
from torch import Tensor, nn

from nmt.config.schema import Precision
from nmt.errors import ConfigError
from nmt.model.decoder import Decoder, Readout
from nmt.model.recurrent import FusedLayer, LayerState, RecurrentLayer
from nmt.model.seq2seq import Seq2Seq

MAX_TABLE_SIZE = 1 << 26  # numbers in the table of precomputed gates: 256 MB
# oneDNN chooses the packed layout for this number of input rows; the layout works for any number
LAYOUT_ROWS = 64
# inputs are padded to a multiple of this: oneDNN keeps code and memory for each number of rows it
# has seen
ROWS_MULTIPLE = 16

Module = TypeVar("Module", bound=nn.Module)
PackFn = Callable[[nn.Linear], nn.Module]


@torch.no_grad()
def for_search(model: Seq2Seq, precision: Precision = "float32") -> Seq2Seq:
    """A fast copy of a model, with its weights as they are now: for search, not for training.

    The recurrences, the readout and the output layer have packed weights. The bridge and the
    attention are the model's own. On a GPU the model itself is returned.

    Args:
        precision: of the packed weights. The precomputed gates are not rounded.

    Raises:
        ConfigError: this machine or this build of torch does not support the precision.
    """
    if precision == "int8":
        check_int8(model.device)
    elif model.device.type != "cpu":
        return model
    pack: PackFn = Int8Linear.of if precision == "int8" else PackedLinear.of
    words, first = model.tgt_embedding, model.decoder.recurrent.layers[0]
    parts: dict[str, nn.Module] = {
        "encoder": pack_layers(model.encoder, pack),
        "output": pack_layers(model.output, pack),
    }
    n_embedding = 0
    if (
        isinstance(first, FusedLayer)
        and words.num_embeddings * len(first.weights[0][0]) <= MAX_TABLE_SIZE
    ):
        n_embedding = words.embedding_dim
        parts["tgt_embedding"] = GateTable(words.weight * words.scale, first)
    parts["decoder"] = pack_decoder(model.decoder, pack, n_embedding)
    return replace_submodules(model, **parts)


class PackedLinear(nn.Module):
    """y = x W^T + b with packed weights; an ordinary product where oneDNN cannot be used.

    In float32, without gradients.

    Args:
        weight: [O, I], which may be shared. bias: [O], or None.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight.detach(), requires_grad=False)
        self.bias = None if bias is None else nn.Parameter(bias.detach(), requires_grad=False)
        self.packed = _pack(self.weight)

    @classmethod
    def of(cls, linear: nn.Linear) -> Self:
        """The packed form of a layer."""
        return cls(linear.weight, linear.bias)

    def select(self, ids: Tensor) -> nn.Linear:
        """A layer with only the outputs `ids` [v], in that order."""
        # Not packed again: packing would take longer than the few products of a batch.
        assert self.bias is not None
        return linear_of(self.weight[ids], self.bias[ids])

    def forward(self, inputs: Tensor) -> Tensor:
        """[..., I] -> [..., O]."""
        if self.packed is None:
            return nn.functional.linear(inputs, self.weight, self.bias)
        rows = inputs.flatten(0, -2)
        extra = -len(rows) % ROWS_MULTIPLE if len(rows) > ROWS_MULTIPLE else 0
        padded = nn.functional.pad(rows, (0, 0, 0, extra)) if extra else rows
        return _multiply(padded, self.packed, self.bias)[: len(rows)].view(*inputs.shape[:-1], -1)


def _pack(weight: Tensor) -> Tensor | None:
    """None if oneDNN cannot multiply by this weight."""
    usable = (
        weight.device.type == "cpu"
        and weight.dtype == torch.float32
        and torch.backends.mkldnn.is_available()
        and operators_work()
    )
    return _reorder(weight) if usable else None


def _reorder(weight: Tensor) -> Tensor:
    return torch.ops.mkldnn._reorder_linear_weight(weight, LAYOUT_ROWS)  # type: ignore[no-any-return]


def _multiply(rows: Tensor, packed: Tensor, bias: Tensor | None) -> Tensor:
    return torch.ops.mkldnn._linear_pointwise(  # type: ignore[no-any-return]
        rows, packed, bias, "none", [], ""
    )


@cache
def operators_work() -> bool:
    """Whether this build of torch has the two private operators, and they multiply correctly."""
    weight = torch.linspace(-1, 1, 96).view(6, 16)
    rows = weight[:3] + 0.5
    try:
        with torch.inference_mode():
            product = _multiply(rows, _reorder(weight), None)
    except (AttributeError, RuntimeError, TypeError):
        return False
    return torch.allclose(product, rows @ weight.t(), atol=1e-4)


class Int8Linear(nn.Module):
    """y = x W^T + b in 8-bit integers, on a CPU (dynamic quantization).

    Each row of W is divided by its own scale and rounded once; the inputs are rounded at each
    product with one scale for all of them. Sums have 32 bits.

    Args:
        rows: [O, I], 8-bit integers. scales: [O], so that W is rows * scales. bias: [O].
    """

    def __init__(self, rows: Tensor, scales: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self.rows, self.scales = rows, scales
        self.bias = torch.zeros_like(scales) if bias is None else bias
        self.packed = _pack_int8(rows)

    @classmethod
    def of(cls, linear: nn.Linear) -> Self:
        """The rounded form of a layer."""
        bias: Tensor | None = linear.bias
        return cls(*round_rows(linear.weight.detach()), None if bias is None else bias.detach())

    def select(self, ids: Tensor) -> "Int8Linear":
        """A layer with only the outputs `ids` [v], in that order."""
        return Int8Linear(self.rows[ids], self.scales[ids], self.bias[ids])

    def forward(self, inputs: Tensor) -> Tensor:
        """[..., I] -> [..., O]."""
        sums = _multiply_int8(inputs, self.packed)
        return torch.addcmul(self.bias, sums, self.scales, out=sums)


def round_rows(weight: Tensor) -> tuple[Tensor, Tensor]:
    """[O, I] -> the rounded rows as 8-bit integers, and the scale [O] of each row."""
    scales = weight.abs().amax(1).clamp_min(torch.finfo(weight.dtype).tiny) / 127
    return (weight / scales.unsqueeze(1)).round().to(torch.int8), scales


def check_int8(device: torch.device) -> None:
    """Raises: ConfigError if this device or this build of torch cannot multiply 8-bit integers."""
    if device.type != "cpu":
        raise ConfigError(
            f"decoding.precision: int8 computes on the CPU, not on {device.type}; use --device "
            "cpu, or float32"
        )
    if torch.backends.quantized.engine == "none" or not int8_works():
        raise ConfigError(
            "decoding.precision: this build of torch cannot multiply 8-bit integers; set it to "
            "float32"
        )


@cache
def int8_works() -> bool:
    """Whether this build of torch has the (partly private) operators, and they are correct."""
    rows = torch.tensor([[1, -127, 3], [127, 2, 0]], dtype=torch.int8)
    try:
        # torch warns once that its quantized tensors will be removed.
        with warnings.catch_warnings(action="ignore"), torch.inference_mode():
            product = _multiply_int8(torch.eye(3), _pack_int8(rows))
    except (AttributeError, RuntimeError, TypeError):
        return False
    return torch.allclose(product, rows.t().float(), atol=1)


def _pack_int8(rows: Tensor) -> Any:
    # Without the scales: torch would read them one by one, which takes longer than everything else
    # for a shortlist's matrix.
    tensor = torch._make_per_tensor_quantized_tensor(rows, 1.0, 0)
    return torch.ops.quantized.linear_prepack(tensor, None)


def _multiply_int8(inputs: Tensor, packed: Any) -> Tensor:
    return torch.ops.quantized.linear_dynamic(  # type: ignore[no-any-return]
        inputs, packed, reduce_range=True
    )


def replace_submodules(module: Module, **submodules: nn.Module) -> Module:
    """A copy of a module with other submodules under these names; it shares everything else."""
    other = copy(module)
    other._modules = {**module._modules, **submodules}
    return other


def pack_layers(module: Module, pack: PackFn, n_embedding: int = 0) -> Module:
    """A copy of a module with all linear layers and all layers of torch in it packed; it shares
    everything else.

    Args:
        n_embedding: E if the first layer of torch reads rows of `GateTable`.
    """
    packed: dict[str, nn.Module] = {}
    for name, child in module.named_children():
        if isinstance(child, FusedLayer):
            packed[name] = PackedLayer(child, pack, 0 if packed else n_embedding)
        elif isinstance(child, nn.Linear):
            packed[name] = pack(child)
        elif not isinstance(child, RecurrentLayer):
            packed[name] = pack_layers(child, pack, n_embedding)
    return replace_submodules(module, **packed) if packed else module


def linear_of(weight: Tensor, bias: Tensor) -> nn.Linear:
    """A layer with these weights [O, I] and [O], shared, and without gradients."""
    # nn.Linear() would draw weights first; torch's `skip_init` takes half a second to import
    linear = nn.Linear.__new__(nn.Linear)
    nn.Module.__init__(linear)
    linear.out_features, linear.in_features = weight.shape
    linear.weight, linear.bias = (
        nn.Parameter(part.detach(), requires_grad=False) for part in (weight, bias)
    )
    return linear


def pack_decoder(decoder: Decoder, pack: PackFn, n_embedding: int = 0) -> Decoder:
    """A copy of a decoder with packed layers in all parts but the attention.

    Args:
        n_embedding: E if it reads rows of `GateTable`, 0 if it reads embeddings.
    """
    parts: dict[str, Any] = {
        name: pack_layers(part, pack, n_embedding if name == "recurrent" else 0)
        for name, part in decoder.named_children()
        if name != "attention"
    }
    if n_embedding:
        parts["readout"] = EmbeddingReadout(parts["readout"], n_embedding)
    return replace_submodules(decoder, **parts)


class PackedLayer(RecurrentLayer):
    """A layer of torch with packed weights, in one direction or in both.

    Args:
        n_embedding: E if the inputs of `step` begin with rows of `GateTable`, 0 otherwise.
    """

    def __init__(self, layer: FusedLayer, pack: PackFn, n_embedding: int = 0) -> None:
        super().__init__()
        self.has_cell_state, self.hidden_size = layer.has_cell_state, layer.hidden_size
        self.directions = nn.ModuleList(
            PackedStep(layer, pack, n_embedding, index) for index in range(len(layer.weights))
        )

    def run(
        self, inputs: Tensor, lengths: Tensor | None = None, state: LayerState | None = None
    ) -> tuple[Tensor, LayerState]:
        assert lengths is not None, "an encoder gives them, and no state"
        rows, steps = torch.arange(len(inputs)), torch.arange(inputs.shape[1]).unsqueeze(1)
        last = lengths - 1
        # [S, B]; each direction begins at an end of the sentence, and padding comes last
        orders = steps.expand(-1, len(inputs)), (last - steps).clamp(min=0)
        outputs, states = [], []
        for step, order in zip(self.directions, orders, strict=False):
            assert isinstance(step, PackedStep)
            assert step.inputs is not None
            hidden, cell = self._unroll(step, step.inputs(inputs)[rows, order])
            outputs.append(hidden[order.t(), rows.unsqueeze(1)])  # the same order is its inverse
            states.append((hidden[last, rows], None if cell is None else cell[last, rows]))
        hiddens, cells = zip(*states, strict=True)
        cell = torch.cat(cells, 1) if self.has_cell_state else None
        return torch.cat(outputs, 2), (torch.cat(hiddens, 1), cell)

    def _unroll(self, step: "PackedStep", gates: Tensor) -> tuple[Tensor, Tensor | None]:
        """The states [S, B, H] of all steps, from the products of their inputs [S, B, G * H]."""
        zeros = gates.new_zeros(gates.shape[1], self.hidden_size)
        state: LayerState = zeros, zeros
        states = []
        for inputs in gates:
            state = step.update(inputs, step.hidden(state[0]), state)
            states.append(state)
        hiddens, cells = zip(*states, strict=True)
        return torch.stack(hiddens), torch.stack(cells) if self.has_cell_state else None

    def step(self, inputs: Tensor, state: LayerState) -> LayerState:
        return self.directions[0](inputs, state)  # type: ignore[no-any-return]


class PackedStep(nn.Module):
    """One step of a layer of torch.

    Args:
        n_embedding: as in `PackedLayer`.
        direction: 1 for the backward one.
    """

    def __init__(
        self, layer: FusedLayer, pack: PackFn, n_embedding: int = 0, direction: int = 0
    ) -> None:
        super().__init__()
        input_weight, hidden_weight, input_bias, hidden_bias = layer.weights[direction]
        self.update, self.n_embedding = layer.update, n_embedding
        bias = torch.zeros_like(input_bias) if n_embedding else input_bias  # which the table has
        rest = input_weight[:, n_embedding:]
        self.sizes = [n_embedding, len(hidden_bias), rest.shape[1]]  # E, G * H, F
        self.inputs = pack(linear_of(rest, bias)) if rest.shape[1] else None
        self.hidden = pack(linear_of(hidden_weight, hidden_bias))

    def forward(self, inputs: Tensor, state: LayerState) -> LayerState:
        """The next state, from inputs [B, I], or from [B, E + G * H + F]: a row of the table, and
        further inputs.
        """
        if not self.n_embedding:
            assert self.inputs is not None
            gates = self.inputs(inputs)
        else:
            _, gates, fed = inputs.split(self.sizes, 1)
            if self.inputs is not None:
                gates = gates + self.inputs(fed)
        return self.update(gates, self.hidden(state[0]), state)


class GateTable(nn.Module):
    """The embedding of each word, and the input part of the gates of the first layer, with bias.

    Args:
        embeddings: [V, E], as the decoder reads them.
        layer: the first recurrent layer.
    """

    def __init__(self, embeddings: Tensor, layer: FusedLayer) -> None:
        super().__init__()
        input_weight, _, input_bias, _ = layer.weights[0]
        gates = torch.addmm(input_bias, embeddings, input_weight[:, : embeddings.shape[1]].t())
        self.rows = torch.cat([embeddings, gates], 1)

    def forward(self, ids: Tensor) -> Tensor:
        """[B] -> [B, E + G * H]."""
        return self.rows[ids]


class EmbeddingReadout(Readout):
    """A readout whose words are rows of `GateTable`, which begin with the embedding."""

    def __init__(self, readout: Readout, embedding_size: int) -> None:
        nn.Module.__init__(self)
        self.readout, self.embedding_size = readout, embedding_size
        self.output_size = readout.output_size

    def forward(self, state: Tensor, embedded: Tensor, context: Tensor) -> Tensor:
        return self.readout(state, embedded[..., : self.embedding_size], context)  # type: ignore[no-any-return]
