"""Samples a target's resources while a load runs, on the load's own time axis."""

import asyncio
import contextlib
import time
from typing import Any

from inference.errors import TargetUnavailable
from inference.targets.base import Target
from inference.telemetry import GpuSampler, HostSampler

SAMPLE_EVERY_S = 0.5


class ResourceSampler:
    """What the target tells of itself, the memory of its process, the machine and its accelerators.

    For an endpoint there is no process to look at, and accelerators here are not the endpoint's: only
    what the server tells and the client's machine are sampled.
    """

    def __init__(self, target: Target, *, started_ns: int | None = None) -> None:
        self._target = target
        self._started_ns = time.monotonic_ns() if started_ns is None else started_ns
        self.samples: list[dict[str, Any]] = []
        pid = getattr(target, "process_id", None)
        self._host = HostSampler(pid)
        self._gpu = GpuSampler() if pid is not None else None

    async def sample(self) -> dict[str, Any]:
        """One sample, kept in `samples`: `at_ms` and the keys of `inference.telemetry`."""
        found = self._host.sample()
        if self._gpu is not None:
            found |= self._gpu.sample()
        with contextlib.suppress(TargetUnavailable):  # its requests tell why; the machine's figures remain
            found |= await self._target.telemetry()
        found["at_ms"] = (time.monotonic_ns() - self._started_ns) / 1e6
        self.samples.append(found)
        return found

    async def run(self, every_s: float = SAMPLE_EVERY_S) -> None:
        """Sample until cancelled."""
        while True:
            await self.sample()
            await asyncio.sleep(every_s)

    async def server(self) -> dict[str, Any] | None:
        """What the server told of the measured window; None for a target that is no endpoint."""
        observe = getattr(self._target, "server_observation", None)
        return None if observe is None else dict(await observe())
