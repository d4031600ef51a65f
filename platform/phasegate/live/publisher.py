"""The publishing side: one loop in one thread per process, so that all events share a connection."""

import asyncio
import logging
import os
import threading
from collections import deque
from typing import Any

from channels.layers import get_channel_layer

logger = logging.getLogger(__name__)

#: events waiting for a broker that does not answer; older ones are replayed from the database
BACKLOG_MAX = 5_000


def group_name(stream: str) -> str:
    """Name of the channel layer group of a stream (`run:12` → `live.run.12`)."""
    return "live." + stream.replace(":", ".")


class LoopPublisher:
    """Hands events to the channel layer in order, without ever blocking or failing the caller.

    `async_to_sync(group_send)` would open a connection for each event. Delivery is best effort:
    events are numbered and stored, and a page that misses one fetches it by number.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pid = 0
        self._loop: asyncio.AbstractEventLoop
        self._backlog: deque[tuple[str, dict[str, Any]]]
        self._wake: asyncio.Event

    def __call__(self, stream: str, event: dict[str, Any]) -> None:
        try:
            self._ensure_thread()
            self._backlog.append((stream, event))
            self._loop.call_soon_threadsafe(self._wake.set)
        except Exception:  # the change is committed: a live page is never a reason to fail it
            logger.exception("event %s of %s was not handed to the publisher", event.get("number"), stream)

    def _ensure_thread(self) -> None:
        """Start the loop's thread in this process, once (again in a forked child)."""
        with self._lock:
            if self._pid == os.getpid():
                return
            self._loop = asyncio.new_event_loop()
            self._backlog = deque(maxlen=BACKLOG_MAX)
            self._wake = asyncio.Event()
            self._pid = os.getpid()
            threading.Thread(target=self._run, name="live-publisher", daemon=True).start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._publish_forever())

    async def _publish_forever(self) -> None:
        layer = get_channel_layer()
        assert layer is not None, "a profile that publishes has a channel layer"
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._backlog:
                stream, event = self._backlog.popleft()
                try:
                    await layer.group_send(group_name(stream), {"type": "live.event", "event": event})
                except Exception as error:
                    logger.warning("event %s of %s was not published: %s", event["number"], stream, error)
