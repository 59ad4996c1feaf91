"""Where tensors live."""

import torch

from nmt.errors import ConfigError
from nmt.sections import DeviceName


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
        torch.backends.cuda.matmul.allow_tf32 = True  # as cuDNN's recurrences do anyway
    return torch.device(name)
