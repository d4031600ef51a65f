"""The following side: a WebSocket that replays a stream from the database and then follows it."""

import asyncio
import contextlib
import json
import logging
import time
from typing import Any
from urllib.parse import parse_qs

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer

from phasegate.live.publisher import group_name
from pocs.common import events

logger = logging.getLogger(__name__)

#: close codes the page can tell apart
BAD_REQUEST, NOT_SIGNED_IN, NOT_PERMITTED, UNKNOWN = 4400, 4401, 4403, 4404
#: with nothing heard for this long, the database is asked: the broker may have lost the last event
QUIET_S = 5.0
#: a right that was taken away ends the following after at most this long
RECHECK_S = 30.0
REPLAY_ROWS = 1_000


class StreamConsumer(AsyncWebsocketConsumer):
    """Follows `/ws/streams/<stream>/?after=N`: events N+1, N+2, … each once and in order."""

    stream: str
    sent = 0

    async def connect(self) -> None:
        await self.accept()
        self._watch: asyncio.Task[None] | None = None
        self._sending = asyncio.Lock()
        self._subscribed = False
        user = self.scope.get("user")
        if user is None or not user.is_authenticated:
            await self.close(NOT_SIGNED_IN)
            return
        self.stream = self.scope["url_route"]["kwargs"]["stream"]
        after = parse_qs(self.scope["query_string"].decode("latin-1")).get("after", ["0"])[0]
        if not (after.isascii() and after.isdigit() and len(after) < 16):
            await self.close(BAD_REQUEST)
            return
        self.sent = int(after)
        self._user_id: int = user.pk
        if not await self._permitted():
            await self.close(NOT_PERMITTED)
            return
        # subscribed before the replay: what happens in between comes twice and is sent once
        await self.channel_layer.group_add(group_name(self.stream), self.channel_name)
        self._subscribed = True
        async with self._sending:
            await self._catch_up()
        self._heard = time.monotonic()
        self._watch = asyncio.create_task(self._watch_over())

    async def disconnect(self, code: int) -> None:
        if self._watch is not None:
            self._watch.cancel()
        if self._subscribed:
            await self.channel_layer.group_discard(group_name(self.stream), self.channel_name)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Nothing is expected from the page; whatever it sends is ignored."""

    async def websocket_receive(self, message: dict[str, Any]) -> None:
        """Frames of any form, broken ones included, are dropped unread."""

    async def live_event(self, message: dict[str, Any]) -> None:
        """One event from the channel layer: the next is sent, a known one dropped, a gap filled."""
        event = message["event"]
        async with self._sending:
            self._heard = time.monotonic()
            if event["number"] == self.sent + 1:
                await self._send_event(event)
            elif event["number"] > self.sent:
                await self._catch_up()

    async def _catch_up(self) -> None:
        """Send everything the database holds beyond `sent`."""
        while True:
            rows = await database_sync_to_async(events.events_after)(self.stream, self.sent, REPLAY_ROWS)
            for event in rows:
                await self._send_event(event)
            if len(rows) < REPLAY_ROWS:
                return

    async def _send_event(self, event: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):  # the page has gone; its disconnect is on the way
            await self.send(text_data=json.dumps(event, ensure_ascii=False, separators=(",", ":")))
        self.sent = event["number"]

    async def _permitted(self) -> bool:
        return await database_sync_to_async(events.may_follow)(self._user_id, self.stream)

    async def _watch_over(self) -> None:
        """Ask the database when the stream is quiet, and from time to time whether one still may."""
        checked = time.monotonic()
        try:
            while True:
                await asyncio.sleep(QUIET_S)
                if time.monotonic() - checked >= RECHECK_S:
                    checked = time.monotonic()
                    if not await self._permitted():
                        await self.close(NOT_PERMITTED)
                        return
                if time.monotonic() - self._heard >= QUIET_S:
                    async with self._sending:
                        await self._catch_up()
        except Exception:
            logger.exception("following %s ended", self.stream)
            with contextlib.suppress(OSError):
                await self.close(1011)


class UnknownConsumer(AsyncWebsocketConsumer):
    """Closes a socket of a path that is no stream."""

    async def connect(self) -> None:
        await self.accept()
        await self.close(UNKNOWN)
