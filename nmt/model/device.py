"""Where tensors live."""

import torch

from nmt.config import DeviceName
from nmt.errors import ConfigError


def pick_device(name: DeviceName) -> torch.device:
    """The device called `name`; `auto` is the first there is of cuda, mps and cpu.

    Raises:
        ConfigError: this machine, or this build of torch, has no such device.
    """
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if name == "auto":
        return torch.device(next(device for device, is_there in there.items() if is_there))
    if not there[name]:
        raise ConfigError(
            f"--device {name}: not available here; available: {', '.join(d for d, is_there in there.items() if is_there)}"
        )
    return torch.device(name)
