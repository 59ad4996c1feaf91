"""Distributed training: several processes, on one machine or several, as torchrun starts them.

All processes hold the same weights. Each computes the gradient of its part of a batch; the gradients are summed over all processes,
and all make the same update. Only the first process reads the clock and writes files.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

from nmt.errors import ConfigError, TrainingError

T = TypeVar("T")


@dataclass(frozen=True)
class World:
    """The processes of a training.

    Attributes:
        rank: index of this process, from 0. size: number of processes.
        gloo_group: process group that sends Python objects, over the CPU.
    """

    rank: int = 0
    size: int = 1
    gloo_group: Any = None

    @property
    def is_first(self) -> bool:
        """Whether this process decides and writes files."""
        return self.rank == 0

    def sum(self, tensors: Iterable[Tensor]) -> None:
        """Replace the tensors by their sums over all processes, with one message per dtype.

        Raises:
            TrainingError: another process failed.
        """
        if self.size == 1:
            return
        by_dtype: dict[torch.dtype, list[Tensor]] = {}
        for tensor in tensors:
            by_dtype.setdefault(tensor.dtype, []).append(tensor)
        for group in by_dtype.values():
            flat = torch.cat([tensor.flatten() for tensor in group])
            with _report_failed_process():
                dist.all_reduce(flat)
            for tensor, part in zip(group, flat.split([tensor.numel() for tensor in group]), strict=True):
                tensor.copy_(part.view_as(tensor))

    def sum_gradients(self, model: nn.Module) -> None:
        """Sum the gradients over all processes.

        A gradient that some processes lack counts as 0 there; one that all lack stays missing, so that the optimizer leaves the
        parameter unchanged, as in a single process. The adaptive output layer has such parameters.
        """
        if self.size == 1:
            return
        parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        has_gradient = torch.tensor([parameter.grad is not None for parameter in parameters], dtype=torch.uint8)
        with _report_failed_process():  # over the CPU, which does not wait for the GPU
            dist.all_reduce(has_gradient, dist.ReduceOp.MAX, group=self.gloo_group)
        for parameter, is_present in zip(parameters, has_gradient.tolist(), strict=True):
            if is_present and parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        self.sum(parameter.grad for parameter in parameters if parameter.grad is not None)

    def broadcast(self, value: T) -> T:
        """The value of the first process, in all processes.

        Raises:
            TrainingError: another process failed.
        """
        if self.size == 1:
            return value
        values = [value]
        with _report_failed_process():
            dist.broadcast_object_list(values, src=0, group=self.gloo_group)
        return values[0]

    def min_over_ranks(self, number: int) -> int:
        """The smallest number of all processes.

        Raises:
            TrainingError: another process failed.
        """
        numbers = [number] * self.size
        if self.size > 1:
            with _report_failed_process():
                dist.all_gather_object(numbers, number, group=self.gloo_group)
        return min(numbers)

    def copy_weights(self, model: nn.Module) -> None:
        """Copy the weights of the first process to all others."""
        if self.size == 1:
            return
        with torch.no_grad():
            for tensor in (*model.parameters(), *model.buffers()):
                if not self.is_first:
                    tensor.zero_()
                self.sum([tensor])


SINGLE_PROCESS = World()


@contextmanager
def init_distributed(device: torch.device) -> Iterator[World]:
    """Connect the processes that torchrun started; without torchrun, a single process.

    Raises:
        TrainingError: the processes cannot connect.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield SINGLE_PROCESS
        return
    try:
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
        gloo_group = dist.new_group(backend="gloo")
    except (RuntimeError, ValueError) as error:
        raise TrainingError(f"the processes of this training cannot connect ({_first_line(error)})") from None
    try:
        yield World(dist.get_rank(), dist.get_world_size(), gloo_group)
    finally:
        dist.destroy_process_group()


def local_gpu(device: torch.device) -> torch.device:
    """The GPU of this process, one for each process of a machine; sets it as torch's default. Other devices stay as they are.

    Raises:
        ConfigError: the machine has fewer GPUs than processes.
    """
    if device.type != "cuda":
        return device
    index, n_gpus = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
    if index >= n_gpus:
        raise ConfigError(
            f"process {index + 1} of this machine has no GPU: the machine has {n_gpus}; start one process for each GPU"
        )
    torch.cuda.set_device(index)
    return torch.device("cuda", index)


@contextmanager
def _report_failed_process() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        raise TrainingError(f"another process of this training failed ({_first_line(error)}); see its error message") from None


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0][:200]
