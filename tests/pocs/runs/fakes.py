"""A target in memory, whose requests stamp themselves like the engine's and take 2 ms; a CI result."""

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

from inference.errors import TargetUnavailable
from inference.records import Trace
from inference.requests import GenerationRequest
from inference.targets.base import TargetInfo

STEP_NS = 100_000


class FakeTarget:
    """Queue 0.1 ms, prefill 0.4 ms, 0.1 ms a token by its own stamps; `before` runs ahead of each request."""

    def __init__(self) -> None:
        self.requests: list[GenerationRequest] = []
        self.resets = 0
        self.opened = 0
        self.process_id: int | None = 4242
        self.unavailable: str | None = None
        self.before: Callable[[GenerationRequest], None] | None = None
        self.hold: Callable[[GenerationRequest], bool] = lambda request: False
        self.held = threading.Event()  # some request is being held

    async def open(self) -> TargetInfo:
        if self.unavailable:
            raise TargetUnavailable(self.unavailable)
        self.opened += 1
        return TargetInfo("engine", "fake", {"model_digest": "d" * 64, "engine": {"dtype": "float32"}}, 2048)

    async def reset_prefix_cache(self) -> None:
        self.resets += 1

    async def run(self, request: GenerationRequest, trace: Trace) -> None:
        self.requests.append(request)
        trace.output_tokens_source = "engine"
        trace.sent_ns = time.monotonic_ns()
        if self.before is not None:
            self.before(request)
        if self.process_id is None:
            trace.error, trace.ended = "The engine process was ended by SIGKILL.", "cut"
            return
        trace.queued_ns = trace.sent_ns
        if self.hold(request):
            self.held.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                trace.ended, trace.aborted_ns = "client", time.monotonic_ns()
                raise
        if request.cancel is not None:
            trace.ended, trace.aborted_ns = "client", trace.queued_ns + STEP_NS
            trace.freed_ns = trace.aborted_ns
            return
        self._answer(request, trace)
        assert trace.freed_ns is not None
        await asyncio.sleep(max(0, trace.freed_ns - time.monotonic_ns()) / 1e9)

    def _answer(self, request: GenerationRequest, trace: Trace) -> None:
        assert trace.queued_ns is not None
        admitted = trace.queued_ns + STEP_NS
        trace.admitted_ns.append(admitted)
        trace.input_tokens, trace.cached_tokens = 64, 16
        first = admitted + 4 * STEP_NS
        trace.chunks.append((admitted, first, 48))
        tokens = request.max_tokens
        trace.token_ns = [first + i * STEP_NS for i in range(tokens)]
        trace.decode_steps = [(ns - STEP_NS, ns) for ns in trace.token_ns[1:]]
        trace.token_ids, trace.output_tokens = list(range(tokens)), tokens
        trace.text, trace.first_visible_ns, trace.first_answer_ns = "answer\x00", first, first
        trace.finish_reason, trace.ended = "length", "orderly"
        trace.finished_ns = trace.token_ns[-1]
        trace.freed_ns = trace.finished_ns + STEP_NS

    async def telemetry(self) -> dict[str, Any]:
        return {
            "weights_bytes": 10,
            "kv_pool_bytes": 100,
            "kv_used_bytes": 40,
            "running": 1,
            "waiting": 0,
        }

    def tokenize(self, text: str) -> list[int] | None:
        return None

    async def close(self) -> None:
        self.process_id = None


def poc_run(**fields: Any) -> dict[str, Any]:
    """A good `poc-run/1` with every metric of the POC six; `fields` replace top-level members."""

    def spread(middle: float) -> dict[str, Any]:
        return {
            "unit": "ms",
            "n": 40,
            "mean": middle * 1.1,
            "p50": middle,
            "p90": middle * 1.5,
            "p95": middle * 1.8,
            "p99": middle * 2,
            "max": middle * 3,
        }

    return {
        "schema": "poc-run/1",
        "scenario": "short-request@1",
        "provider": "gitlab",
        "run": "8812",
        "attempt": 1,
        "commit": "0123abcd" * 5,
        "tenant": "acme",
        "application": "chat",
        "environment": {"host": "bench-1", "accelerator": "none"},
        "configuration": {"model": "small", "dtype": "float32"},
        "load": {"model": "closed", "concurrency": 4, "requests": 40, "window_s": 20.0},
        "outcomes": {"success": 39, "timeout": 1},
        "metrics": {
            "ttft": spread(120.0),
            "tpot": spread(20.0),
            "itl": spread(20.0),
            "e2e": spread(900.0),
            "queue_wait": spread(30.0),
            "prefill": spread(85.0),
            "decode": spread(780.0),
            "output_throughput": {"unit": "tokens/s", "value": 130.5},
            "memory_peak": {"unit": "GiB", "value": 1.5},
        },
        **fields,
    }
