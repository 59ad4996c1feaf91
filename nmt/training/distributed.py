"""Distributed training: several processes, on one machine or several, as torchrun starts them.

All processes hold the same weights. Each computes the gradient of its part of a batch;
DistributedDataParallel takes the mean over all processes, and all make the same update. Only the
first process reads the clock and writes files.
"""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from nmt.errors import ConfigError, TrainingError, first_line
from nmt.training.loop import SINGLE_PROCESS, World

T = TypeVar("T")

DEFAULT_TIMEOUT = timedelta(minutes=30)


@dataclass(frozen=True)
class Processes(World):
    """Several processes. Where another one failed, or does not answer, methods raise TrainingError.

    Attributes:
        tensor_group, gloo_group: process groups that send tensors, and Python objects over the CPU.
    """

    tensor_group: Any = None
    gloo_group: Any = None

    def parallel(self, module: nn.Module) -> nn.Module:
        """One bucket of gradients is exchanged while the backward pass computes the next."""
        # A parameter without a gradient in all processes has none afterwards, so that the optimizer
        # leaves it unchanged, as in a single process. And the buckets stay the same in all updates:
        # otherwise those after the first differ, sums are rounded differently, and a resumed
        # training is no longer exact. DistributedDataParallel advises not to look for such
        # parameters if it finds none in the first update, so here is one that no pass uses.
        unused = torch.zeros(1, device=next(module.parameters()).device)
        module.register_parameter("unused", nn.Parameter(unused))
        with self._explain_failures():  # all get the weights and buffers of the first process
            parallel = DistributedDataParallel(
                module,
                process_group=self.tensor_group,
                find_unused_parameters=True,
                gradient_as_bucket_view=True,
            )
        # They are constant. Not as an argument, which newer versions of torch rename.
        parallel.broadcast_buffers = False
        return parallel

    def exchange(self, module: nn.Module, *, last: bool) -> AbstractContextManager[None]:
        if last or not isinstance(module, DistributedDataParallel):
            return nullcontext()
        return module.no_sync()

    def backward(self, objective: Tensor, *, last: bool) -> None:
        """A full memory is an error, too: it is too late to split the batch."""
        with self._explain_failures() if last else nullcontext():
            objective.backward()

    def sum(self, tensor: Tensor) -> None:
        with self._explain_failures():
            if tensor.is_cuda:
                # Over the CPU: messages between GPUs do not report a process that hangs.
                dist.barrier(self.gloo_group)
            dist.all_reduce(tensor, group=self.tensor_group)

    def broadcast(self, value: T) -> T:
        values = [value]
        with self._explain_failures():
            dist.broadcast_object_list(values, src=0, group=self.gloo_group)
        return values[0]

    @contextmanager
    def _explain_failures(self) -> Iterator[None]:
        """Raises: TrainingError in place of the errors of messages between processes."""
        try:
            yield
        except torch.OutOfMemoryError:
            raise TrainingError(
                "out of memory while gradients are exchanged; lower training.batch.size"
            ) from None
        except RuntimeError as error:
            text = first_line(error)[:200]
            if not isinstance(error, dist.DistError) and "gloo" not in text:
                raise
            raise TrainingError(
                f"another process of this training failed, or has not answered within "
                f"training.timeout_minutes ({text}); see its error message, or what it waits for"
            ) from None


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
        long_timeout = max(4 * timeout, DEFAULT_TIMEOUT)
        backend = "nccl" if device.type == "cuda" else "gloo"
        store, rank, size = next(rendezvous("env://", timeout=long_timeout))
        # With a restart by torchrun, the store still has the addresses of the dead processes. On
        # several machines, the numbers of restarts may differ; there, torchrun must be told to make
        # a new store: see docs/gpu.md.
        is_one_machine = os.environ.get("LOCAL_WORLD_SIZE") == os.environ.get("WORLD_SIZE")
        count = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        store = PrefixStore(f"attempt {count}" if is_one_machine else "attempt", store)
        dist.init_process_group(
            backend, store=store, rank=rank, world_size=size, timeout=long_timeout
        )
        gloo_group = dist.new_group(backend="gloo", timeout=timeout)
    except (RuntimeError, ValueError) as error:
        raise TrainingError(
            f"the processes of this training cannot connect ({first_line(error)[:200]})"
        ) from None
    try:
        tensor_group = dist.group.WORLD if backend == "nccl" else gloo_group
        yield Processes(rank, size, tensor_group, gloo_group)
    finally:
        dist.destroy_process_group()


def local_gpu(device: torch.device) -> torch.device:
    """The GPU of this process, one for each process of a machine; sets it as torch's default. Other
    devices stay as they are.

    Raises:
        ConfigError: the machine has fewer GPUs than processes.
    """
    if device.type != "cuda":
        return device
    index = int(os.environ.get("LOCAL_RANK", "0"))
    n_gpus = torch.cuda.device_count()
    if index >= n_gpus:
        raise ConfigError(
            f"process {index + 1} of this machine has no GPU: the machine has {n_gpus}; start one "
            "process for each GPU"
        )
    torch.cuda.set_device(index)
    return torch.device("cuda", index)
