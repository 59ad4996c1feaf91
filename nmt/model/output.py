"""The output layer: from the readout's vectors to probabilities of the target words, and the loss,
which never holds the logits of all positions in memory.

Logits are log-probabilities up to a constant per row. N rows, V words.
"""

from collections.abc import Sequence
from math import ceil, e, log, log2
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from nmt.data.batches import SoftTargets
from nmt.model.lexical_bias import Additions

# Logits are computed for at most this many positions and words at a time: memory does not grow with
# the batch, and products of this shape run near the peak speed of a processor, unlike products with
# all words at once. Between 512 and 2048 rows and 1024 and 3072 words, the time differs by at most
# 3 % in float32 and 6 % in bfloat16 (AMD EPYC, 640 and 1600 positions, 17,423 words, R = 256).
MAX_ROWS, MAX_WORDS = 1024, 2048
MIN_SUM, MAX_SUM = 1.0e-30, 1.0e30  # sums of exponentials between these are exact in float32
# exp(x) = exp2(x log2 e); exp2 takes a processor little more than half the time of exp
LOG2_E = log2(e)


class Vectors(NamedTuple):
    """What the output layer reads at N positions.

    Attributes:
        values: [N, R], of the readout.
        additions: to the logits.
    """

    values: Tensor
    additions: Additions | None = None


class Distillation(NamedTuple):
    """The weight of the cross-entropy of soft targets, in [0, 1]."""

    targets: SoftTargets
    weight: float


