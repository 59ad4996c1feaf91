"""Training in several processes, on one machine or more, as torchrun starts them; alone, a world of one.

The processes hold the same weights. Each computes the gradient of its share of a batch, the gradients are summed over all, and all
make the same update. What is decided by a clock or written to disk is the first process's affair.
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
        rank: this one's, from 0. size: how many there are.
        gloo_group: over which Python values go, never a GPU's.
    """

    rank: int = 0
    size: int = 1
    gloo_group: Any = None

    @property
    def is_first(self) -> bool:
        """Whether this process decides and writes."""
        return self.rank == 0

    def sum(self, tensors: Iterable[Tensor]) -> None:
        """Replace the tensors by their sums over all processes; one message for all that are of one type.

        Raises:
            TrainingError: another process has failed.
        """
        if self.size == 1:
            return
        for group in _by_type(tensors):
            flat = torch.cat([tensor.flatten() for tensor in group])
            with _others_may_fail():
                dist.all_reduce(flat)
            for tensor, part in zip(group, flat.split([tensor.numel() for tensor in group]), strict=True):
                tensor.copy_(part.view_as(tensor))

    def sum_gradients(self, model: nn.Module) -> None:
        """Sum the gradients over all processes; one that a process has no use for counts as 0."""
        if self.size == 1:
            return
        parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        for parameter in parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        self.sum(parameter.grad for parameter in parameters if parameter.grad is not None)

    def broadcast(self, value: T) -> T:
        """The first process's value, in all.

        Raises:
            TrainingError: another process has failed.
        """
        if self.size == 1:
            return value
        values = [value]
        with _others_may_fail():
            dist.broadcast_object_list(values, src=0, group=self.gloo_group)
        return values[0]

    def min_over_ranks(self, number: int) -> int:
        """The smallest of all processes' numbers.

        Raises:
            TrainingError: another process has failed.
        """
        numbers = [number] * self.size
        if self.size > 1:
            with _others_may_fail():
                dist.all_gather_object(numbers, number, group=self.gloo_group)
        return min(numbers)

    def copy_weights(self, model: nn.Module) -> None:
        """Give all processes the first one's weights."""
        if self.size == 1:
            return
        with torch.no_grad():
            for parameter in model.parameters():
                if not self.is_first:
                    parameter.zero_()
                self.sum([parameter])


SINGLE_PROCESS = World()


@contextmanager
def init_distributed(device: torch.device) -> Iterator[World]:
    """The world that torchrun has put this process into; alone where it was started otherwise.

    Raises:
        TrainingError: the processes cannot find each other.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield SINGLE_PROCESS
        return
    try:
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
        gloo_group = dist.new_group(backend="gloo")
    except (RuntimeError, ValueError) as error:
        raise TrainingError(f"the processes of this training cannot find each other ({_first_line(error)})") from None
    try:
        yield World(dist.get_rank(), dist.get_world_size(), gloo_group)
    finally:
        dist.destroy_process_group()


def local_gpu(device: torch.device) -> torch.device:
    """The GPU of this process, where several on one machine train on one each; from now on the one that is meant by default.

    Raises:
        ConfigError: there are fewer GPUs than processes.
    """
    if device.type != "cuda":
        return device
    number, there = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
    if number >= there:
        raise ConfigError(f"process {number + 1} of this machine has no GPU to train on: it has {there}; start one for each")
    torch.cuda.set_device(number)
    return torch.device("cuda", number)


@contextmanager
def _others_may_fail() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        raise TrainingError(f"another process of this training has failed ({_first_line(error)}); its message says why") from None


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0][:200]


def _by_type(tensors: Iterable[Tensor]) -> list[list[Tensor]]:
    groups: dict[torch.dtype, list[Tensor]] = {}
    for tensor in tensors:
        groups.setdefault(tensor.dtype, []).append(tensor)
    return list(groups.values())
