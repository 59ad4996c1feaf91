"""Small parts that the whole model shares: dropout, embeddings, and copies to the GPU."""

import torch
from torch import Tensor, nn
from torch.nn import functional

# Large, so that words and not biases dominate the first encoder states: attention finds the right
# positions several times sooner.
EMBEDDING_DEVIATION = 0.5


class Dropout(nn.Module):
    """Inverted dropout (Srivastava 2014); `variational`: the same units at all positions of a
    sentence (Gal & Ghahramani 2016).

    It is not for recurrent connections, where a mask of the states would rule out the fused
    kernels: see `drop_weights`.
    """

    def __init__(self, p: float, variational: bool = False) -> None:
        super().__init__()
        self.p, self.variational = p, variational

    def forward(self, inputs: Tensor, noise: Tensor | None = None) -> Tensor:
        """Inputs [B, T, D], or of one step [B, D] with the mask `noise` of its sentences, if
        any.
        """
        if noise is None and inputs.dim() == 3:
            noise = self.noise(inputs[:, :1])
        return (
            functional.dropout(inputs, self.p, self.training) if noise is None else inputs * noise
        )

    def noise(self, like: Tensor) -> Tensor | None:
        """A mask for all positions of a sentence, in the shape of `like`; None if each position
        draws its own.
        """
        if not (self.variational and self.training and self.p):
            return None
        return functional.dropout(torch.ones_like(like), self.p)


class WordDropout(nn.Module):
    """Dropout of whole words, scaling up the others (Gal & Ghahramani 2016, 4.1; by position, as in
    Sennrich & Zhang 2019).
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, embedded: Tensor) -> Tensor:
        """[..., E]."""
        if not (self.training and self.p):
            return embedded
        return embedded * functional.dropout(torch.ones_like(embedded[..., :1]), self.p)


class Embedding(nn.Embedding):
    """Ids to vectors, with dropout of units and words.

    Args:
        word_dropout: the probability of dropping a word.
        is_output: the output layer uses the same matrix. Then it starts small, so that the first
            logits are small, and is scaled up where it embeds words (Vaswani 2017, 3.4).
    """

    def __init__(
        self,
        vocabulary_size: int,
        size: int,
        dropout: Dropout,
        word_dropout: float,
        *,
        is_output: bool = False,
    ) -> None:
        super().__init__(vocabulary_size, size)
        deviation = size**-0.5 if is_output else EMBEDDING_DEVIATION
        nn.init.normal_(self.weight, std=deviation)
        self.scale = EMBEDDING_DEVIATION / deviation
        self.word_dropout, self.dropout = WordDropout(word_dropout), dropout

    def forward(self, ids: Tensor, noise: Tensor | None = None) -> Tensor:
        """Ids [B, T], or of one step [B] with the dropout mask `noise` [B, E] of its sentences, to
        vectors [..., E].
        """
        return self.dropout(self.word_dropout(super().forward(ids) * self.scale), noise)  # type: ignore[no-any-return]


def send(tensor: Tensor, device: torch.device) -> Tensor:
    """Copy a tensor from the CPU to `device`, from pinned memory for a GPU so that the CPU need not
    wait.
    """
    return (
        tensor.pin_memory().to(device, non_blocking=True)
        if device.type == "cuda"
        else tensor.to(device)
    )
