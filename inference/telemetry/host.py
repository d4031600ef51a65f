"""The machine and the processes of a target: resident memory, processor share, load."""

import os
import time
from typing import Any

import psutil


class HostSampler:
    """Samples this host; `pid` is the root of the target's process tree (None: nothing of a process).

    `cpu_share` and `process_cpu_share` cover the time since the sampler's previous call, so the first sample
    has none.
    """

    def __init__(self, pid: int | None = None) -> None:
        self.pid = pid
        self._sampled = False
        self._process_s: tuple[float, float] | None = None  # (when, processor time until then)

    def sample(self) -> dict[str, Any]:
        """One sample with the host keys of `inference.telemetry`; takes about a millisecond."""
        memory = psutil.virtual_memory()
        cpu_share = psutil.cpu_percent(interval=None) / 100.0
        found: dict[str, Any] = {
            "system_memory_bytes": memory.total,
            "system_memory_available_bytes": memory.available,
            "load_1m": os.getloadavg()[0],
            "cpu_count": psutil.cpu_count() or 1,
        }
        if self._sampled:
            found["cpu_share"] = cpu_share
        self._sampled = True
        if self.pid is not None and (share := self._process_share(self.pid)) is not None:
            found["process_cpu_share"] = share
        rss = tree_rss_bytes(self.pid) if self.pid is not None else None
        if rss is not None:
            found["rss_bytes"] = rss
        return found

    def _process_share(self, pid: int) -> float | None:
        """The process's share of all cores since the last call; None at the first, and when it is gone."""
        try:
            used = psutil.Process(pid).cpu_times()
        except psutil.Error:
            self._process_s = None
            return None
        before, now = self._process_s, (time.monotonic(), used.user + used.system)
        self._process_s = now
        if before is None or now[0] <= before[0]:
            return None
        return min(1.0, max(0.0, (now[1] - before[1]) / (now[0] - before[0]) / (psutil.cpu_count() or 1)))


def tree_rss_bytes(pid: int) -> int | None:
    """Resident bytes of a process and all its descendants; None when it does not exist (any more)."""
    try:
        root = psutil.Process(pid)
        processes = [root, *root.children(recursive=True)]
    except psutil.Error:
        return None
    total = 0
    for process in processes:
        try:
            total += process.memory_info().rss
        except psutil.Error:
            continue  # it ended between the listing and the reading
    return total or None
