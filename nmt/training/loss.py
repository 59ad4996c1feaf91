"""What a training minimizes: a sum over target tokens. The update divides once, by the tokens of
the whole batch.

To add a term, write a function `term(decoded, batch)` that returns a sum over tokens, its row in
`LOSS_TERMS` of nmt/config/parts.py, and the key training.NAME with its weight.
"""

import torch
from torch import Tensor, nn

from nmt.config.parts import LOSS_TERMS
from nmt.config.schema import TrainingConfig
from nmt.data.batches import Batch
from nmt.model.output import Distillation
from nmt.model.seq2seq import Seq2Seq

CROSS_ENTROPY_ONLY = TrainingConfig()


class Loss(nn.Module):
    """The loss of a model on a batch. It is a module, because DistributedDataParallel must see the
    whole forward pass.

    Args:
        config: the terms. `distillation` is alpha of Kim and Rush 2016, 2.2, for the soft targets
            of the batch, which must have some.
    """

    def __init__(self, model: Seq2Seq, config: TrainingConfig = CROSS_ENTROPY_ONLY) -> None:
        super().__init__()
        self.model, self.config = model, config
        self.terms = [
            (weight, term.load())
            for name, term in LOSS_TERMS.items()
            if (weight := getattr(config, name))
        ]

    def forward(
        self, batch: Batch | None, forcing_mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Two sums over the target tokens without padding, in nats.

        Args:
            batch: None for a process without a part of a small batch; it adds a gradient of 0.
            forcing_mask: [B, T], on the CPU, False where the decoder reads its own output; see
                `Seq2Seq.forward`.

        Returns:
            the sum to minimize, with label smoothing, distillation and further terms; and the plain
            negative log-likelihood without gradient, for perplexity.
        """
        if batch is None:
            zero = 0 * next(self.model.parameters()).flatten()[0]
            return zero, zero.detach()
        config, distillation = self.config, None
        if config.distillation:
            assert batch.soft_targets is not None, "refused when the training data is loaded"
            distillation = Distillation(batch.soft_targets, config.distillation)
        decoded = self.model(batch.src, batch.src_lengths, batch.tgt_in, forcing_mask)
        # Logits are computed at the tokens only, not at padding.
        vectors, additions = decoded.at(batch.token_positions)
        targets = batch.tgt_out.flatten()[batch.token_positions]
        objective, nll = self.model.output.loss(
            vectors, targets, config.label_smoothing, additions, distillation
        )
        for weight, term in self.terms:
            objective = objective + weight * term(decoded, batch)
        return objective, nll.detach()


def draw_forcing_mask(
    batch: Batch, ratio: float, per: str, generator: torch.Generator
) -> Tensor | None:
    """Where the decoder reads the reference: [B, T], on the CPU, True with probability `ratio`,
    drawn per sentence or per token.

    None if it reads the reference everywhere.
    """
    if ratio >= 1:
        return None
    rows, steps = batch.tgt_in.shape
    draws = torch.rand(rows, 1 if per == "sentence" else steps, generator=generator) < ratio
    return draws.expand(rows, steps)