class Output(nn.Module):
    """The softmax over the vocabulary: logits = W_s x + b (Luong 2015, eq. 6).

    Args:
        size: R, the readout's width.
        vocabulary_size: V.
        tied: the target embedding [V, E], which is W_s then. If R is not E, x is projected to E
            numbers first.
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
        """[..., R] -> logits [..., V]; additions need [N, R]."""
        logits: Tensor = self.logits(self.project(vectors))
        if additions is None:
            return logits
        return logits.scatter_add_(1, additions.ids, additions.values.to(logits.dtype))

    def log_probs(self, vectors: Tensor, additions: Additions | None = None) -> Tensor:
        """[..., R] -> log-probabilities [..., V]."""
        return self(vectors, additions).log_softmax(-1)  # type: ignore[no-any-return]

    def best(self, vectors: Tensor, additions: Additions | None = None) -> Tensor:
        """[..., R] -> the most probable ids [...]."""
        return self(vectors, additions).argmax(-1)  # type: ignore[no-any-return]

    def loss(
        self,
        vectors: Tensor,
        targets: Tensor,
        label_smoothing: float = 0.0,
        additions: Additions | None = None,
        distillation: Distillation | None = None,
    ) -> tuple[Tensor, Tensor]:
        """[N, R] -> the two sums of `linear_cross_entropy`."""
        weight, bias = self.logits.weight, self.logits.bias
        return linear_cross_entropy(
            self.project(vectors), weight, bias, targets, label_smoothing, additions, distillation
        )


def linear_cross_entropy(
    vectors: Tensor,
    weight: Tensor,
    bias: Tensor,
    targets: Tensor,
    label_smoothing: float = 0.0,
    additions: Additions | None = None,
    distillation: Distillation | None = None,
) -> tuple[Tensor, Tensor]:
    """Cross-entropy of softmax(W x + b + additions), summed over N positions, in nats.

    Args:
        vectors: [N, R]. weight: [V, R]. bias: [V]. targets: [N].
        label_smoothing: the probability mass that is spread evenly over the vocabulary (Szegedy
            2016, 7).
        distillation: the cross-entropy of `targets`, with smoothing, has the rest of the weight.

    Returns:
        the objective with smoothing, and the plain negative log-likelihood, which has no gradient.

    The result has the precision of the weights. With autocast on a CPU, where large products take
    nearly all of the time, their factors are rounded to its precision; all sums and exponentials
    are not.
    """
    device = vectors.device.type
    is_mixed = device == "cpu" and torch.is_autocast_enabled("cpu")
    dtype = torch.get_autocast_dtype("cpu") if is_mixed else weight.dtype
    with torch.autocast(device, enabled=False):
        ids, values = additions or (None, None)
        plan = _Plan(targets, ids, label_smoothing, distillation, dtype, torch.is_grad_enabled())
        values = None if values is None else values.to(weight.dtype)
        return _LinearCrossEntropy.apply(  # type: ignore[no-untyped-call, no-any-return]
            vectors.to(weight.dtype), weight, bias, values, plan
        )


class _Plan(NamedTuple):
    """What has no gradient: arguments of `linear_cross_entropy`.

    Attributes:
        ids: of the additions, if any.
        dtype: of the factors of products.
        learning: whether gradients are wanted.
    """

    targets: Tensor
    ids: Tensor | None
    smoothing: float
    distillation: Distillation | None
    dtype: torch.dtype
    learning: bool


class _Inputs(NamedTuple):
    """What has a gradient; or the gradients."""

    vectors: Tensor
    weight: Tensor
    bias: Tensor
    values: Tensor | None


class _LinearCrossEntropy(torch.autograd.Function):
    """Computes the gradient together with the loss, part by part, and keeps no logits."""

    @staticmethod
    def forward(
        ctx: Any, vectors: Tensor, weight: Tensor, bias: Tensor, values: Tensor | None, plan: _Plan
    ) -> tuple[Tensor, Tensor]:
        inputs, gradients = _Inputs(vectors, weight, bias, values), None
        if plan.learning and any(ctx.needs_input_grad):
            zeros = (None if part is None else torch.zeros_like(part) for part in inputs)
            gradients = _Inputs(*zeros)  # type: ignore[arg-type]
        normalizers = _log_normalizers(inputs, gradients, plan)
        references, targets = weight[plan.targets], plan.targets
        nll = (normalizers - (vectors * references).sum(1) - bias[targets]).sum()
        if plan.ids is not None and values is not None:
            is_reference = plan.ids == targets.unsqueeze(1)
            nll = nll - torch.where(is_reference, values, 0).sum()
        distillation, smoothing = plan.distillation, plan.smoothing
        hard_weight = 1.0 if distillation is None else 1 - distillation.weight
        objective = hard_weight * (1 - smoothing) * nll
        if smoothing:
            uniform = (normalizers - vectors @ weight.mean(0) - bias.mean()).sum()
            if values is not None:
                uniform = uniform - values.sum() / len(weight)
            objective = objective + hard_weight * smoothing * uniform
        if gradients is not None:
            _subtract_targets(gradients, inputs, references, plan, hard_weight)
        if distillation is not None:
            expected = _subtract_soft_targets(gradients, inputs, plan.ids, distillation)
            objective = objective + distillation.weight * (normalizers.sum() - expected)
        if gradients is not None:
            ctx.save_for_backward(*gradients)
        ctx.mark_non_differentiable(nll)
        return objective, nll

    @staticmethod
    def backward(ctx: Any, outer: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        gradients = ctx.saved_tensors
        # No comparison on a GPU, which would wait for it.
        if outer.device.type != "cpu" or outer.item() != 1:
            gradients = [None if x is None else x * outer for x in gradients]
        return (*gradients, None)


def _subtract_targets(
    gradients: _Inputs, inputs: _Inputs, references: Tensor, plan: _Plan, hard_weight: float
) -> None:
    """Subtract the target distribution: the reference word, and the even share of each word.

    Args:
        references: [N, R], the rows of the weights for the reference words.
    """
    vectors, weight, targets = inputs.vectors, inputs.weight, plan.targets
    even, factor = hard_weight * plan.smoothing / len(weight), hard_weight * (plan.smoothing - 1)
    gradients.vectors.add_(references, alpha=factor)
    gradients.weight.index_add_(0, targets, vectors, alpha=factor)
    gradients.bias.index_add_(0, targets, torch.ones_like(vectors[:, 0]), alpha=factor)
    if plan.smoothing:
        gradients.vectors.sub_(even * weight.sum(0))
        gradients.weight.sub_(even * vectors.sum(0))
        gradients.bias.sub_(even * len(vectors))
    if plan.ids is not None and gradients.values is not None:
        is_reference = plan.ids == targets.unsqueeze(1)
        gradients.values.add_(is_reference.to(weight.dtype), alpha=factor).sub_(even)


def _subtract_soft_targets(
    gradients: _Inputs | None, inputs: _Inputs, ids: Tensor | None, distillation: Distillation
) -> Tensor:
    """Subtract the soft targets p, weighted, and return sum_v p_v (W_v x + b_v) over all positions.

    Args:
        ids: of the additions.
    """
    (words, probabilities), soft_weight = distillation
    vectors, weight, bias, values = inputs
    probabilities = probabilities.to(weight.dtype)
    by_word = list(zip(words.unbind(1), probabilities.unbind(1), strict=True))
    even = (1 - probabilities.sum(1)) / len(weight)  # [N]: of each word, in addition
    rows = even.unsqueeze(1) * weight.sum(0)  # [N, R]: sum_v p_v W_v
    for word, probability in by_word:
        rows.addcmul_(probability.unsqueeze(1), weight[word])
    of_bias = (probabilities * bias[words]).sum() + even.sum() * bias.sum()
    expected = (vectors * rows).sum() + of_bias
    if gradients is not None:
        gradients.vectors.sub_(rows, alpha=soft_weight)
        gradients.weight.sub_(even @ vectors, alpha=soft_weight)
        for word, probability in by_word:
            shares = probability.unsqueeze(1) * vectors
            gradients.weight.index_add_(0, word, shares, alpha=-soft_weight)
        gradients.bias.sub_(even.sum(), alpha=soft_weight)
        gradients.bias.index_add_(0, words.flatten(), probabilities.flatten(), alpha=-soft_weight)
    if ids is not None and values is not None:
        shares = even.unsqueeze(1).expand_as(values).clone()
        for word, probability in by_word:
            shares += torch.where(ids == word.unsqueeze(1), probability.unsqueeze(1), 0)
        expected = expected + (values * shares).sum()
        if gradients is not None and gradients.values is not None:
            gradients.values.sub_(shares, alpha=soft_weight)
    return expected


def _log_normalizers(inputs: _Inputs, gradients: _Inputs | None, plan: _Plan) -> Tensor:
    """log sum_v exp(W_v x + b_v) of each position [N]; adds the gradient of their sum.

    On a CPU the logits are exponentiated as they are, while a block of words is in the cache.
    Subtracting the maxima first takes two more passes over all of them, so it happens only if a sum
    leaves the range in which it is exact.
    """
    # Parts of similar size: a small part takes nearly as long as a large one.
    n_parts = max(1, ceil(len(inputs.vectors) / MAX_ROWS))
    vectors = inputs.vectors.tensor_split(n_parts)
    entries: Sequence[_Entries | None] = [None] * n_parts
    if plan.ids is not None and inputs.values is not None:
        columns = (part.t().tensor_split(n_parts, 1) for part in (plan.ids, inputs.values))
        entries = [_Entries(*part) for part in zip(*columns, strict=True)]
    weight = inputs.weight.to(plan.dtype)
    normalizers, added = [], []
    for index, (part, entry) in enumerate(zip(vectors, entries, strict=True)):
        exponentials, total, top = _exponentials(part, weight, inputs.bias, entry)
        normalizers.append(total.log() + log(2) * top)
        if gradients is None:
            continue
        vector_gradient = gradients.vectors.tensor_split(n_parts)[index]
        # Dividing the vectors by the totals is cheaper than dividing the exponentials.
        scaled, block = (part / total.unsqueeze(1)).to(plan.dtype), len(exponentials[0])
        weights = weight, gradients.weight, gradients.bias
        blocks = zip(exponentials, *(tensor.split(block) for tensor in weights), strict=True)
        for exponential, words, weight_gradient, bias_gradient in blocks:
            bias_gradient.addmv_(exponential, 1 / total)
            factor = exponential.to(plan.dtype)
            _add_product(vector_gradient, factor.t(), words)
            _add_product(weight_gradient, factor, scaled)
        vector_gradient.div_(total.unsqueeze(1))
        if entry is not None:
            added.append(entry.gather(exponentials).div_(total))
    if gradients is not None and gradients.values is not None:
        gradients.values.copy_(torch.cat(added, 1).t())
    return torch.cat(normalizers)


def _add_product(total: Tensor, left: Tensor, right: Tensor) -> None:
    """Add left right to `total`, in the precision of `total`."""
    if left.dtype == total.dtype:
        total.addmm_(left, right)
    else:
        total.add_(left @ right)


class _Entries(NamedTuple):
    """The additions to the logits of n vectors: words and numbers, [U, n]."""

    ids: Tensor
    values: Tensor

    def gather(self, blocks: Sequence[Tensor]) -> Tensor:
        """The numbers [U, n] of the words in the blocks [w, n], one block after the other."""
        result, first = torch.zeros_like(self.values), 0
        for block in blocks:
            rows, inside = self.rows(block, first)
            result += torch.where(inside, block.gather(0, rows), 0)
            first += len(block)
        return result

    def rows(self, block: Tensor, first: int) -> tuple[Tensor, Tensor]:
        """The row of each word in the block [w, n] of the words from `first` on, and whether it is
        inside.
        """
        rows = self.ids - first
        inside = (rows >= 0) & (rows < len(block))
        return torch.where(inside, rows, 0), inside


def _exponentials(
    vectors: Tensor, weight: Tensor, bias: Tensor, entries: _Entries | None
) -> tuple[list[Tensor], Tensor, Tensor]:
    """The exponentials of all logits of `vectors` [n, R]; products have the precision of `weight`.

    Returns:
        the exponentials over 2 ** top, [w, n] for each block of w words; their sums over all words,
        [n]; and top, [n]: the maxima of the logits over log 2, or 0 if no sum leaves the range in
        which it is exact.
    """
    factors = vectors.to(weight.dtype), weight, bias, entries
    if vectors.device.type != "cpu":
        return _exponentials_of_blocks(*factors, len(weight), shifted=True)
    blocks, total, top = _exponentials_of_blocks(*factors, MAX_WORDS, shifted=False)
    if bool(((total > MIN_SUM) & (total < MAX_SUM)).all()):
        return blocks, total, top
    return _exponentials_of_blocks(*factors, MAX_WORDS, shifted=True)


def _exponentials_of_blocks(
    vectors: Tensor,
    weight: Tensor,
    bias: Tensor,
    entries: _Entries | None,
    block: int,
    *,
    shifted: bool,
) -> tuple[list[Tensor], Tensor, Tensor]:
    """With a top if `shifted`, in blocks of `block` words."""
    top, blocks, sums = bias.new_zeros(len(vectors)), list[Tensor](), list[Tensor]()
    for words, shift in zip(weight.split(block), bias.unsqueeze(1).split(block), strict=True):
        if words.dtype == bias.dtype:
            logits = torch.addmm(shift, words, vectors.t(), beta=LOG2_E, alpha=LOG2_E)
        else:
            logits = (words @ vectors.t()).to(bias.dtype).add_(shift).mul_(LOG2_E)
        if entries is not None:
            rows, inside = entries.rows(logits, block * len(blocks))
            logits.scatter_add_(0, rows, torch.where(inside, entries.values * LOG2_E, 0))
        if not shifted:
            sums.append(logits.exp2_().sum(0))
        blocks.append(logits)
    if shifted:
        top = torch.stack([logits.amax(0) for logits in blocks]).amax(0)
        sums = [logits.sub_(top).exp2_().sum(0) for logits in blocks]
    return blocks, torch.stack(sums).sum(0), top
