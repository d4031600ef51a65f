"""The live desk of an engine worker: takes waiting requests into the running batch while no run has it.

One thread with one event loop, started and ended with the worker. It owns the live side of the seat: it
shares the engine while it has requests, and lets go when a run wants it, after a bounded patience. When the
broker is lost, its requests are aborted (nobody could be told of them) and it comes back under a new name,
so that web processes which follow the old one notice.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import redis.asyncio
from redis.exceptions import RedisError

from pocs.runs.seat import EngineSeat
from pocs.serving import broker, wire
from pocs.serving.answering import Answering
from pocs.serving.ending import end_all
from pocs.serving.engines import Engines
from pocs.serving.errors import ApiError, unavailable
from pocs.serving.limits import Limits
from pocs.serving.pace import Pace
from pocs.serving.queue import next_entry, prune
from pocs.serving.wire import Entry, Message

logger = logging.getLogger(__name__)

LOOK_EVERY_S = 0.5  # into the queue, should a ring of the bell have been lost
PRUNE_EVERY_S = 5.0
AGAIN_AFTER_S = 0.5  # after the broker was lost
END_WITHIN_S = 4.0


class Desk:
    """`start` and `end` once each, from any thread."""

    def __init__(self, *, url: str, seat: EngineSeat, limits: Limits, hostname: str = "local") -> None:
        self._url, self._seat, self._limits, self._hostname = url, seat, limits, hostname
        self.name = ""
        self._engines = Engines(seat)
        self._mark = ""  # of the engine that the open requests use
        self._open: dict[str, Answering] = {}
        self._pace = Pace()
        self._outbox: dict[str, list[Message]] = {}
        self._wanted_since: float | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="live-desk", daemon=True)

    def start(self) -> None:
        self._thread.start()
        self._ready.wait()

    def end(self) -> None:
        """Fail what is open, with the reason, and stop."""
        if self._loop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._ending.set)
            self._thread.join(END_WITHIN_S)

    # -- the thread -----------------------------------------------------------------------------------

    def _run(self) -> None:
        asyncio.run(self._serve_on())

    async def _serve_on(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._ending, self._wake, self._outgoing = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._ready.set()
        loop = self._loop

        def wake() -> None:
            loop.call_soon_threadsafe(self._wake.set)

        unlisten = self._seat.listen(wake)
        try:
            while not self._ending.is_set():
                try:
                    await self._serve()
                except (RedisError, OSError) as error:
                    logger.warning("the broker was lost: %s", error)
                except Exception:
                    logger.exception("the live desk fell over and starts again")
                await self._abort_all(unavailable("The engine worker lost the broker.", code="broker_lost"))
                await self._engines.settle()
                self._seat.unshare()
                if not self._ending.is_set():
                    await asyncio.sleep(AGAIN_AFTER_S)
        finally:
            unlisten()

    async def _serve(self) -> None:
        """Until the worker ends, or something breaks."""
        self.name = f"{self._hostname}/{uuid4().hex[:8]}"
        self._outbox.clear()
        client = broker.client(self._url)
        subscription = broker.Subscription(self._url)
        try:
            await subscription.open(wire.BELL, wire.desk_channel(self.name))
            ending = asyncio.create_task(self._ending.wait())
            dispatching = asyncio.create_task(self._dispatch(client))
            parts = [self._listen(subscription), self._beat(client), self._send_out(client)]
            others = [asyncio.create_task(part) for part in [*parts, self._engines.watch()]]
            try:
                done, _ = await asyncio.wait(
                    [ending, dispatching, *others], return_when=asyncio.FIRST_COMPLETED
                )
                await end_all([dispatching])  # nothing more is taken in
                if ending in done:
                    await self._abort_all(unavailable("The engine worker ends.", code="engine_worker_lost"))
                    await self._send_now(client)
            finally:
                await end_all([ending, dispatching, *others])
            for task in done - {ending}:
                task.result()  # raises what broke
            await client.delete(wire.state_key(self.name))
        finally:
            await subscription.close()
            await client.aclose()

    async def _abort_all(self, reason: ApiError) -> None:
        """End every open request; their blocks are free when this returns."""
        for answering in self._open.values():
            answering.leave(reason)
        tasks = [answering.task for answering in self._open.values() if answering.task is not None]
        await asyncio.gather(*tasks, return_exceptions=True)

    # -- taking requests in -----------------------------------------------------------------------------

    async def _dispatch(self, client: redis.asyncio.Redis) -> None:
        pruned = time.monotonic()
        while True:
            self._wake.clear()
            if self._seat.share():
                self._wanted_since = None
                await self._take_in(client)
            elif self._open:
                self._urge()
            if not self._open and not self._engines.loading:
                self._seat.unshare()
            if time.monotonic() - pruned > PRUNE_EVERY_S:
                pruned = time.monotonic()
                await prune(client)
            try:
                async with asyncio.timeout(LOOK_EVERY_S):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def _take_in(self, client: redis.asyncio.Redis) -> None:
        """Fill the batch from the queue; another model is loaded only when nothing is running."""
        while len(self._open) < self._limits.open:
            loaded = self._mark if self._open else self._engines.mark
            entry = await next_entry(client, loaded=loaded, idle=not self._open)
            if entry is None:
                return
            self._begin(entry)

    def _begin(self, entry: Entry) -> None:
        def send(message: Message) -> None:
            self._outbox.setdefault(entry.web, []).append(message)
            self._outgoing.set()

        answering = Answering(
            entry, self._engines, send, default_tokens=self._limits.default_tokens, pace=self._pace
        )
        self._open[entry.id] = answering
        self._mark = entry.engine
        answering.begin(self.name, self._ended(entry.id))

    def _ended(self, request_id: str) -> Callable[[object], None]:
        def forget(task: object) -> None:
            self._open.pop(request_id, None)
            self._wake.set()

        return forget

    def _urge(self) -> None:
        """A run wants the engine: open requests may end, for a while."""
        now = time.monotonic()
        if self._wanted_since is None:
            self._wanted_since = now
        elif now - self._wanted_since > self._limits.patience_s:
            for answering in list(self._open.values()):
                answering.leave(
                    unavailable(
                        "A measured run has taken the engine before the answer was complete.",
                        code="engine_taken_by_run",
                        retry_after_s=30,
                    )
                )

    # -- messages -----------------------------------------------------------------------------------------

    async def _listen(self, subscription: broker.Subscription) -> None:
        while True:
            received = await subscription.next(30.0)
            if received is None:
                continue
            channel, data = received
            if channel == wire.BELL:
                self._wake.set()
                continue
            for kind, request_id, *rest in wire.unpacked(data):
                answering = self._open.get(request_id)
                if answering is not None and kind == "order":
                    answering.take_order(*rest)
                elif answering is not None:
                    answering.leave(None)

    async def _send_out(self, client: redis.asyncio.Redis) -> None:
        """Everything that one read of the engine brought goes out as one message to each web process."""
        while True:
            await self._outgoing.wait()
            self._outgoing.clear()
            await self._send_now(client)

    async def _send_now(self, client: redis.asyncio.Redis) -> None:
        outbox, self._outbox = self._outbox, {}
        for web, messages in outbox.items():
            if not await client.publish(wire.web_channel(web), wire.packed(messages)):
                self._web_is_gone(web)

    def _web_is_gone(self, web: str) -> None:
        for answering in list(self._open.values()):
            if answering.entry.web == web:
                answering.leave(None)

    # -- signs of life ----------------------------------------------------------------------------------

    async def _beat(self, client: redis.asyncio.Redis) -> None:
        while True:
            await client.set(
                wire.state_key(self.name), wire.state_packed(self._state()), ex=wire.STATE_EXPIRE_S
            )
            await client.sadd(wire.DESKS, self.name)
            await asyncio.sleep(wire.STATE_RENEW_S)

    def _state(self) -> dict[str, Any]:
        holder = self._seat.wanted_by
        return {
            "hostname": self._hostname,
            "holder": holder and {"run_id": holder.run_id, "since": holder.since.isoformat()},
            "open": len(self._open),
            "service_s": self._pace.service_s,
            "loading": self._engines.loading,
            "loaded": self._engines.loaded(),
            "resources": self._engines.resources,
        }
