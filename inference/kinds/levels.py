"""The level of a target's resources: what it holds at rest, and whether it comes back to it (M18)."""

import asyncio
import contextlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from inference.errors import TargetUnavailable
from inference.kinds.course import Course
from inference.records import Trace
from inference.requests import GenerationRequest

#: gauges that are watched; memory may stay above its level before by this, since allocators keep pages
WATCHED = ("running", "waiting", "kv_blocks_used", "kv_used_bytes", "kv_usage", "rss_bytes")
MEMORY_SHARE, MEMORY_BYTES = 0.05, 16 * 2**20
LOOK_EVERY_S = 0.05
#: a gauge that has not moved for so long is asked by a small request, which makes the server take a step
PROBE_AFTER_S = 2.0

Level = dict[str, float]


async def told(course: Course) -> dict[str, Any]:
    """What the target says of itself now; nothing where it says nothing."""
    try:
        return dict(await course.target.telemetry())
    except TargetUnavailable:
        return {}


def level_of(sample: Mapping[str, Any]) -> Level:
    return {name: float(sample[name]) for name in WATCHED if sample.get(name) is not None}


@dataclass
class Watch:
    """Looks at the gauges from a cut on until each is back at the level before.

    An endpoint's gauge proves something only if it moves: one that stands still after the cut while nothing
    else of the server's figures moves either is frozen, and says nothing about release.
    """

    before: Level
    peak: Level = field(default_factory=dict)
    back_ms: dict[str, float] = field(default_factory=dict)
    by_probe: set[str] = field(default_factory=set)
    last: Level = field(default_factory=dict)
    moved: bool = False
    _seen: dict[str, Any] | None = None

    def see_peak(self, sample: Mapping[str, Any]) -> None:
        for name, value in level_of(sample).items():
            self.peak[name] = max(value, self.peak.get(name, value))

    async def follow(self, course: Course, cut_ns: int, limit_s: float) -> None:
        """Until everything is back, at most `limit_s`; `cut_ns` is when the last request was left."""
        probed = False
        owns_process = course.info.kind == "engine"
        self._seen = None
        while not course.stopped:
            self._look(await told(course), cut_ns, probed=probed, owns_process=owns_process)
            waited_s = (time.monotonic_ns() - cut_ns) / 1e9
            if not self._open() or waited_s > limit_s:
                return
            if not owns_process and not self.moved and not probed and waited_s > PROBE_AFTER_S:
                probed = True
                await self._probe(course)
            await course.rest(LOOK_EVERY_S)

    def _look(self, sample: dict[str, Any], cut_ns: int, *, probed: bool, owns_process: bool) -> None:
        now_ms = (time.monotonic_ns() - cut_ns) / 1e6
        if self._seen is None:
            self._seen = sample
            self.moved = owns_process
        elif sample != self._seen and not sample.get("stale"):
            self.moved = True
        self.last = level_of(sample)
        if not self.moved:
            return
        for name, value in self.last.items():
            if name in self.before and name not in self.back_ms and is_back(name, value, self.before[name]):
                self.back_ms[name] = now_ms
                if probed:
                    self.by_probe.add(name)

    def _open(self) -> list[str]:
        return [name for name in self.before if name not in self.back_ms]

    async def _probe(self, course: Course) -> None:
        request = GenerationRequest(
            id="release-probe", messages=({"role": "user", "content": "1"},), max_tokens=1, namespace="probe"
        )
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PROBE_AFTER_S * 5):
                await course.target.run(request, Trace(request.id))

    def rows(self) -> list[dict[str, Any]]:
        """One line a gauge: its level before, at most and at last, and when it was back (else null)."""
        return [
            {
                "gauge": name,
                "before": before,
                "peak": self.peak.get(name),
                "after": self.last.get(name),
                "back_ms": self.back_ms.get(name) if self._rose(name) else None,
                "state": self._state(name),
            }
            for name, before in self.before.items()
        ]

    def _rose(self, name: str) -> bool:
        return self.peak.get(name, self.before[name]) > self.before[name]

    def _state(self, name: str) -> str:
        if not self.moved:
            return "frozen"
        if not self._rose(name):
            return "never_rose"
        if name in self.back_ms:
            return "back_by_probe" if name in self.by_probe else "back"
        return "held"


def is_back(name: str, value: float, before: float) -> bool:
    if name.endswith("rss_bytes"):
        return value <= before * (1 + MEMORY_SHARE) + MEMORY_BYTES
    return value <= before
