"""The load generator's view of itself: dispatch delay, event-loop lag and its share of a processor."""

import asyncio
import time
from typing import Any

from inference.stats import figures

SAMPLE_EVERY_S = 0.01


class SelfCheck:
    """Collects the client's own delays during the measured window."""

    def __init__(self) -> None:
        self._dispatch_delay_ns: list[int] = []
        self._loop_lag_ns: list[int] = []
        self._measuring = False
        self._wall_ns = self._cpu_ns = 0
        self._wall_from_ns = self._cpu_from_ns = 0

    def start(self) -> None:
        self._measuring = True
        self._wall_from_ns, self._cpu_from_ns = time.monotonic_ns(), time.process_time_ns()

    def stop(self) -> None:
        self._measuring = False
        self._wall_ns += time.monotonic_ns() - self._wall_from_ns
        self._cpu_ns += time.process_time_ns() - self._cpu_from_ns

    def dispatched(self, delay_ns: int) -> None:
        """A request left its slot `delay_ns` after it was due and a slot was free."""
        self._dispatch_delay_ns.append(delay_ns)

    async def sample_loop_lag(self) -> None:
        """Sleep in short steps for ever; what a step takes beyond its length is the loop's lag."""
        step_ns = int(SAMPLE_EVERY_S * 1_000_000_000)
        while True:
            before_ns = time.monotonic_ns()
            await asyncio.sleep(SAMPLE_EVERY_S)
            if self._measuring:
                self._loop_lag_ns.append(max(0, time.monotonic_ns() - before_ns - step_ns))

    def as_json(self) -> dict[str, Any]:
        """Dispatch delay and loop lag as figures in ms; CPU share as CPU seconds per second of the window."""
        if self._measuring:
            self.stop()
        return {
            "dispatch_delay_ms": figures(ns / 1e6 for ns in self._dispatch_delay_ns),
            "loop_lag_ms": figures(ns / 1e6 for ns in self._loop_lag_ns),
            "cpu_share": self._cpu_ns / self._wall_ns if self._wall_ns else None,
        }
