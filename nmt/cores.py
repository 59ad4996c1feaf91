"""How many processor cores this process may use."""

import os
from contextlib import suppress
from pathlib import Path

# Where Linux tells a container its limit, in microseconds on all cores together, and the length of
# the period in which it holds: in one file (cgroup v2), or in two (v1).
QUOTA_FILES = (
    ("/sys/fs/cgroup/cpu.max",),
    ("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "/sys/fs/cgroup/cpu/cpu.cfs_period_us"),
)


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
