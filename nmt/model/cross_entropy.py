"""The loss of a full softmax without ever holding the logits of all positions."""

from typing import Any

import torch
from torch import Tensor

ROWS = 128  # positions scored at a time: their logits stay in the processor's cache, and memory does not grow with the batch


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
        n_words, wanted = len(weight), learning and any(ctx.needs_input_grad)
        likelihood, uniform = vectors.new_zeros(()), vectors.new_zeros(())
        gradients = [torch.zeros_like(tensor) if wanted else tensor for tensor in (vectors, weight, bias)]
        for some, gold, into in zip(vectors.split(ROWS), targets.split(ROWS), gradients[0].split(ROWS), strict=True):
            logits = torch.addmm(bias, some, weight.t())  # [n, V]
            normalizer = logits.logsumexp(-1, keepdim=True)
            likelihood += (normalizer - logits.gather(1, gold.unsqueeze(1))).sum()
            if smoothing:
                uniform += normalizer.sum() - logits.sum() / n_words
            if wanted:
                # The probabilities, less those of the reference: the gradient of the logits.
                errors = logits.sub_(normalizer).exp_()
                errors.scatter_add_(1, gold.unsqueeze(1), errors.new_full((len(gold), 1), smoothing - 1))
                torch.mm(errors, weight, out=into)
                gradients[1].addmm_(errors.t(), some)
                gradients[2].add_(errors.sum(0))
        if wanted and smoothing:  # the even share of the reference is the same for all words
            share = smoothing / n_words
            gradients[0].sub_(share * weight.sum(0))
            gradients[1].sub_(share * vectors.sum(0))
            gradients[2].sub_(share * len(vectors))
        if wanted:
            ctx.save_for_backward(*gradients)
        objective = (1 - smoothing) * likelihood + smoothing * uniform
        ctx.mark_non_differentiable(likelihood)
        return objective, likelihood

    @staticmethod
    def backward(ctx: Any, outer: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        gradients = ctx.saved_tensors
        if outer.device.type != "cpu" or outer.item() != 1:  # a GPU is not waited for to find out
            gradients = [gradient * outer for gradient in gradients]
        return (*gradients, None, None, None)
