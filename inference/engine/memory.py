"""What of memory this process has and could have, in bytes."""

import contextlib
from pathlib import Path

import psutil

POOL_SHARE = 1 / 8  # of the machine's memory, so that the same machine gives the same pool
POOL_FREE_SHARE = 1 / 2  # of what is free at load, where that is less
POOL_MAX_BYTES = 2 * 2**30

CGROUP_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
CGROUP_USES = (Path("/sys/fs/cgroup/memory.current"), Path("/sys/fs/cgroup/memory/memory.usage_in_bytes"))
OOM_COUNTERS = (Path("/sys/fs/cgroup/memory.events"), Path("/proc/vmstat"))


def available_bytes() -> int:
    """Memory that can still be taken: the machine's, or the container's where that is less."""
    free = int(psutil.virtual_memory().available)
    for limit, use in zip(CGROUP_LIMITS, CGROUP_USES, strict=True):
        try:
            return max(0, min(free, int(limit.read_text()) - int(use.read_text())))
        except (OSError, ValueError):  # no such file, or "max": no limit
            continue
    return free


def total_bytes() -> int:
    """The machine's memory, or the container's limit where that is less."""
    total = int(psutil.virtual_memory().total)
    for limit in CGROUP_LIMITS:
        try:
            return min(total, int(limit.read_text()))
        except (OSError, ValueError):
            continue
    return total


def pool_bytes() -> int:
    """The key-value pool that an engine takes where its size is not set."""
    return int(min(POOL_SHARE * total_bytes(), POOL_FREE_SHARE * available_bytes(), POOL_MAX_BYTES))


def resident_bytes() -> tuple[int, int]:
    """(resident set now, its peak) of this process."""
    now = int(psutil.Process().memory_info().rss)
    peak = now
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                peak = int(line.split()[1]) * 1024
    except OSError:
        pass
    return now, max(now, peak)


def restart_resident_peak() -> None:
    """Count the peak of `resident_bytes` from now on; where the kernel cannot, it goes on as it is."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def oom_kills() -> int:
    """Processes that the kernel has ended for memory: in this container, else on this machine."""
    for path in OOM_COUNTERS:
        try:
            lines = path.read_text().splitlines()
        except OSError:
            continue
        for line in lines:
            name, _, count = line.partition(" ")
            if name == "oom_kill" and count.isdecimal():
                return int(count)
    return 0
