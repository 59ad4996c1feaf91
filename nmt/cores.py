"""How many processor cores this process may use, and whether there may be a GPU."""

import os
import shutil
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

# Where Linux tells a container its limit, in microseconds on all cores together, and the length of
# the period in which it holds: in one file (cgroup v2), or in two (v1).
QUOTA_FILES = (
    ("/sys/fs/cgroup/cpu.max",),
    ("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "/sys/fs/cgroup/cpu/cpu.cfs_period_us"),
)


def usable_threads() -> int:
    """How many threads may compute: OMP_NUM_THREADS or, without it, one for each core."""
    words = os.environ.get("OMP_NUM_THREADS", "")
    return max(1, int(words)) if words.isdecimal() else usable_cores()


def may_have_gpu() -> bool:
    """Whether torch may find a GPU of NVIDIA; it knows for sure, but takes a second to import."""
    has_driver = Path("/dev/nvidiactl").exists() or shutil.which("nvidia-smi") is not None
    return has_driver and find_spec("torch") is not None


def usable_cores() -> int:
    """Those that the system lets this process use, and not more than the time that a container
    gets, rounded up: more threads would only stop each other.
    """
    has_affinity = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    for names in QUOTA_FILES:
        with suppress(OSError, ValueError):  # there is no such file, or it says "max" for no limit
            quota, period = map(int, " ".join(Path(name).read_text() for name in names).split())
            if quota > 0:
                cores = min(cores, -(-quota // period))
    return cores
