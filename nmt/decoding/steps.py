"""Single steps of recurrent layers for search, with packed weights.

The product of the input weights with a word's embedding is always the same, so a table holds it for
the whole vocabulary (Devlin 2017). H units; G gates: 4 of an LSTM, 3 of a GRU, 1 of an Elman
network.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from nmt.decoding.pack import PackFn, linear_of, pack_linears, replace_submodules
from nmt.model.decoder import Decoder
from nmt.model.recurrent import (
    ALL_LAYERS,
    GRU,
    LSTM,
    Elman,
    FusedLayer,
    LayerState,
    RecurrentLayer,
    RecurrentStack,
    RecurrentState,
    concatenate,
)


class InferenceStack(RecurrentStack):
    """A stack with packed layers; `step` alone differs.

    Args:
        n_embedding: E if the inputs of `step` are rows of `GateTable`, 0 if they are embeddings.
    """

    def __init__(self, stack: RecurrentStack, pack: PackFn, n_embedding: int = 0) -> None:
        nn.Module.__init__(self)
        self.layers, self.norms, self.residual, self.dropout = (
            stack.layers,
            stack.norms,
            stack.residual,
            stack.dropout,
        )
        layers = [layer for layer in stack.layers if isinstance(layer, RecurrentLayer)]
        self.steps = nn.ModuleList(
            build_step(layer, pack, 0 if index else n_embedding)
            for index, layer in enumerate(layers)
        )

    def step(
        self,
        inputs: Tensor,
        fed: Tensor | None,
        state: RecurrentState,
        context: Tensor | None = None,
        layers: slice = ALL_LAYERS,
    ) -> tuple[Tensor, RecurrentState]:
        outputs, states = inputs, state.layers()
        for index in range(len(self.steps))[layers]:
            states[index] = self.steps[index](outputs, context if index else fed, states[index])
            outputs = self._join(index, outputs, states[index][0])
        return outputs, RecurrentState.of_layers(states)


def replace_stacks(decoder: Decoder, pack: PackFn, n_embedding: int = 0) -> Decoder:
    """A copy of a decoder with an `InferenceStack` for each stack; `n_embedding` is for the one
    that reads the embedded words.
    """
    stacks = [
        (name, stack)
        for name, stack in decoder.named_children()
        if isinstance(stack, RecurrentStack)
    ]
    replaced = {
        name: InferenceStack(stack, pack, n_embedding if name == "recurrent" else 0)
        for name, stack in stacks
    }
    return replace_submodules(decoder, **replaced)


class FusedStep(nn.Module):
    """One step of a layer of torch.

    Args:
        n_embedding: E if the inputs are rows of `GateTable`, 0 otherwise.
    """

    def __init__(self, layer: FusedLayer, pack: PackFn, n_embedding: int = 0) -> None:
        super().__init__()
        input_weight, hidden_weight, input_bias, hidden_bias = layer.weights
        self._update, self.n_embedding = UPDATES[type(layer)], n_embedding
        bias = (
            torch.zeros_like(input_bias) if n_embedding else input_bias
        )  # the table includes the bias
        rest = input_weight[:, n_embedding:]
        self.inputs = pack(linear_of(rest, bias)) if rest.shape[1] else None
        self.hidden = pack(linear_of(hidden_weight, hidden_bias))

    def forward(self, inputs: Tensor, fed: Tensor | None, state: LayerState) -> LayerState:
        """The next state, from the inputs [B, I] or [B, E + G * H], and further inputs `fed` [B,
        F].
        """
        if not self.n_embedding:
            assert self.inputs is not None
            gates = self.inputs(concatenate(inputs, fed))
        else:
            gates = inputs[:, self.n_embedding :]
            if self.inputs is not None:
                gates = gates + self.inputs(fed)
        return self._update(gates, self.hidden(state[0]), state)


class GenericStep(nn.Module):
    """One step of any layer: its own `step`, with packed weights."""

    def __init__(self, layer: RecurrentLayer, pack: PackFn) -> None:
        super().__init__()
        self.layer = pack_linears(layer, pack)

    def forward(self, inputs: Tensor, fed: Tensor | None, state: LayerState) -> LayerState:
        return self.layer.step(concatenate(inputs, fed), state)


def build_step(
    layer: RecurrentLayer, pack: PackFn, n_embedding: int = 0
) -> FusedStep | GenericStep:
    """The fastest step for this layer."""
    return (
        FusedStep(layer, pack, n_embedding)
        if isinstance(layer, FusedLayer)
        else GenericStep(layer, pack)
    )


class GateTable(nn.Module):
    """For each word: its embedding, and the input part of all gates of the first recurrent layer,
    bias included.

    Args:
        embeddings: [V, E], as the decoder reads them.
        layer: the first recurrent layer.
    """

    def __init__(self, embeddings: Tensor, layer: FusedLayer) -> None:
        super().__init__()
        input_weight, _, input_bias, _ = layer.weights
        gates = torch.addmm(input_bias, embeddings, input_weight[:, : embeddings.shape[1]].t())
        self.rows = torch.cat([embeddings, gates], 1)

    def forward(self, ids: Tensor) -> Tensor:
        """[B] -> [B, E + G * H]."""
        return self.rows[ids]


# The gates from the input and from the hidden state, each [B, G * H], and the state before -> the
# next state.


def update_lstm(from_input: Tensor, from_hidden: Tensor, state: LayerState) -> LayerState:
    """c' = sigma(f) c + sigma(i) tanh(g), h' = sigma(o) tanh(c')."""
    assert state[1] is not None
    i, f, g, o = (from_input + from_hidden).chunk(4, 1)
    cell = (f.sigmoid() * state[1]).addcmul_(i.sigmoid(), _tanh(g))
    return o.sigmoid() * _tanh(cell), cell


def update_gru(from_input: Tensor, from_hidden: Tensor, state: LayerState) -> LayerState:
    """h' = n + sigma(z) (h - n), n = tanh(n_x + sigma(r) n_h): the reset gate after the product
    (before it in Cho 2014).
    """
    (r, z, n), (r_hidden, z_hidden, n_hidden) = from_input.chunk(3, 1), from_hidden.chunk(3, 1)
    new = _tanh(torch.addcmul(n, (r + r_hidden).sigmoid(), n_hidden))
    return torch.lerp(new, state[0], (z + z_hidden).sigmoid()), None


def update_elman(from_input: Tensor, from_hidden: Tensor, _state: LayerState) -> LayerState:
    """h' = tanh(x' + h')."""
    return _tanh(from_input + from_hidden), None


UPDATES: dict[type[RecurrentLayer], Callable[[Tensor, Tensor, LayerState], LayerState]] = {
    LSTM: update_lstm,
    GRU: update_gru,
    Elman: update_elman,
}


def _tanh(x: Tensor) -> Tensor:
    """2 sigma(2x) - 1, equal within rounding: torch's own tanh takes twice as long as these four
    operations.
    """
    return (x * 2).sigmoid_().mul_(2).sub_(1)
