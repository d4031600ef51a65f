"""A target of known times, and how a kind's procedure is run against it."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from inference.kinds import KINDS, Conducted, Course, conduct
from inference.records import Trace
from inference.requests import GenerationRequest
from inference.targets.base import TargetInfo

Conduct = Callable[..., Any]

SPEC: dict[str, Any] = {
    "input_tokens": 16,
    "output_tokens": 4,
    "concurrency": 2,
    "requests": 8,
    "warmup_requests": 0,
    "distinct_prompts": 4,
    "seed": 0,
    "timeout_s": 5.0,
}


class Bench:
    """Serves `slots` requests at once, each `service_s` long; who finds `room` others waiting is refused.

    `leave` gauges stay up after a request was left when `leaks`; an endpoint's are `frozen` on demand.
    """

    def __init__(self, kind: str = "engine", service_s: float = 0.005, slots: int = 100, room: int = 1000):
        self.kind, self.service_s, self.room = kind, service_s, room
        self.slots = asyncio.Semaphore(slots)
        self.waiting = self.running = self.held = 0
        self.seen: list[GenerationRequest] = []
        self.gauges: Callable[[], dict[str, Any]] = lambda: {
            "running": self.running,
            "waiting": self.waiting,
            "kv_blocks_used": self.running + self.held,
        }
        self.process_id = 1

    async def open(self) -> TargetInfo:
        return TargetInfo(kind="engine" if self.kind == "engine" else "http", model="bench")

    async def run(self, request: GenerationRequest, trace: Trace) -> None:
        trace.sent_ns = time.monotonic_ns()
        self.seen.append(request)
        if self.waiting >= self.room:
            trace.status, trace.ended, trace.error = 429, "refused", "full"
            trace.server = {"retry_after": "0", "retry_after_s": 0.0}
            return
        trace.queued_ns = time.monotonic_ns()
        self.waiting += 1
        try:
            await self.slots.acquire()
        finally:
            self.waiting -= 1
        self.running += 1
        try:
            await self._serve(request, trace)
        finally:
            self.running -= 1
            self.slots.release()
            trace.freed_ns = time.monotonic_ns()

    async def _serve(self, request: GenerationRequest, trace: Trace) -> None:
        admitted = time.monotonic_ns()
        trace.admitted_ns.append(admitted)
        trace.input_tokens, trace.output_tokens_source = 16, "usage"
        await asyncio.sleep(self.service_s)
        tokens = request.max_tokens
        if request.cancel is not None:
            tokens = min(tokens, request.cancel.after_tokens)
        end = time.monotonic_ns()
        step = max(1, (end - admitted) // (request.max_tokens + 1))
        trace.token_ns = [admitted + step * (i + 1) for i in range(tokens)]
        trace.reads = [(ns, 1) for ns in trace.token_ns]
        trace.output_tokens, trace.text = tokens, "x" * tokens
        if request.cancel is not None:
            trace.aborted_ns, trace.ended = end, "client"
            return
        trace.finish_reason, trace.ended, trace.finished_ns = "length", "orderly", end

    async def telemetry(self) -> dict[str, Any]:
        return self.gauges()

    def tokenize(self, text: str) -> list[int] | None:
        return None

    async def close(self) -> None:
        return None


@pytest.fixture
def run_kind() -> Conduct:
    """`await run_kind("soak", bench, options={…}, **spec)`: what was conducted, and the summary's block."""

    async def run(
        name: str, target: Any, *, options: dict[str, Any] | None = None, **spec: Any
    ) -> tuple[Conducted, dict[str, Any], Course]:
        kind = KINDS[name]
        course = Course(
            target=target,
            info=await target.open(),
            spec=SPEC | spec,
            values=kind.values(options or {}),
            stop=asyncio.Event(),
        )
        conducted, block = await conduct(kind, course)
        return conducted, block, course

    return run


def codes(block: dict[str, Any]) -> list[str]:
    return [one["code"] for one in block["statements"]]
