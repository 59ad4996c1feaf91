"""Dropout of units and of whole words."""

import torch
from torch import Tensor, nn
from torch.nn import functional


class Dropout(nn.Module):
    """Inverted dropout (Srivastava 2014); `variational`: the same units at all positions of a sentence (Gal & Ghahramani 2016).

    There is no dropout on recurrent connections: a mask there would rule out the fused kernels.
    """

    def __init__(self, p: float, variational: bool = False) -> None:
        super().__init__()
        self.p, self.variational = p, variational

    def forward(self, inputs: Tensor, noise: Tensor | None = None) -> Tensor:
        """Inputs [B, T, D], or of one step [B, D] with the mask `noise` of its sentences, if any."""
        if noise is None and inputs.dim() == 3:
            noise = self.noise(inputs[:, :1])
        return functional.dropout(inputs, self.p, self.training) if noise is None else inputs * noise

    def noise(self, like: Tensor) -> Tensor | None:
        """A mask for all positions of a sentence, in the shape of `like`; None if each position draws its own."""
        if not (self.variational and self.training and self.p):
            return None
        return functional.dropout(torch.ones_like(like), self.p)


class WordDropout(nn.Module):
    """Dropout of whole words, scaling up the others (Gal & Ghahramani 2016, 4.1; by position, as in Sennrich & Zhang 2019)."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, embedded: Tensor) -> Tensor:
        """[..., E]."""
        if not (self.training and self.p):
            return embedded
        return embedded * functional.dropout(torch.ones_like(embedded[..., :1]), self.p)
