"""Distributed training: several processes, on one machine or several, as torchrun starts them.

All processes hold the same weights. Each computes the gradient of its part of a batch;
DistributedDataParallel takes the mean over all processes, and all make the same update. Only the
first process reads the clock and writes files.
"""

import os
import re
import socket
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from nmt.errors import ConfigError, TrainingError

T = TypeVar("T")

DEFAULT_TIMEOUT = timedelta(minutes=30)
CHECK_TIMEOUT = timedelta(seconds=60)  # to find out which process does not answer


@dataclass(frozen=True)
class World:
    """The processes of a training.

    Attributes:
        rank: index of this process, from 0. size: number of processes.
        tensor_group, gloo_group: process groups that send tensors, and Python objects over the CPU.
        check_group: a process group to find out which processes still answer.
        names: of the processes, for messages. timeout: how long a process may not answer.
    """

    rank: int = 0
    size: int = 1
    tensor_group: Any = None
    gloo_group: Any = None
    check_group: Any = None
    names: tuple[str, ...] = ()
    timeout: timedelta = DEFAULT_TIMEOUT

    @property
    def is_first(self) -> bool:
        """Whether this process decides and writes files."""
        return self.rank == 0

    def parallel(self, module: nn.Module) -> nn.Module:
        """`module`, whose backward passes leave the mean gradient of all processes; see
        `exchange_in_backward`.

        The exchange of one bucket of gradients runs while the backward pass computes the next.
        """
        if self.size == 1:
            return module
        # A parameter without a gradient in all processes has none afterwards, so that the optimizer
        # leaves it unchanged, as in a single process; the adaptive output layer has such
        # parameters. And the buckets stay the same in all updates: otherwise those after the first
        # differ, sums are rounded differently, and a resumed training is no longer exact.
        parallel = DistributedDataParallel(
            module,
            process_group=self.tensor_group,
            find_unused_parameters=True,
            gradient_as_bucket_view=True,
        )
        parallel.broadcast_buffers = (
            False  # they are constant; not as an argument, which newer versions of torch rename
        )
        return parallel

    def without_exchange(self, module: nn.Module) -> AbstractContextManager[None]:
        """Backward passes of a module of `parallel` inside the block only add to the gradients of
        this process.
        """
        return module.no_sync() if isinstance(module, DistributedDataParallel) else nullcontext()

    @contextmanager
    def exchange_in_backward(self) -> Iterator[None]:
        """For a backward pass that exchanges gradients.

        Raises:
            TrainingError: another process failed, or does not answer; or memory is full, when it is
                too late to split the batch.
        """
        if self.size == 1:
            yield
            return
        try:
            with self._explain_failures():
                yield
        except torch.OutOfMemoryError:
            raise TrainingError(
                "out of memory while gradients are exchanged; lower training.batch.size"
            ) from None

    def sum(self, tensor: Tensor) -> None:
        """Replace the tensor by its sum over all processes.

        Raises:
            TrainingError: another process failed, or does not answer.
        """
        if self.size == 1:
            return
        with self._explain_failures():
            if tensor.is_cuda:
                dist.barrier(
                    self.gloo_group
                )  # over the CPU: messages between GPUs do not report a process that hangs
            dist.all_reduce(tensor, group=self.tensor_group)

    def broadcast(self, value: T) -> T:
        """The value of the first process, in all processes.

        Raises:
            TrainingError: another process failed.
        """
        if self.size == 1:
            return value
        values = [value]
        with self._explain_failures():
            dist.broadcast_object_list(values, src=0, group=self.gloo_group)
        return values[0]

    def copy_weights(self, model: nn.Module) -> None:
        """Copy the weights of the first process to all others."""
        if self.size == 1:
            return
        with self._explain_failures():
            for tensor in (*model.parameters(), *model.buffers()):
                dist.broadcast(tensor.data, src=0, group=self.tensor_group)

    @contextmanager
    def _explain_failures(self) -> Iterator[None]:
        """Raises: TrainingError in place of the errors of messages between processes."""
        start_time = time.monotonic()
        try:
            yield
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            text = str(error).strip().split("\n")[0]
            if not isinstance(error, dist.DistError) and "gloo" not in text:
                raise
            # A process that dies breaks its connections at once; one that hangs does not.
            if time.monotonic() - start_time >= self.timeout.total_seconds() / 2 and (
                names := self._silent_processes()
            ):
                minutes = self.timeout.total_seconds() / 60
                raise TrainingError(
                    f"{names} has not answered for {minutes:g} minutes; see what it waits for "
                    "(training.timeout_minutes)"
                ) from None
            raise TrainingError(
                f"another process of this training failed ({text[:200]}); see its error message"
            ) from None

    def _silent_processes(self) -> str:
        """The processes that do not answer now. The first process can tell for all; the others can
        tell only for the first.
        """
        wait = min(self.timeout, CHECK_TIMEOUT)
        try:
            dist.monitored_barrier(self.check_group, timeout=wait, wait_all_ranks=True)
        except RuntimeError as error:
            if match := re.search(r"Ranks ([\d, ]+) failed to pass", str(error)):
                return ", ".join(self.names[int(rank)] for rank in match[1].split(","))
            if "Timed out" in str(error):
                return self.names[0]
        return ""


