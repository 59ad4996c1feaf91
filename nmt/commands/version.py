"""`nmt --version`: the versions that matter for results, and where nmt computes."""

import platform

import torch

from nmt import __version__
from nmt.device import pick_device


def describe() -> str:
    """A line each for nmt, Python, torch and the device that `--device auto` picks."""
    device = pick_device("auto")
    name = f" ({torch.cuda.get_device_name(device)})" if device.type == "cuda" else ""
    threads = torch.get_num_threads()
    return "\n".join(
        [
            f"nmt {__version__}",
            f"Python {platform.python_version()}, {platform.system()} {platform.machine()}",
            f"torch {torch.__version__}",
            (
                f"device {device.type}{name}; CPU {torch.backends.cpu.get_cpu_capability()}, "
                f"{threads} thread{'s' * (threads > 1)}"
            ),
        ]
    )
