"""The loss of a full softmax that never holds the logits of all positions in memory."""

from collections.abc import Sequence
from math import ceil, e, log, log2
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nmt.data.batches import SoftTargets

# Logits are computed for at most this many positions and words at a time: memory does not grow with
# the batch, and products of this shape run near the peak speed of a processor, unlike products with
# all words at once.
MAX_ROWS, MAX_WORDS = 1024, 1536
MIN_SUM, MAX_SUM = 1.0e-30, 1.0e30  # sums of exponentials between these are exact in float32
LOG2_E = log2(
    e
)  # exp(x) = exp2(x log2 e); exp2 takes a processor little more than half the time of exp


class Additions(NamedTuple):
    """Numbers that are added to some logits, of U words at each of N positions.

    Attributes:
        ids: [N, U]. The ids of a position differ, except those of additions of 0.
        values: [N, U].
    """

    ids: Tensor
    values: Tensor

    def dense(self, vocabulary_size: int) -> Tensor:
        """The number for each word, [N, V]."""
        return self.values.new_zeros(self.ids.shape[0], vocabulary_size).scatter_add(
            1, self.ids, self.values
        )


class Distillation(NamedTuple):
    """The weight of the cross-entropy of soft targets, in [0, 1]."""

    targets: SoftTargets
    weight: float


