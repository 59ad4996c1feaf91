"""Word vectors."""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass

from torch import Tensor, nn

from nmt.config.schema import ModelConfig
from nmt.model.dropout import Dropout, WordDropout

# Large, so that words and not biases fill the first encoder states: attention finds its place several times sooner.
DEVIATION = 0.5


@dataclass(frozen=True)
class Word:
    """What a decoder reads in one step.

    Attributes:
        embedded: [B, E].
        gates: [B, G * H], what it adds to the gates of the first layer, where that is known before (see `cells`).
    """

    embedded: Tensor
    gates: Tensor | None = None


class Embedding(nn.Embedding):
    """Ids to vectors, with dropout of units and words.

    Args:
        is_output: the matrix serves as the output layer's too. Then it starts small, for the first logits to be, and is scaled up
            where it is read (Vaswani 2017, 3.4).
    """

    def __init__(self, vocabulary_size: int, config: ModelConfig, dropout: Dropout, *, is_output: bool = False) -> None:
        super().__init__(vocabulary_size, config.embedding_size)
        deviation = config.embedding_size**-0.5 if is_output else DEVIATION
        nn.init.normal_(self.weight, std=deviation)
        self.scale = DEVIATION / deviation
        self.word_dropout, self.dropout = WordDropout(config.word_dropout), dropout
        self._words: Tensor | None = None  # [v], the ids that are left
        self._gates: Tensor | None = None  # [V, G * H]

    def forward(self, ids: Tensor, noise: Tensor | None = None) -> Tensor:
        """[B, T], or one step [B] with the `noise` of its sentence: [..., E]."""
        ids = ids if self._words is None else self._words[ids]
        return self.dropout(self.word_dropout(super().forward(ids) * self.scale), noise)  # type: ignore[no-any-return]

    def read(self, ids: Tensor, noise: Tensor | None = None) -> Word:
        """One step [B]."""
        if self._gates is None:
            return Word(self(ids, noise))
        return Word(self(ids, noise), self._gates[ids if self._words is None else self._words[ids]])

    def with_gates(self, gates_of: Callable[[Tensor], Tensor]) -> "Embedding":
        """The same, but it knows what words add to gates: `gates_of` all embeddings [V, E]. To search with, not to train."""
        other = copy(self)
        other._gates = gates_of(self.weight * self.scale)
        return other

    def restrict(self, ids: Tensor) -> "Embedding":
        """The words `ids` [v] alone, numbered in that order. To search with, not to train."""
        other = copy(self)
        other._words = ids if self._words is None else self._words[ids]
        return other
