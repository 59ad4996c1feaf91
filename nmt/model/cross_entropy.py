"""The loss of a full softmax that never holds the logits of all positions in memory."""

from collections.abc import Sequence
from math import ceil, e, log, log2
from typing import Any

import torch
from torch import Tensor

# Logits are computed for at most this many positions and words at a time: memory does not grow with the batch, and products of this
# shape run near the peak speed of a processor, unlike products with all words at once.
MAX_ROWS, MAX_WORDS = 1024, 1536
MIN_SUM, MAX_SUM = 1.0e-30, 1.0e30  # sums of exponentials between these are exact in float32
LOG2_E = log2(e)  # exp(x) = exp2(x log2 e); exp2 takes a processor little more than half the time of exp


def linear_cross_entropy(
    vectors: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, label_smoothing: float = 0.0
) -> tuple[Tensor, Tensor]:
    """Cross-entropy of softmax(W x + b), summed over N positions, in nats.

    Args:
        vectors: [N, R]. weight: [V, R]. bias: [V]. targets: [N].
        label_smoothing: the probability mass that is spread evenly over the vocabulary (Szegedy 2016, 7).

    Returns:
        the objective with smoothing, and the plain negative log-likelihood, which has no gradient.
    """
    with torch.autocast(vectors.device.type, enabled=False):  # the loss keeps the precision of the weights
        inputs = vectors.to(weight.dtype), weight, bias, targets, label_smoothing, torch.is_grad_enabled()
        result: tuple[Tensor, Tensor] = _LinearCrossEntropy.apply(*inputs)  # type: ignore[no-untyped-call]
    return result


class _LinearCrossEntropy(torch.autograd.Function):
    """Computes the gradient together with the loss, while the logits of some positions are in memory; keeps no logits."""

    @staticmethod
    def forward(
        ctx: Any, vectors: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, smoothing: float, learning: bool
    ) -> tuple[Tensor, Tensor]:
        wanted, even = learning and any(ctx.needs_input_grad), smoothing / len(weight)
        gradients = [torch.zeros_like(tensor) for tensor in (vectors, weight, bias)] if wanted else None
        normalizers, references = _log_normalizers(vectors, weight, bias, gradients), weight[targets]
        nll = (normalizers - (vectors * references).sum(1) - bias[targets]).sum()
        uniform = (normalizers - vectors @ weight.mean(0) - bias.mean()).sum()
        if gradients is not None:  # subtract the target distribution: the reference word, and the even part of all words
            gradients[0].add_(references, alpha=smoothing - 1)
            gradients[1].index_add_(0, targets, vectors, alpha=smoothing - 1)
            gradients[2].index_add_(0, targets, torch.ones_like(normalizers), alpha=smoothing - 1)
            if smoothing:
                gradients[0].sub_(even * weight.sum(0))
                gradients[1].sub_(even * vectors.sum(0))
                gradients[2].sub_(even * len(vectors))
            ctx.save_for_backward(*gradients)
        ctx.mark_non_differentiable(nll)
        return (1 - smoothing) * nll + smoothing * uniform, nll

    @staticmethod
    def backward(ctx: Any, outer: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        gradients = ctx.saved_tensors
        if outer.device.type != "cpu" or outer.item() != 1:  # no comparison on a GPU, which would wait for it
            gradients = [gradient * outer for gradient in gradients]
        return (*gradients, None, None, None)


def _log_normalizers(vectors: Tensor, weight: Tensor, bias: Tensor, gradients: Sequence[Tensor] | None) -> Tensor:
    """log sum_v exp(W_v x + b_v) of each position [N]; adds the gradient of their sum to `gradients` unless that is None.

    On a CPU the logits are exponentiated as they are, while a block of words is in the cache. Subtracting the maxima first takes
    two more passes over all of them, so it happens only if a sum leaves the range in which it is exact.
    """
    normalizers, on_cpu = [], vectors.device.type == "cpu"
    block = MAX_WORDS if on_cpu else len(weight)
    n_parts = max(1, ceil(len(vectors) / MAX_ROWS))  # of similar size: a small part takes nearly as long as a large one
    parts = vectors.tensor_split(n_parts), (vectors if gradients is None else gradients[0]).tensor_split(n_parts)
    for part, vector_gradient in zip(*parts, strict=True):
        exponentials, total, top = _exponentials(part, weight, bias, block, shifted=not on_cpu)
        if on_cpu and not bool(((total > MIN_SUM) & (total < MAX_SUM)).all()):
            exponentials, total, top = _exponentials(part, weight, bias, block, shifted=True)
        normalizers.append(total.log() + log(2) * top)
        if gradients is not None:  # dividing the vectors by the totals is cheaper than dividing the exponentials
            scaled, by_block = part / total.unsqueeze(1), (tensor.split(block) for tensor in (weight, *gradients[1:]))
            for exponential, words, weight_gradient, bias_gradient in zip(exponentials, *by_block, strict=True):
                vector_gradient.addmm_(exponential.t(), words)
                weight_gradient.addmm_(exponential, scaled)
                bias_gradient.addmv_(exponential, 1 / total)
            vector_gradient.div_(total.unsqueeze(1))
    return torch.cat(normalizers)


def _exponentials(
    vectors: Tensor, weight: Tensor, bias: Tensor, block: int, *, shifted: bool
) -> tuple[list[Tensor], Tensor, Tensor]:
    """exp(W x + b) / 2 ** top, [w, n] for each block of w words; their sums [n]; and top [n], the maxima if `shifted`, or 0."""
    top, blocks, sums = vectors.new_zeros(len(vectors)), [], []
    for words, shift in zip(weight.split(block), bias.split(block), strict=True):
        blocks.append(torch.addmm(shift.unsqueeze(1), words, vectors.t(), beta=LOG2_E, alpha=LOG2_E))
        if not shifted:
            sums.append(blocks[-1].exp2_().sum(0))
    if shifted:
        top = torch.stack([logits.amax(0) for logits in blocks]).amax(0)
        sums = [logits.sub_(top).exp2_().sum(0) for logits in blocks]
    return blocks, torch.stack(sums).sum(0), top
