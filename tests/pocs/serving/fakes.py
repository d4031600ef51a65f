"""An engine in memory that answers word by word, and a seat that has it; both tell what is open."""

import asyncio
import threading
import time
from typing import Any

from inference.errors import TargetUnavailable
from inference.records import Trace
from inference.requests import GenerationRequest
from inference.targets.base import TargetInfo
from pocs.runs.models import Target
from pocs.runs.seat import EngineSeat, Served, key_of

PROMPT_TOKENS, CACHED_TOKENS = 7, 4
ANSWER = ("Hello", ", ", "你好", "，世界", " 👩‍🚀", "!")
STEP_NS = 1_000_000


class FakeEngine:
    """Answers `ANSWER`, one piece a token; a request for more tokens goes on until it is released or left."""

    def __init__(self) -> None:
        self.process_id: int | None = 4242
        self.serves: Served | None = None
        self.requests: list[GenerationRequest] = []
        self.open_ids: set[str] = set()
        self.unavailable: str | None = None
        self.refuse: str | None = None
        self.opened = 0
        self.hold = threading.Event()  # set: requests stop after their first piece until it is cleared
        self.hold_load = threading.Event()  # set: `open` waits until it is cleared
        self.loading = threading.Event()
        self.begun = threading.Semaphore(0)  # one for each request whose first piece is out
        self._died: str | None = None

    async def open(self) -> TargetInfo:
        if self.unavailable is not None:
            raise TargetUnavailable(self.unavailable)
        self.opened += 1
        self.loading.set()
        while self.hold_load.is_set():  # noqa: ASYNC110 set by other threads
            await asyncio.sleep(0.005)
        configuration = {"model_digest": "d" * 64, "engine": {"kv_blocks": 8, "block_tokens": 32}}
        return TargetInfo("engine", "fake", configuration, 200)

    async def prompt_tokens(self, request: GenerationRequest) -> int:
        return PROMPT_TOKENS

    async def telemetry(self) -> dict[str, Any]:
        return {"weights_bytes": 2**20, "kv_pool_bytes": 2**21, "kv_used_bytes": 0, "rss_bytes": 2**22}

    def die(self, reason: str) -> None:
        self.process_id, self._died = None, reason

    async def run(self, request: GenerationRequest, trace: Trace, *, on_read: Any = None) -> None:
        self.requests.append(request)
        self.open_ids.add(request.id)
        trace.sent_ns = now = time.monotonic_ns()
        try:
            if self.refuse is not None:
                trace.error, trace.ended, trace.failed_ns = self.refuse, "refused", now
                return
            trace.queued_ns, trace.input_tokens, trace.cached_tokens = now, PROMPT_TOKENS, CACHED_TOKENS
            trace.token_ids, trace.output_tokens = [], 0
            on_read()
            trace.admitted_ns.append(now + STEP_NS)
            trace.chunks.append((now + STEP_NS, now + 3 * STEP_NS, PROMPT_TOKENS - CACHED_TOKENS))
            for index, piece in enumerate(ANSWER[: request.max_tokens]):
                trace.token_ns.append(now + (3 + index) * STEP_NS)
                trace.token_ids.append(index)
                trace.output_tokens = index + 1
                trace.text += piece
                if request.logprobs is not None:
                    others = [(90 + n, -2.0 - n, b"x") for n in range(request.logprobs)]
                    trace.logprobs.append([(index, -0.5, piece.encode()), *others])
                trace.reads.append((time.monotonic_ns(), 1))
                on_read()
                if index == 0:
                    self.begun.release()
                    while self.hold.is_set() and self._died is None:  # noqa: ASYNC110 set by other threads
                        await asyncio.sleep(0.005)
                if self._died is not None:
                    trace.error, trace.ended, trace.failed_ns = self._died, "cut", time.monotonic_ns()
                    return
                await asyncio.sleep(0)
            trace.finished_ns = trace.freed_ns = time.monotonic_ns()
            trace.finish_reason = "stop" if request.max_tokens >= len(ANSWER) else "length"
            trace.ended = "orderly"
        except asyncio.CancelledError:
            trace.ended, trace.aborted_ns = "client", time.monotonic_ns()
            raise
        finally:
            self.open_ids.discard(request.id)


class FakeSeat(EngineSeat):
    """The real rules of who has the engine, over an engine in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.fake = FakeEngine()
        self.loads: list[int] = []

    @property
    def engine(self) -> Any:
        return self.fake if self.loads else None

    def engine_for(self, target: Target) -> Any:
        served = Served(target.pk, key_of(target))
        if self.fake.serves != served:
            self.loads.append(target.pk)
            self.fake.serves = served
        return self.fake
