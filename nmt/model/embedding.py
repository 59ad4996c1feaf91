"""Word vectors."""

from copy import copy

from torch import Tensor, nn

from nmt.model.dropout import Dropout, WordDropout
from nmt.sections import ModelConfig

# Large, so that words and not biases fill the first encoder states: attention finds its place several times sooner.
DEVIATION = 0.5


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

    def forward(self, ids: Tensor, noise: Tensor | None = None) -> Tensor:
        """[B, T], or one step [B] with the `noise` of its sentence: [..., E]."""
        return self.dropout(self.word_dropout(super().forward(ids) * self.scale), noise)  # type: ignore[no-any-return]

    def restrict(self, ids: Tensor) -> "Embedding":
        """The words `ids` [v] alone, numbered in that order. To search with, not to train."""
        short = copy(self)
        short._parameters = {"weight": nn.Parameter(self.weight[ids], requires_grad=False)}
        short.num_embeddings = len(ids)
        return short
