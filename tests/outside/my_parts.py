"""Parts outside of nmt, one for each seam; their rows are in my_extra.py."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, ClassVar

import torch
import typer
from torch import Tensor, nn

from nmt.config.schema import Config, ModelConfig
from nmt.data.batches import Batch
from nmt.decoding.translation import Translation
from nmt.model.attention import Memory
from nmt.model.decoder import Decoder, DecoderOutput, DecoderState
from nmt.model.recurrent import LayerState, RecurrentLayer
from nmt.model.seq2seq import Decoded


class MinimalCell(RecurrentLayer):
    """The minimal gated unit, h' = (1 - f) h + f tanh(W x + U (f h)), in one direction."""

    def __init__(self, input_size: int, hidden_size: int, bidirectional: bool = False) -> None:
        super().__init__()
        assert not bidirectional
        self.hidden_size = hidden_size
        self.from_input = nn.Linear(input_size, 2 * hidden_size)
        self.forget = nn.Linear(hidden_size, hidden_size, bias=False)
        self.candidate = nn.Linear(hidden_size, hidden_size, bias=False)

    def step(self, inputs: Tensor, state: LayerState) -> LayerState:
        forget, candidate = self.from_input(inputs).chunk(2, -1)
        gate = (forget + self.forget(state[0])).sigmoid()
        new = torch.tanh(candidate + self.candidate(gate * state[0]))
        return torch.lerp(state[0], new, gate), None

    def run(
        self, inputs: Tensor, lengths: Tensor | None = None, state: LayerState | None = None
    ) -> tuple[Tensor, LayerState]:
        last: LayerState = state or (inputs.new_zeros(len(inputs), self.hidden_size), None)
        outputs = []
        for position in range(inputs.shape[1]):
            hidden, _ = self.step(inputs[:, position], last)
            is_real = torch.ones(len(inputs), 1, dtype=torch.bool)
            if lengths is not None:
                is_real = (position < lengths).unsqueeze(1)
            last = torch.where(is_real, hidden, last[0]), None
            outputs.append(hidden * is_real)
        return torch.stack(outputs, 1), last


class LateDecoder(Decoder):
    """Attends with the state before the step, and adds the context only in the readout."""

    def __init__(self, config: ModelConfig, dropout: nn.Dropout) -> None:
        super().__init__(config, config.embedding_size, dropout)

    def step(self, embedded: Tensor, state: DecoderState, memory: Memory) -> DecoderOutput:
        attended = self.attention.step(state.recurrent.top, memory, state.attention)
        top, recurrent = self.recurrent.step(embedded, None, state.recurrent)
        vector = self.readout(top, embedded, attended.context)
        return DecoderOutput(vector, attended.weights, DecoderState(recurrent, attended.state))


def length_error(outputs: Sequence[str], references: Sequence[str], lowercase: bool) -> float:
    """How many characters longer or shorter the outputs are, in percent; lower is better."""
    n_characters = sum(map(len, references))
    return 100 * abs(sum(map(len, outputs)) - n_characters) / n_characters


def sharpness_loss(decoded: Decoded, batch: Batch) -> Tensor:
    weights = decoded.attention.clamp_min(1e-10)
    return -((weights * weights.log()).sum(-1) * batch.tgt_mask).sum()


class Shortest:
    runs: ClassVar[dict[str, Path]] = {}

    def __call__(self, results: Sequence[Sequence[Translation]]) -> list[list[Translation]]:
        return [
            [replace(each, score=float(-len(each.text))) for each in sorted(beam, key=by_length)]
            for beam in results
        ]


def by_length(translation: Translation) -> int:
    return len(translation.text)


def rank(config: Config, device: str) -> Shortest | None:
    """The ranker, if the configuration asks for it."""
    return Shortest() if getattr(config.decoding, "shortest", False) else None


def greet(name: Annotated[str, typer.Argument(help="Whom to greet.")] = "world") -> None:
    print(f"hello {name}")  # noqa: T201
