"""The output layer: scores the vocabulary with the readout's vectors. The decoder does not know how words are scored.

To add one: a class with `log_probs`, `loss` and `best`, a row in `OUTPUTS`, an entry of `OutputName` in the configuration.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from nmt.config.schema import ModelConfig, OutputName
from nmt.errors import ConfigError
from nmt.model.cross_entropy import linear_cross_entropy
from nmt.model.inference.int8 import Int8Linear
from nmt.model.inference.packed import PackedLinear
from nmt.model.inference.sharing import linear_of, with_parts
from nmt.model.topk import ThresholdFn, fast_topk, log_norm, to_log_probs, topk_log_probs


class Output(nn.Module, ABC):
    """What all output layers can do."""

    @abstractmethod
    def log_probs(self, vectors: Tensor) -> Tensor:
        """[..., R] -> log-probabilities [..., V]."""

    def compute_logits(self, vectors: Tensor) -> Tensor:
        """[..., R] -> [..., V], log-probabilities up to a number for each row: for search, which norms only those it keeps."""
        return self.log_probs(vectors)

    def topk_log_probs(self, vectors: Tensor, k: int, threshold: ThresholdFn) -> tuple[Tensor, Tensor]:
        """The likeliest k words of each row [R', R], likeliest first: ids and log-probabilities [R', k], on the CPU.

        Args:
            threshold: words may be left out, or have -inf, whose log-probability is below what it makes of likelier ones.
        """
        return topk_log_probs(self.compute_logits(vectors), k)

    @abstractmethod
    def best(self, vectors: Tensor) -> Tensor:
        """[..., R] -> the likeliest ids [...]."""

    @abstractmethod
    def restrict(self, ids: Tensor) -> "Output":
        """This layer for the words `ids` [v] alone, in that order: probabilities are among them. To search with, not to train."""

    @abstractmethod
    def loss(self, vectors: Tensor, targets: Tensor, label_smoothing: float = 0.0) -> tuple[Tensor, Tensor]:
        """Sums over N positions, in nats.

        Args:
            vectors: [N, R]. targets: [N].
            label_smoothing: this much probability is spread evenly over the vocabulary (Szegedy 2016, 7).

        Returns:
            the objective with smoothing, and the plain negative log-likelihood, which has no gradient.
        """


class Softmax(Output):
    """The full softmax over the vocabulary: logits = W_s x + b (Luong 2015, eq. 6).

    Args:
        size: R, the readout's width.
        vocabulary_size: V.
        tied: the target embedding [V, E], to serve as W_s; where R differs from E a projection leads from one to the other.
    """

    def __init__(self, size: int, vocabulary_size: int, tied: nn.Embedding | None = None) -> None:
        super().__init__()
        embedding_size = tied.embedding_dim if tied is not None else size
        self.project = nn.Identity() if embedding_size == size else nn.Linear(size, embedding_size, bias=False)
        self.logits = nn.Linear(embedding_size, vocabulary_size)
        nn.init.zeros_(self.logits.bias)
        if tied is not None:
            self.logits.weight = tied.weight

    def forward(self, vectors: Tensor) -> Tensor:
        """[..., R] -> logits [..., V]."""
        return self.logits(self.project(vectors))  # type: ignore[no-any-return]

    def compute_logits(self, vectors: Tensor) -> Tensor:
        return self(vectors)  # type: ignore[no-any-return]

    def log_probs(self, vectors: Tensor) -> Tensor:
        return functional.log_softmax(self(vectors), dim=-1)

    def best(self, vectors: Tensor) -> Tensor:
        return self(vectors).argmax(-1)  # type: ignore[no-any-return]

    def restrict(self, ids: Tensor) -> Output:
        return with_parts(self, logits=_select(self.logits, ids))

    def loss(self, vectors: Tensor, targets: Tensor, label_smoothing: float = 0.0) -> tuple[Tensor, Tensor]:
        return linear_cross_entropy(self.project(vectors), self.logits.weight, self.logits.bias, targets, label_smoothing)


class Adaptive(Output):
    """The adaptive softmax (Grave 2017): frequent words in a small head, rare ones in clusters of half the size each.

    The vocabulary is sorted by frequency. A word of a cluster has the probability of its cluster times its own within it, so that
    in training only the clusters that occur are computed. `log_probs` gives the exact distribution, over all words.

    Args:
        size: R. vocabulary_size: V.
        cutoffs: where the clusters begin; a tenth and a third of the vocabulary if not given.

    Raises:
        ConfigError: a cluster would begin beyond the vocabulary.
    """

    def __init__(self, size: int, vocabulary_size: int, cutoffs: Sequence[int] | None = None) -> None:
        super().__init__()
        cutoffs = cutoffs or sorted({max(1, vocabulary_size // 10), max(1, vocabulary_size // 3)})
        if cutoffs[-1] >= vocabulary_size:
            raise ConfigError(f"model.cutoffs: {cutoffs[-1]} is not below the size of the target vocabulary, {vocabulary_size}")
        self.softmax = nn.AdaptiveLogSoftmaxWithLoss(size, vocabulary_size, list(cutoffs), div_value=2.0, head_bias=True)

    def log_probs(self, vectors: Tensor) -> Tensor:
        return self.softmax.log_prob(vectors.flatten(0, -2)).view(*vectors.shape[:-1], -1)

    def topk_log_probs(self, vectors: Tensor, k: int, threshold: ThresholdFn) -> tuple[Tensor, Tensor]:
        # A word is never likelier than its cluster: most clusters need not be looked into, and what is found is the same.
        head, n_frequent = self.softmax.head(vectors), self.softmax.shortlist_size
        norm = log_norm(head)
        found, ids = fast_topk(head[:, :n_frequent], min(k, n_frequent))
        ids, log_probs = ids.cpu(), to_log_probs(found, norm)
        of_clusters = to_log_probs(head[:, n_frequent:], norm)  # [R', C]
        reached = of_clusters >= threshold(ids, log_probs).unsqueeze(1)
        all_ids, all_log_probs = [ids], [log_probs]
        for cluster, tail in enumerate(self.softmax.tail):
            rows = reached[:, cluster].nonzero().squeeze(1)
            if len(rows):
                rare, within = topk_log_probs(tail(vectors[rows.to(vectors.device)]), k)
                all_ids.append(rare.new_zeros(len(ids), rare.shape[1]).index_put((rows,), rare + self.softmax.cutoffs[cluster]))
                nothing = within.new_full((len(ids), within.shape[1]), float("-inf"))
                all_log_probs.append(nothing.index_put((rows,), within + of_clusters[rows, cluster : cluster + 1]))
        ids, log_probs = torch.cat(all_ids, 1), torch.cat(all_log_probs, 1)
        best, places = log_probs.topk(min(k, log_probs.shape[1]))
        return ids.gather(1, places), best

    def best(self, vectors: Tensor) -> Tensor:
        return self.softmax.predict(vectors.flatten(0, -2)).view(vectors.shape[:-1])

    def restrict(self, ids: Tensor) -> Output:
        raise ConfigError("decoding.shortlist: an adaptive output layer has none; set it to 0")

    def loss(self, vectors: Tensor, targets: Tensor, label_smoothing: float = 0.0) -> tuple[Tensor, Tensor]:
        assert label_smoothing == 0, "refused when the configuration is read"
        with torch.autocast(vectors.device.type, enabled=False):  # the loss keeps the precision of the weights
            objective = -self.softmax(vectors.to(self.softmax.head.weight.dtype), targets).output.sum()
        return objective, objective.detach()


def _select(linear: nn.Module, ids: Tensor) -> nn.Module:
    """The outputs `ids` of a linear layer alone; not packed, for each batch has its own, and that would take longer."""
    if isinstance(linear, Int8Linear):
        return linear.select(ids)
    assert isinstance(linear, nn.Linear | PackedLinear)
    assert linear.bias is not None
    return linear_of(linear.weight[ids], linear.bias[ids])


OUTPUTS: dict[OutputName, type[Output]] = {"softmax": Softmax, "adaptive": Adaptive}


def build_output(config: ModelConfig, size: int, vocabulary_size: int, tied: nn.Embedding | None) -> Output:
    """The output layer that the configuration names; `tied` is the target embedding, if its matrix is to be used.

    Raises:
        ConfigError: the configuration does not fit the size of the vocabulary.
    """
    if config.output == "adaptive":
        return Adaptive(size, vocabulary_size, config.cutoffs)
    return Softmax(size, vocabulary_size, tied)
