"""The objective of a batch as a module, so that DistributedDataParallel adds up its gradient over
all processes.
"""

from contextlib import nullcontext

import torch
from torch import Tensor, nn

from nmt.config.schema import TrainingConfig
from nmt.data.batches import Batch
from nmt.model.seq2seq import Seq2Seq
from nmt.training.distributed import SINGLE_PROCESS, World
from nmt.training.loss import batch_loss


class Objective:
    """What a training minimizes: the objective of a model on batches.

    Args:
        model: trained in all processes of `world` from now on.
    """

    def __init__(
        self, model: Seq2Seq, config: TrainingConfig, world: World = SINGLE_PROCESS
    ) -> None:
        self.model, self.world = model, world
        self._precision = config.precision
        self._module = world.parallel(_ObjectiveModule(model, config))

    @property
    def device(self) -> torch.device:
        """That of the model."""
        return self.model.device

    def backward(
        self, batch: Batch | None, forcing_mask: Tensor | None, *, is_last: bool
    ) -> Tensor:
        """Add the gradient of a micro-batch, summed over its target tokens, to that of the model.

        After the last micro-batch, the gradients of all processes are the mean of their sums. Each
        process must have a last one.

        Args:
            batch: None for a process without a part of a small batch: it adds nothing.
            forcing_mask: see `Seq2Seq.forward`.

        Returns:
            [2]: the sums of objective and negative log-likelihood, without gradient.

        Raises:
            TrainingError: another process failed, or does not answer.
            OutOfMemoryError: the micro-batch does not fit into the GPU's memory.
        """
        with nullcontext() if is_last else self.world.without_exchange(self._module):
            with torch.autocast(
                self.device.type, torch.bfloat16, enabled=self._precision == "bfloat16"
            ):
                objective, nll = self._module(batch, forcing_mask)
            with self.world.exchange_in_backward() if is_last else nullcontext():
                objective.backward()
        return torch.stack([objective.detach(), nll])


class _ObjectiveModule(nn.Module):
    """All of the forward pass: DistributedDataParallel must see the whole of it."""

    def __init__(self, model: Seq2Seq, config: TrainingConfig) -> None:
        super().__init__()
        self.model, self.config = model, config
        # In no backward pass: if there were no such parameter, DistributedDataParallel would advise
        # not to look for them.
        self.unused = nn.Parameter(torch.zeros(1, device=model.device))

    def forward(self, batch: Batch | None, forcing_mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """The sums of objective and negative log-likelihood over the target tokens."""
        if batch is None:  # a gradient of 0 for one parameter, so that there is a backward pass
            zero = 0 * next(self.model.parameters()).flatten()[0]
            return zero, zero.detach()
        loss = batch_loss(self.model, batch, self.config, forcing_mask)
        return loss.objective, loss.nll
