"""The device that a command computes on, and its memory."""

import ctypes
import os
from contextlib import suppress
from mmap import ACCESS_COPY, mmap

import torch

from nmt.config.parts import DeviceName
from nmt.cores import usable_cores
from nmt.errors import ConfigError

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # of glibc's malloc.h
MIN_MEMORY = 1 << 24  # bytes; with less, libraries may crash, or Python wait forever for a thread


def pick_device(name: DeviceName) -> torch.device:
    """The device called `name`; `auto` is the first available of cuda, mps and cpu.

    Raises:
        ConfigError: this machine, or this build of torch, has no such device.
    """
    available = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    if name == "auto":
        name = "cuda" if available["cuda"] else "mps" if available["mps"] else "cpu"
    if not available[name]:
        names = ", ".join(device for device, is_available in available.items() if is_available)
        raise ConfigError(f"--device {name}: not available here; available: {names}")
    return torch.device(name)


def set_up_device(name: DeviceName) -> torch.device:
    """Pick a device; on a GPU, let torch multiply in TF32, for the whole process. In a container
    with a limit on its time, use fewer threads than the machine has cores.

    Raises:
        ConfigError: as `pick_device`.
        MemoryError: nearly no memory is left.
    """
    device = pick_device(name)
    try:
        mmap(-1, MIN_MEMORY, access=ACCESS_COPY).close()  # reserves the memory, and gives it back
    except OSError:
        raise MemoryError from None
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(min(torch.get_num_threads(), usable_cores()))
    if device.type == "cuda":
        torch.set_float32_matmul_precision("high")  # as cuDNN's recurrences already do
    return device


def keep_freed_memory() -> None:
    """Let the C library keep what is freed, for the whole process, if it is glibc. By default it
    gives large blocks back to the system, which fills them with zeros when the next update asks for
    them again: up to a tenth of the time of an update.
    """
    with suppress(AttributeError, OSError, TypeError):
        library = ctypes.CDLL(None)
        library.mallopt(M_MMAP_MAX, 0)
        library.mallopt(M_TRIM_THRESHOLD, -1)


def supports_mixed_precision(device: torch.device) -> bool:
    """Whether training can use bfloat16 here, fast or slow: on an NVIDIA GPU, or on a CPU for which
    oneDNN has recurrent layers in it.
    """
    if device.type == "cpu":
        # builds without oneDNN do not have its operators
        mkldnn = torch.backends.mkldnn
        return mkldnn.is_available() and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return device.type == "cuda"