def linear_cross_entropy(
    vectors: Tensor,
    weight: Tensor,
    bias: Tensor,
    targets: Tensor,
    label_smoothing: float = 0.0,
    divergence_weight: float = 0.0,
    additions: Additions | None = None,
    distillation: Distillation | None = None,
) -> tuple[Tensor, Tensor]:
    """Cross-entropy of softmax(W x + b + additions), summed over N positions, in nats.

    With a `divergence_weight` w, rows i and N/2 + i are the same position in two passes with
    different dropout, which give the distributions P and Q. The objective then includes w (KL(P ||
    Q) + KL(Q || P)) for each such pair.

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
    product_dtype = torch.get_autocast_dtype("cpu") if is_mixed else weight.dtype
    with torch.autocast(device, enabled=False):
        ids, values = (
            (None, None)
            if additions is None
            else (additions.ids, additions.values.to(weight.dtype))
        )
        options = (
            label_smoothing,
            divergence_weight,
            distillation,
            torch.is_grad_enabled(),
            product_dtype,
        )
        inputs = vectors.to(weight.dtype), weight, bias, values, ids, targets, options
        result: tuple[Tensor, Tensor] = _LinearCrossEntropy.apply(*inputs)  # type: ignore[no-untyped-call]
    return result


class _LinearCrossEntropy(torch.autograd.Function):
    """Computes the gradient together with the loss, while the logits of some positions are in
    memory; keeps no logits.
    """

    @staticmethod
    def forward(
        ctx: Any,
        vectors: Tensor,
        weight: Tensor,
        bias: Tensor,
        values: Tensor | None,
        ids: Tensor | None,
        targets: Tensor,
        options: tuple[float, float, Distillation | None, bool, torch.dtype],
    ) -> tuple[Tensor, Tensor]:
        smoothing, divergence_weight, distillation, learning, dtype = options
        additions = None if ids is None or values is None else Additions(ids, values)
        inputs = (vectors, weight, bias) if values is None else (vectors, weight, bias, values)
        has_gradient = learning and any(ctx.needs_input_grad)
        gradients = [torch.zeros_like(tensor) for tensor in inputs] if has_gradient else None
        references, divergence = weight[targets], None
        if divergence_weight:
            normalizers, divergence = _pair_log_normalizers(
                vectors, weight, bias, additions, divergence_weight, gradients, dtype
            )
        else:
            normalizers = _log_normalizers(vectors, weight, bias, additions, gradients, dtype)
        nll = (normalizers - (vectors * references).sum(1) - bias[targets]).sum()
        uniform = (normalizers - vectors @ weight.mean(0) - bias.mean()).sum()
        if additions is not None:
            is_reference = additions.ids == targets.unsqueeze(1)
            nll = nll - torch.where(is_reference, additions.values, 0).sum()
            uniform = uniform - additions.values.sum() / len(weight)
        hard_weight = 1.0 if distillation is None else 1 - distillation.weight
        objective = hard_weight * ((1 - smoothing) * nll + smoothing * uniform)
        if (
            gradients is not None
        ):  # subtract the target distribution: the reference word, and the even share of each word
            even, factor = hard_weight * smoothing / len(weight), hard_weight * (smoothing - 1)
            gradients[0].add_(references, alpha=factor)
            gradients[1].index_add_(0, targets, vectors, alpha=factor)
            gradients[2].index_add_(0, targets, torch.ones_like(normalizers), alpha=factor)
            if smoothing:
                gradients[0].sub_(even * weight.sum(0))
                gradients[1].sub_(even * vectors.sum(0))
                gradients[2].sub_(even * len(vectors))
            if additions is not None:
                gradients[3].add_(is_reference.to(weight.dtype), alpha=factor).sub_(even)
        if distillation is not None:
            expected = _expected_logits(vectors, weight, bias, additions, gradients, distillation)
            objective = objective + distillation.weight * (normalizers.sum() - expected)
        if gradients is not None:
            ctx.save_for_backward(*gradients)
        ctx.mark_non_differentiable(nll)
        return (
            objective if divergence is None else objective + divergence_weight * divergence
        ), nll

    @staticmethod
    def backward(ctx: Any, outer: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        gradients = ctx.saved_tensors
        if (
            outer.device.type != "cpu" or outer.item() != 1
        ):  # no comparison on a GPU, which would wait for it
            gradients = [gradient * outer for gradient in gradients]
        return (*gradients, *[None] * (7 - len(gradients)))


def _expected_logits(
    vectors: Tensor,
    weight: Tensor,
    bias: Tensor,
    additions: Additions | None,
    gradients: Sequence[Tensor] | None,
    distillation: Distillation,
) -> Tensor:
    """sum_v p_v (W_v x + b_v) for the soft targets p, summed over all positions; subtracts its
    gradient, weighted.
    """
    (ids, probabilities), soft_weight = distillation
    probabilities = probabilities.to(weight.dtype)
    even = (1 - probabilities.sum(1)) / len(
        weight
    )  # [N]: of each word of the vocabulary, in addition
    rows = even.unsqueeze(1) * weight.sum(0)  # [N, R]: sum_v p_v W_v
    for word, probability in zip(ids.unbind(1), probabilities.unbind(1), strict=True):
        rows.addcmul_(probability.unsqueeze(1), weight[word])
    expected = (vectors * rows).sum() + (probabilities * bias[ids]).sum() + even.sum() * bias.sum()
    if gradients is not None:
        gradients[0].sub_(rows, alpha=soft_weight)
        gradients[1].sub_(even @ vectors, alpha=soft_weight)
        for word, probability in zip(ids.unbind(1), probabilities.unbind(1), strict=True):
            gradients[1].index_add_(0, word, probability.unsqueeze(1) * vectors, alpha=-soft_weight)
        gradients[2].sub_(even.sum(), alpha=soft_weight).index_add_(
            0, ids.flatten(), probabilities.flatten(), alpha=-soft_weight
        )
    if additions is not None:
        shares = even.unsqueeze(1).expand_as(additions.values).clone()
        for word, probability in zip(ids.split(1, 1), probabilities.split(1, 1), strict=True):
            shares += torch.where(additions.ids == word, probability, 0)
        expected = expected + (additions.values * shares).sum()
        if gradients is not None:
            gradients[3].sub_(shares, alpha=soft_weight)
    return expected


def _log_normalizers(
    vectors: Tensor,
    weight: Tensor,
    bias: Tensor,
    additions: Additions | None,
    gradients: Sequence[Tensor] | None,
    dtype: torch.dtype,
) -> Tensor:
    """log sum_v exp(W_v x + b_v) of each position [N]; adds the gradient of their sum to
    `gradients` unless that is None.

    On a CPU the logits are exponentiated as they are, while a block of words is in the cache.
    Subtracting the maxima first takes two more passes over all of them, so it happens only if a sum
    leaves the range in which it is exact.

    Args:
        dtype: of the factors of the products.
    """
    normalizers, n_parts = [], _n_parts(vectors)
    parts = (
        vectors.tensor_split(n_parts),
        (vectors if gradients is None else gradients[0]).tensor_split(n_parts),
    )
    entries, added = _split_entries(additions, n_parts), []
    for part, vector_gradient, entry in zip(*parts, entries, strict=True):
        exponentials, total, top, _ = _exponentials(part, weight, bias, entry, dtype)
        normalizers.append(total.log() + log(2) * top)
        if (
            gradients is not None
        ):  # dividing the vectors by the totals is cheaper than dividing the exponentials
            scaled, block = (part / total.unsqueeze(1)).to(dtype), len(exponentials[0])
            by_block = (tensor.split(block) for tensor in (weight.to(dtype), *gradients[1:3]))
            for exponential, words, weight_gradient, bias_gradient in zip(
                exponentials, *by_block, strict=True
            ):
                bias_gradient.addmv_(exponential, 1 / total)
                factor = exponential.to(dtype)
                _add_product(vector_gradient, factor.t(), words)
                _add_product(weight_gradient, factor, scaled)
            vector_gradient.div_(total.unsqueeze(1))
            if entry is not None:
                added.append(entry.gather(exponentials).div_(total))
    if added:
        assert gradients is not None
        gradients[3].copy_(torch.cat(added, 1).t())
    return torch.cat(normalizers)


def _pair_log_normalizers(
    vectors: Tensor,
    weight: Tensor,
    bias: Tensor,
    additions: Additions | None,
    divergence_weight: float,
    gradients: Sequence[Tensor] | None,
    dtype: torch.dtype,
) -> tuple[Tensor, Tensor]:
    """As `_log_normalizers`, for the pairs of `linear_cross_entropy`; and their divergence, whose
    gradient is added too, weighted.

    With the logits a_v and a'_v of word v in the two passes, and d = a - a', the normalizers
    cancel:
    KL(P || Q) + KL(Q || P) = sum_v (P_v - Q_v) (log P_v - log Q_v) = E_P[d] - E_Q[d]. Its
    derivatives are
    P_v (1 + d_v - E_P[d]) - Q_v for a_v and Q_v (1 - d_v + E_Q[d]) - P_v for a'_v; those of the
    normalizers are P_v and Q_v. The sum of both derivatives goes through the same products as that
    of the normalizers alone.
    """
    n_parts, passes = _n_parts(vectors), vectors.unflatten(0, (2, -1))  # [2, N/2, R]
    pass_gradients = passes if gradients is None else gradients[0].view_as(passes)
    normalizers, divergence, ratio = [], vectors.new_zeros(()), 1 + 1 / divergence_weight
    parts = (
        passes.tensor_split(n_parts, 1),
        pass_gradients.tensor_split(n_parts, 1),
        _split_entries(additions, n_parts, 2),
    )
    added = []
    for part, vector_gradient, entry in zip(*parts, strict=True):
        rows = part.flatten(0, 1)  # [2n, R]
        exponentials, total, top, differences = _exponentials(
            rows, weight, bias, entry, dtype, paired=True
        )
        normalizers.append((total.log() + log(2) * top).view(2, -1))
        sums = [
            (block.unflatten(1, (2, -1)) * d.unsqueeze(1)).sum(0)
            for block, d in zip(exponentials, differences, strict=True)
        ]
        first_mean, second_mean = torch.stack(sums).sum(0) / total.view(
            2, -1
        )  # [n]: E_P[d], E_Q[d]
        divergence += (first_mean - second_mean).sum()
        if gradients is not None:
            shifts, row_gradient, descents = (
                (ratio - first_mean, ratio + second_mean),
                torch.zeros_like(rows),
                [],
            )
            by_block = (
                tensor.split(len(exponentials[0])) for tensor in (weight.to(dtype), *gradients[1:3])
            )
            row_factor = rows.to(dtype)
            for block, d, words, weight_gradient, bias_gradient in zip(
                exponentials, differences, *by_block, strict=True
            ):
                p, q = block.div_(total).chunk(2, 1)
                # The derivative of all logits, divided by -divergence_weight.
                descent = torch.cat(
                    [
                        torch.addcmul(q, p, d + shifts[0], value=-1),
                        torch.addcmul(p, q, shifts[1] - d, value=-1),
                    ],
                    1,
                )
                factor = descent.to(dtype)
                _add_product(row_gradient, factor.t(), words, -divergence_weight)
                _add_product(weight_gradient, factor, row_factor, -divergence_weight)
                bias_gradient.sub_(descent.sum(1), alpha=divergence_weight)
                if entry is not None:
                    descents.append(descent)
            vector_gradient.copy_(row_gradient.view_as(vector_gradient))
            if entry is not None:
                added.append(entry.gather(descents).mul_(-divergence_weight).unflatten(1, (2, -1)))
    if added:
        assert gradients is not None
        gradients[3].copy_(torch.cat(added, 2).flatten(1).t())
    return torch.cat(normalizers, 1).flatten(), divergence


def _add_product(total: Tensor, left: Tensor, right: Tensor, factor: float = 1.0) -> None:
    """Add factor * left right to `total`, in the precision of `total`."""
    if left.dtype == total.dtype:
        total.addmm_(left, right, alpha=factor)
    else:
        total.add_(left @ right, alpha=factor)


def _n_parts(vectors: Tensor) -> int:
    """The number of parts to process one after another, of similar size: a small part takes nearly
    as long as a large one.
    """
    return max(1, ceil(len(vectors) / MAX_ROWS))


class _Exponentials(NamedTuple):
    """exp(W x + b) for n vectors.

    Attributes:
        blocks: the exponentials over 2 ** top, [w, n] for each block of w words.
        total: [n], their sums over all words.
        top: [n], the maxima of the logits over log 2; or 0 if no total leaves the range in which it
            is exact.
        differences: the logits of the first half of the vectors minus those of the second, [w, n/2]
            for each block, if wanted.
    """

    blocks: list[Tensor]
    total: Tensor
    top: Tensor
    differences: list[Tensor]


class _Entries(NamedTuple):
    """The additions to the logits of n vectors: words and numbers, [U, n]."""

    ids: Tensor
    values: Tensor

    def add_to(self, block: Tensor, first: int) -> None:
        """Add to the logits [w, n] of the words from `first` on, which are multiples of log 2."""
        rows, inside = self._rows(block, first)
        block.scatter_add_(0, rows, torch.where(inside, self.values * LOG2_E, 0))

    def gather(self, blocks: Sequence[Tensor]) -> Tensor:
        """The numbers [U, n] of the words in the blocks [w, n], one block after the other."""
        result, first = torch.zeros_like(self.values), 0
        for block in blocks:
            rows, inside = self._rows(block, first)
            result += torch.where(inside, block.gather(0, rows), 0)
            first += len(block)
        return result

    def _rows(self, block: Tensor, first: int) -> tuple[Tensor, Tensor]:
        """The row of each word in a block, and whether it is inside."""
        rows = self.ids - first
        inside = (rows >= 0) & (rows < len(block))
        return torch.where(inside, rows, 0), inside


def _split_entries(
    additions: Additions | None, n_parts: int, n_passes: int = 1
) -> Sequence[_Entries | None]:
    """The entries of each part; a part has the same positions of all passes."""
    if additions is None:
        return [None] * n_parts
    by_pass = (
        tensor.t().unflatten(1, (n_passes, -1)).tensor_split(n_parts, 2) for tensor in additions
    )
    return [
        _Entries(*(tensor.flatten(1) for tensor in part)) for part in zip(*by_pass, strict=True)
    ]


def _exponentials(
    vectors: Tensor,
    weight: Tensor,
    bias: Tensor,
    entries: _Entries | None,
    dtype: torch.dtype,
    *,
    paired: bool = False,
) -> _Exponentials:
    """The exponentials of all logits of `vectors` [n, R]; with their differences if `paired`."""
    on_cpu, inputs = (
        vectors.device.type == "cpu",
        (vectors.to(dtype), weight.to(dtype), bias, entries),
    )
    result = _exponentials_of_blocks(
        *inputs, MAX_WORDS if on_cpu else len(weight), shifted=not on_cpu, paired=paired
    )
    if on_cpu and not bool(((result.total > MIN_SUM) & (result.total < MAX_SUM)).all()):
        result = _exponentials_of_blocks(*inputs, MAX_WORDS, shifted=True, paired=paired)
    return result


def _exponentials_of_blocks(
    vectors: Tensor,
    weight: Tensor,
    bias: Tensor,
    entries: _Entries | None,
    block: int,
    *,
    shifted: bool,
    paired: bool,
) -> _Exponentials:
    """With `top` if `shifted`, in blocks of `block` words."""
    top, blocks, sums, differences = bias.new_zeros(len(vectors)), [], [], []
    for words, shift in zip(weight.split(block), bias.unsqueeze(1).split(block), strict=True):
        if words.dtype == bias.dtype:
            blocks.append(torch.addmm(shift, words, vectors.t(), beta=LOG2_E, alpha=LOG2_E))
        else:
            blocks.append((words @ vectors.t()).to(bias.dtype).add_(shift).mul_(LOG2_E))
        if entries is not None:
            entries.add_to(blocks[-1], block * (len(blocks) - 1))
        if paired:
            differences.append(torch.sub(*blocks[-1].chunk(2, 1)).mul_(log(2)))
        if not shifted:
            sums.append(blocks[-1].exp2_().sum(0))
    if shifted:
        top = torch.stack([logits.amax(0) for logits in blocks]).amax(0)
        sums = [logits.sub_(top).exp2_().sum(0) for logits in blocks]
    return _Exponentials(blocks, torch.stack(sums).sum(0), top, differences)