SINGLE_PROCESS = World()


def is_first_process() -> bool:
    """Whether this is the first process that torchrun started, or the only one; known before the
    processes are connected.
    """
    return int(os.environ.get("RANK", "0")) == 0


@contextmanager
def init_distributed(device: torch.device, timeout: timedelta = DEFAULT_TIMEOUT) -> Iterator[World]:
    """Connect the processes that torchrun started; without torchrun, a single process.

    Args:
        timeout: how long a process may not answer.

    Raises:
        TrainingError: the processes cannot connect.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield SINGLE_PROCESS
        return
    from torch._C._distributed_c10d import PrefixStore
    from torch.distributed.rendezvous import rendezvous

    try:
        # Messages over the CPU report a process that hangs, so those between GPUs wait longer; and
        # processes may start late.
        backend, long_timeout = (
            "nccl" if device.type == "cuda" else "gloo",
            max(4 * timeout, DEFAULT_TIMEOUT),
        )
        store, rank, size = next(rendezvous("env://", timeout=long_timeout))
        dist.init_process_group(
            backend,
            store=PrefixStore(_attempt(), store),
            rank=rank,
            world_size=size,
            timeout=long_timeout,
        )
        gloo_group = dist.new_group(backend="gloo", timeout=timeout)
        check_group = dist.new_group(backend="gloo", timeout=3 * min(timeout, CHECK_TIMEOUT))
        names = [""] * size
        dist.all_gather_object(
            names,
            f"process {rank + 1} of {size} ({socket.gethostname()}, pid {os.getpid()})",
            gloo_group,
        )
    except (RuntimeError, ValueError) as error:
        raise TrainingError(
            f"the processes of this training cannot connect ({_first_line(error)})"
        ) from None
    tensor_group = dist.group.WORLD if device.type == "cuda" else gloo_group
    try:
        yield World(rank, size, tensor_group, gloo_group, check_group, tuple(names), timeout)
    finally:
        dist.destroy_process_group()


def _attempt() -> str:
    """A name for this start of the processes. With a restart by torchrun, the store still has the
    addresses of the dead processes.

    On several machines, their numbers of restarts may differ; there, torchrun must be told to make
    a new store: see docs/gpu.md.
    """
    is_one_machine = os.environ.get("LOCAL_WORLD_SIZE") == os.environ.get("WORLD_SIZE")
    return (
        f"attempt {os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}"
        if is_one_machine
        else "attempt"
    )


def local_gpu(device: torch.device) -> torch.device:
    """The GPU of this process, one for each process of a machine; sets it as torch's default. Other
    devices stay as they are.

    Raises:
        ConfigError: the machine has fewer GPUs than processes.
    """
    if device.type != "cuda":
        return device
    index, n_gpus = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
    if index >= n_gpus:
        raise ConfigError(
            f"process {index + 1} of this machine has no GPU: the machine has {n_gpus}; start "
            "one "
            "process for each GPU"
        )
    torch.cuda.set_device(index)
    return torch.device("cuda", index)


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0][:200]
