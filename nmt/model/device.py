"""Where tensors live."""

import torch
from torch import Tensor

from nmt.config.names import DeviceName
from nmt.errors import ConfigError


def pick_device(name: DeviceName) -> torch.device:
    """The device called `name`; `auto` is the first there is of cuda, mps and cpu.

    Raises:
        ConfigError: this machine, or this build of torch, has no such device.
    """
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if name == "auto":
        name = "cuda" if there["cuda"] else "mps" if there["mps"] else "cpu"
    if not there[name]:
        raise ConfigError(
            f"--device {name}: not available here; available: {', '.join(d for d, is_there in there.items() if is_there)}"
        )
    if name == "cuda":
        torch.set_float32_matmul_precision("high")  # products of float32 in TF32, as cuDNN's recurrences are anyway
    return torch.device(name)


def send(tensor: Tensor, device: torch.device) -> Tensor:
    """A tensor of the CPU on `device`; from pinned memory, so that a GPU is not waited for."""
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)
