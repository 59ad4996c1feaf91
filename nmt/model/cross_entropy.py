"""The loss of a full softmax without ever holding the logits of all positions."""

from collections.abc import Sequence
from math import ceil, e, log, log2
from typing import Any

import torch
from torch import Tensor

# The most positions, and the words, that are scored at a time: memory does not grow with the batch, and products of this shape run
# near the peak of a processor, which those with all words at once do not.
ROWS, WORDS = 1024, 1536
LEAST, MOST = 1.0e-30, 1.0e30  # sums of exponentials between these lose nothing to the ends of float32
BITS = log2(e)  # of a nat: to base 2 an exponential takes a processor little more than half the time


def linear_cross_entropy(
    vectors: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, label_smoothing: float = 0.0
) -> tuple[Tensor, Tensor]:
    """Cross-entropy of softmax(W x + b), summed over N positions, in nats.

    Args:
        vectors: [N, R]. weight: [V, R]. bias: [V]. targets: [N].
        label_smoothing: this much probability is spread evenly over the vocabulary (Szegedy 2016, 7).

    Returns:
        the objective with smoothing, and the plain negative log-likelihood, which has no gradient.
    """
    with torch.autocast(vectors.device.type, enabled=False):  # the loss keeps the precision of the weights
        inputs = vectors.to(weight.dtype), weight, bias, targets, label_smoothing, torch.is_grad_enabled()
        result: tuple[Tensor, Tensor] = _LinearCrossEntropy.apply(*inputs)  # type: ignore[no-untyped-call]
    return result


class _LinearCrossEntropy(torch.autograd.Function):
    """The gradient is made along with the loss, while the logits of some positions are there: they are not kept, nor made twice."""

    @staticmethod
    def forward(
        ctx: Any, vectors: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, smoothing: float, learning: bool
    ) -> tuple[Tensor, Tensor]:
        wanted, even = learning and any(ctx.needs_input_grad), smoothing / len(weight)
        gradients = [torch.zeros_like(tensor) for tensor in (vectors, weight, bias)] if wanted else None
        normalizers, gold = _log_normalizers(vectors, weight, bias, gradients), weight[targets]
        likelihood = (normalizers - (vectors * gold).sum(1) - bias[targets]).sum()
        uniform = (normalizers - vectors @ weight.mean(0) - bias.mean()).sum()
        if gradients is not None:  # less that of the reference: of its word, and of the share that all words have alike
            gradients[0].add_(gold, alpha=smoothing - 1)
            gradients[1].index_add_(0, targets, vectors, alpha=smoothing - 1)
            gradients[2].index_add_(0, targets, torch.ones_like(normalizers), alpha=smoothing - 1)
            if smoothing:
                gradients[0].sub_(even * weight.sum(0))
                gradients[1].sub_(even * vectors.sum(0))
                gradients[2].sub_(even * len(vectors))
            ctx.save_for_backward(*gradients)
        ctx.mark_non_differentiable(likelihood)
        return (1 - smoothing) * likelihood + smoothing * uniform, likelihood

    @staticmethod
    def backward(ctx: Any, outer: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        gradients = ctx.saved_tensors
        if outer.device.type != "cpu" or outer.item() != 1:  # a GPU is not waited for to find out
            gradients = [gradient * outer for gradient in gradients]
        return (*gradients, None, None, None)


def _log_normalizers(vectors: Tensor, weight: Tensor, bias: Tensor, gradients: Sequence[Tensor] | None) -> Tensor:
    """log sum_v exp(W_v x + b_v) of each position [N]; the gradient of their sum is added to `gradients`, where they are wanted.

    On a CPU the logits are exponentiated as they are, while a block of words is in the cache. To take off the maxima first would be
    two passes more over all of them; so that is done only where the sums leave the range in which they are exact.
    """
    normalizers, on_cpu = [], vectors.device.type == "cpu"
    block = WORDS if on_cpu else len(weight)
    n_parts = max(1, ceil(len(vectors) / ROWS))  # of like size: a small one would take nearly as long as a large one
    parts = vectors.tensor_split(n_parts), (vectors if gradients is None else gradients[0]).tensor_split(n_parts)
    for some, of_vectors in zip(*parts, strict=True):
        exponentials, total, top = _exponentials(some, weight, bias, block, shifted=not on_cpu)
        if on_cpu and not bool(((total > LEAST) & (total < MOST)).all()):
            exponentials, total, top = _exponentials(some, weight, bias, block, shifted=True)
        normalizers.append(total.log() + log(2) * top)
        if gradients is not None:  # what divides the exponentials is small beside them: it goes into the other factor
            shares, of_words = some / total.unsqueeze(1), (part.split(block) for part in (weight, *gradients[1:]))
            for exponential, words, into_weight, into_bias in zip(exponentials, *of_words, strict=True):
                of_vectors.addmm_(exponential.t(), words)
                into_weight.addmm_(exponential, shares)
                into_bias.addmv_(exponential, 1 / total)
            of_vectors.div_(total.unsqueeze(1))
    return torch.cat(normalizers)


def _exponentials(
    vectors: Tensor, weight: Tensor, bias: Tensor, block: int, *, shifted: bool
) -> tuple[list[Tensor], Tensor, Tensor]:
    """exp(W x + b) / 2 ** top, [w, n] for each block of words; their sums [n]; and top [n], the maxima if `shifted`, or 0."""
    top, blocks, sums = vectors.new_zeros(len(vectors)), [], []
    for words, shift in zip(weight.split(block), bias.split(block), strict=True):
        blocks.append(torch.addmm(shift.unsqueeze(1), words, vectors.t(), beta=BITS, alpha=BITS))
        if not shifted:
            sums.append(blocks[-1].exp2_().sum(0))
    if shifted:
        top = torch.stack([logits.amax(0) for logits in blocks]).amax(0)
        sums = [logits.sub_(top).exp2_().sum(0) for logits in blocks]
    return blocks, torch.stack(sums).sum(0), top
