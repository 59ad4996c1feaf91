"""The device that a command computes on."""

from mmap import ACCESS_COPY, mmap

import torch

from nmt.config.parts import DeviceName, TrainingPrecision
from nmt.errors import ConfigError

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
    """Pick a device; on a GPU, let torch multiply in TF32, for the whole process.

    Raises:
        ConfigError: as `pick_device`.
        MemoryError: nearly no memory is left.
    """
    device = pick_device(name)
    try:
        mmap(-1, MIN_MEMORY, access=ACCESS_COPY).close()  # reserves the memory, and gives it back
    except OSError:
        raise MemoryError from None
    if device.type == "cuda":
        torch.set_float32_matmul_precision("high")  # as cuDNN's recurrences already do
    return device


def choose_precision(precision: TrainingPrecision, device: torch.device) -> TrainingPrecision:
    """`precision`; in place of `auto`, the faster one of the device.

    Raises:
        ConfigError: bfloat16 is slow here.
    """
    has_mixed = supports_mixed_precision(device)
    if precision == "bfloat16" and not has_mixed:
        on_cpu = "a processor with AVX512-BF16 or AMX, or a GPU"
        needed = on_cpu if device.type == "cpu" else "an NVIDIA GPU or a CPU"
        raise ConfigError(f"training.precision: bfloat16 needs {needed}; set float32")
    if precision != "auto":
        return precision
    return "bfloat16" if has_mixed else "float32"


def supports_mixed_precision(device: torch.device) -> bool:
    """Whether bfloat16 is faster here: on a GPU, or a CPU with instructions for it."""
    if device.type == "cpu":
        # versions of torch differ in what they have
        probes = "_is_avx512_bf16_supported", "_is_amx_tile_supported"
        return any(getattr(torch.cpu, probe, bool)() for probe in probes)
    return device.type == "cuda"
