"""Output layers: from the readout's vectors to probabilities of the target words, and the loss.

Logits are log-probabilities up to a constant per row. N rows, V words.

To add a layer: a subclass of `Output`, and its row in `OUTPUTS`.
"""

from abc import ABC, abstractmethod
from typing import NamedTuple

from torch import Tensor, nn

from nmt.model.cross_entropy import Distillation, linear_cross_entropy
from nmt.model.lexical_bias import Additions


class Vectors(NamedTuple):
    """What an output layer reads at N positions.

    Attributes:
        values: [N, R], of the readout.
        additions: to the logits.
    """

    values: Tensor
    additions: Additions | None = None


class Output(nn.Module, ABC):
    """From vectors to probabilities.

    A subclass takes:
        size: R, the readout's width.
        vocabulary_size: V.
        tied: the target embedding [V, E], if the layer shares its matrix.
    """

    @abstractmethod
    def forward(self, vectors: Tensor, additions: Additions | None = None) -> Tensor:
        """[..., R] -> logits [..., V]."""

    def log_probs(self, vectors: Tensor, additions: Additions | None = None) -> Tensor:
        """[..., R] -> log-probabilities [..., V]."""
        return self(vectors, additions).log_softmax(-1)  # type: ignore[no-any-return]

    def best(self, vectors: Tensor, additions: Additions | None = None) -> Tensor:
        """[..., R] -> the most probable ids [...]."""
        return self(vectors, additions).argmax(-1)  # type: ignore[no-any-return]

    @abstractmethod
    def loss(
        self,
        vectors: Tensor,
        targets: Tensor,
        label_smoothing: float = 0.0,
        additions: Additions | None = None,
        distillation: Distillation | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Sums over N positions, in nats.

        Args:
            vectors: [N, R]. targets: [N].
            label_smoothing: the probability mass that is spread evenly over the vocabulary (Szegedy
                2016, 7).
            additions: to the logits.
            distillation: soft targets, and their weight.

        Returns:
            the objective with smoothing, and the plain negative log-likelihood, which has no
            gradient.
        """


class Softmax(Output):
    """The full softmax over the vocabulary: logits = W_s x + b (Luong 2015, eq. 6).

    With `tied`, W_s is the target embedding [V, E]. If R is not E, x is projected to E numbers
    first.
    """

    def __init__(self, size: int, vocabulary_size: int, tied: nn.Embedding | None = None) -> None:
        super().__init__()
        embedding_size = tied.embedding_dim if tied is not None else size
        self.project = (
            nn.Identity() if embedding_size == size else nn.Linear(size, embedding_size, bias=False)
        )
        self.logits = nn.Linear(embedding_size, vocabulary_size)
        nn.init.zeros_(self.logits.bias)
        if tied is not None:
            self.logits.weight = tied.weight

    def forward(self, vectors: Tensor, additions: Additions | None = None) -> Tensor:
        logits: Tensor = self.logits(self.project(vectors))
        if additions is None:
            return logits
        return logits.scatter_add_(1, additions.ids, additions.values.to(logits.dtype))

    def loss(
        self,
        vectors: Tensor,
        targets: Tensor,
        label_smoothing: float = 0.0,
        additions: Additions | None = None,
        distillation: Distillation | None = None,
    ) -> tuple[Tensor, Tensor]:
        weight, bias = self.logits.weight, self.logits.bias
        return linear_cross_entropy(
            self.project(vectors), weight, bias, targets, label_smoothing, additions, distillation
        )
