"""How many threads an engine process computes with where nobody has said so."""

import math
import os
from pathlib import Path

#: how many engine processes share this machine; each takes its part of the cores
WORKERS_VARIABLE = "PHASEGATE_ENGINE_WORKERS"
CGROUP_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def default_threads() -> tuple[int, str]:
    """(threads, where the number is from): `OMP_NUM_THREADS`, else cores ÷ workers, at least one."""
    asked = _count(os.environ.get("OMP_NUM_THREADS", ""))
    if asked:
        return asked, "OMP_NUM_THREADS"
    cores, workers = available_cores(), _count(os.environ.get(WORKERS_VARIABLE, "")) or 1
    return max(1, cores // workers), f"{cores} cores / {workers} engine processes"


def available_cores() -> int:
    """Cores that this process may use: its affinity, or the container's quota where that is less."""
    cores = len(os.sched_getaffinity(0))
    try:
        quota, period = CGROUP_QUOTA.read_text().split()
        return max(1, min(cores, math.ceil(int(quota) / int(period))))
    except (OSError, ValueError):  # no such file, or "max": no limit
        return cores


def _count(text: str) -> int:
    return int(text) if text.isdecimal() else 0
