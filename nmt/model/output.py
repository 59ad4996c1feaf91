"""Output layers: from the readout's vectors to probabilities of the target words, and the loss.

Search takes the most probable words from the logits, which are log-probabilities up to a constant
per row, and normalizes only those. N rows, V words.

To add a layer: a subclass of `Output`, and its row in `OUTPUTS`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from math import isfinite
from typing import NamedTuple

import torch
from torch import Tensor, nn

from nmt.errors import ConfigError, NonFiniteError
from nmt.model.cross_entropy import LOG2_E, MAX_SUM, MIN_SUM, Distillation, linear_cross_entropy
from nmt.model.lexical_bias import Additions

CHUNK_SIZE = 64  # `fast_topk` compares the maxima of chunks of this many ids
MIN_FAST_SIZE = 1 << 17  # `fast_topk` uses torch.topk for fewer logits than this
BLOCK_SIZE = 1 << 18  # logits that `log_norm` exponentiates at a time: they stay in the cache

# The ids [N, k] and log-probabilities [N, k] of the best words so far -> the log-probability [N]
# that another word must reach.
ThresholdFn = Callable[[Tensor, Tensor], Tensor]


class Vectors(NamedTuple):
    """What an output layer reads at N positions.

    Attributes:
        values: [N, R], of the readout.
        additions: to the logits; for layers that can.
    """

    values: Tensor
    additions: Additions | None = None

    def select(self, rows: Tensor) -> "Vectors":
        """Those at the positions `rows` [N'], in that order."""
        additions = None if self.additions is None else self.additions.select(rows)
        return Vectors(self.values[rows], additions)


class Output(nn.Module, ABC):
    """From vectors to probabilities.

    A subclass takes:
        size: R, the readout's width.
        vocabulary_size: V.
        tied: the target embedding [V, E], if the layer shares its matrix; for layers that can.
        cutoffs: the ids at which clusters of rare words begin; for layers that have them.
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

    def topk_log_probs(
        self, vectors: Vectors, k: int, threshold: ThresholdFn
    ) -> tuple[Tensor, Tensor]:
        """The ids and log-probabilities [N, k] of the most probable words, best first, on the CPU.

        Args:
            threshold: given the best words so far, the log-probability that another word must reach
                to be of use; words below it may be left out or have -inf.
        """
        return topk_log_probs(self(*vectors), k)

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
            additions: to the logits; for layers that can.
            distillation: for layers that can.

        Returns:
            the objective with smoothing, and the plain negative log-likelihood, which has no
            gradient.
        """


class Softmax(Output):
    """The full softmax over the vocabulary: logits = W_s x + b (Luong 2015, eq. 6).

    With `tied`, W_s is the target embedding [V, E]. If R is not E, x is projected to E numbers
    first.
    """

    def __init__(
        self,
        size: int,
        vocabulary_size: int,
        tied: nn.Embedding | None = None,
        cutoffs: Sequence[int] | None = None,
    ) -> None:
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


def default_cutoffs(vocabulary_size: int) -> list[int]:
    """The ids at which the clusters of rare words begin."""
    return sorted({max(1, vocabulary_size // 10), max(1, vocabulary_size // 3)})


class Adaptive(Output):
    """The adaptive softmax (Grave 2017): frequent words in a head, rare ones in clusters.

    Each cluster has vectors of half the size of those before. The vocabulary is sorted by
    frequency. The probability of a word in a cluster is that of the cluster times that of the word
    within the cluster, so training computes only the clusters that occur. `log_probs` gives the
    exact distribution over all words.

    `cutoffs` are a tenth and a third of the vocabulary if not given. There is no `tied` embedding,
    no label smoothing and no distillation: configurations with one of them are refused.

    Raises:
        ConfigError: a cutoff is not below the size of the vocabulary.
    """

    def __init__(
        self,
        size: int,
        vocabulary_size: int,
        tied: nn.Embedding | None = None,
        cutoffs: Sequence[int] | None = None,
    ) -> None:
        super().__init__()
        cutoffs = cutoffs or default_cutoffs(vocabulary_size)
        if cutoffs[-1] >= vocabulary_size:
            raise ConfigError(
                f"model.cutoffs: {cutoffs[-1]} is not below the size of the target vocabulary, "
                f"{vocabulary_size}"
            )
        self.softmax = nn.AdaptiveLogSoftmaxWithLoss(
            size, vocabulary_size, list(cutoffs), div_value=2.0, head_bias=True
        )

    def forward(self, vectors: Tensor, additions: Additions | None = None) -> Tensor:
        return self.softmax.log_prob(vectors.flatten(0, -2)).view(*vectors.shape[:-1], -1)

    def log_probs(self, vectors: Tensor, additions: Additions | None = None) -> Tensor:
        return self(vectors)  # type: ignore[no-any-return]

    def topk_log_probs(
        self, vectors: Vectors, k: int, threshold: ThresholdFn
    ) -> tuple[Tensor, Tensor]:
        # No word is more probable than its cluster, so the exact result needs only the clusters
        # that reach the threshold.
        values = vectors.values
        head, n_frequent = self.softmax.head(values), self.softmax.shortlist_size
        norm = log_norm(head)
        largest, ids = fast_topk(head[:, :n_frequent], min(k, n_frequent))
        ids, log_probs = ids.cpu(), to_log_probs(largest, norm)
        cluster_log_probs = to_log_probs(head[:, n_frequent:], norm)  # [N, C]
        reached = cluster_log_probs >= threshold(ids, log_probs).unsqueeze(1)
        all_ids, all_log_probs = [ids], [log_probs]
        for cluster, tail in enumerate(self.softmax.tail):
            rows = reached[:, cluster].nonzero().squeeze(1)
            if not len(rows):
                continue
            rare, within = topk_log_probs(tail(values[rows.to(values.device)]), k)
            rare += self.softmax.cutoffs[cluster]
            within += cluster_log_probs[rows, cluster, None]
            shape = len(ids), rare.shape[1]
            all_ids.append(rare.new_zeros(shape).index_put((rows,), rare))
            all_log_probs.append(within.new_full(shape, float("-inf")).index_put((rows,), within))
        ids, log_probs = torch.cat(all_ids, 1), torch.cat(all_log_probs, 1)
        best, columns = log_probs.topk(min(k, log_probs.shape[1]))
        return ids.gather(1, columns), best

    def best(self, vectors: Tensor, additions: Additions | None = None) -> Tensor:
        return self.softmax.predict(vectors.flatten(0, -2)).view(vectors.shape[:-1])

    def loss(
        self,
        vectors: Tensor,
        targets: Tensor,
        label_smoothing: float = 0.0,
        additions: Additions | None = None,
        distillation: Distillation | None = None,
    ) -> tuple[Tensor, Tensor]:
        with torch.autocast(vectors.device.type, enabled=False):
            vectors = vectors.to(self.softmax.head.weight.dtype)
            objective = -self.softmax(vectors, targets).output.sum()
        return objective, objective.detach()


def topk_log_probs(logits: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k most probable words of each row of logits [N, V], or all if they are fewer, best first.

    Returns:
        ids and log-probabilities [N, k], on the CPU, in double precision.

    Raises:
        NonFiniteError: the logits are not finite numbers.
    """
    largest, ids = fast_topk(logits, min(k, logits.shape[1]))
    return ids.cpu(), to_log_probs(largest, log_norm(logits))


def to_log_probs(logits: Tensor, norm: Tensor) -> Tensor:
    """The log-probabilities of some logits [N, k], with the `log_norm` [N, 1] of their rows."""
    return logits.cpu().double() - norm.cpu().double()


def log_norm(logits: Tensor) -> Tensor:
    """log sum exp of each row: [N, V] -> [N, 1].

    Raises:
        NonFiniteError: the logits are not finite numbers, so neither are the model's weights.
    """
    norm = None
    if logits.device.type == "cpu":
        # In a fifth of the time of logsumexp. Blocks stay in the cache, the maximum is not
        # subtracted where the sum is exact without, and exp2 takes half the time of exp.
        blocks = logits.split(max(1, BLOCK_SIZE // len(logits)), 1)
        sums = [(block * LOG2_E).exp2_().sum(1, keepdim=True) for block in blocks]
        total = torch.stack(sums).sum(0)
        norm = total.log() if ((total > MIN_SUM) & (total < MAX_SUM)).all() else None
    if norm is None:
        norm = logits.logsumexp(1, keepdim=True)
    if not isfinite(float(norm.sum())):
        raise NonFiniteError(
            "the model's logits are not finite: its weights are damaged, or its training has "
            "diverged"
        )
    return norm


def fast_topk(logits: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The same result as torch.topk along the rows, several times faster.

    The k largest lie in the k chunks with the largest maxima, or in the remainder that fills no
    chunk.
    """
    n_chunks = logits.shape[1] // CHUNK_SIZE
    if n_chunks <= 4 * k or logits.numel() < MIN_FAST_SIZE:
        return logits.topk(k)
    whole, n_candidates = n_chunks * CHUNK_SIZE, k * CHUNK_SIZE
    chunks = logits[:, :whole].unflatten(1, (n_chunks, CHUNK_SIZE))
    chosen = chunks.amax(2).topk(k, sorted=False).indices.sort().values  # [N, k]
    rows = torch.arange(len(logits), device=logits.device).unsqueeze(1)
    candidates = chunks[rows, chosen].flatten(1)
    largest, columns = torch.cat([candidates, logits[:, whole:]], 1).topk(k)
    chunk = chosen.gather(1, (columns // CHUNK_SIZE).clamp(max=k - 1))
    inside, beyond = chunk * CHUNK_SIZE + columns % CHUNK_SIZE, columns - n_candidates + whole
    return largest, torch.where(columns < n_candidates, inside, beyond)
