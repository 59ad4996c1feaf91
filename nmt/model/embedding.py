"""Word vectors."""

from torch import Tensor, nn

from nmt.config.schema import ModelConfig
from nmt.model.dropout import Dropout, WordDropout

# Large, so that words and not biases dominate the first encoder states: attention finds the right positions several times sooner.
STANDARD_DEVIATION = 0.5


class Embedding(nn.Embedding):
    """Ids to vectors, with dropout of units and words.

    Args:
        is_output: the output layer uses the same matrix. Then it starts small, so that the first logits are small, and is scaled up
            where it embeds words (Vaswani 2017, 3.4).
    """

    def __init__(self, vocabulary_size: int, config: ModelConfig, dropout: Dropout, *, is_output: bool = False) -> None:
        super().__init__(vocabulary_size, config.embedding_size)
        deviation = config.embedding_size**-0.5 if is_output else STANDARD_DEVIATION
        nn.init.normal_(self.weight, std=deviation)
        self.scale = STANDARD_DEVIATION / deviation
        self.word_dropout, self.dropout = WordDropout(config.word_dropout), dropout

    def forward(self, ids: Tensor, noise: Tensor | None = None) -> Tensor:
        """Ids [B, T], or of one step [B] with the dropout mask `noise` [B, E] of its sentences, to vectors [..., E]."""
        return self.dropout(self.word_dropout(super().forward(ids) * self.scale), noise)  # type: ignore[no-any-return]
