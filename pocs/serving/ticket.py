"""One live request as its web process follows it: messages in order, and looks into every silence."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from pocs.serving.errors import ApiError, unavailable
from pocs.serving.wire import Entry, Message

#: how often a waiting client is told why, and looked at whether anybody still serves it
LOOK_EVERY_S = 2.0


@dataclass(frozen=True)
class Waiting:
    """Why nothing comes: so many stand before the request, and perhaps a run has the engine.

    Once an engine worker has it: `loading` its model, or at work on the prompt or the answer.
    """

    depth: int = 0
    run_id: int | None = None
    taken: bool = False
    loading: bool = False


class BrokerLost(Exception):
    """The connection that answers come over has broken."""


class Ticket:
    """Messages are put in by the line, in the order of their arrival, and read by `events`."""

    def __init__(
        self,
        entry: Entry,
        order: dict[str, Any],
        look_after: Callable[["Ticket"], Awaitable[Waiting]],
    ) -> None:
        self.entry, self.order = entry, order
        self.depth = 0  # requests in front of it when it came
        self.place_key = ""  # where its token's open requests are counted
        self.desk: str | None = None
        self.over = False  # the desk has nothing left to do for it
        self.missed = 0  # looks that found it nowhere
        self.begun = time.monotonic()
        self.taken_at: float | None = None
        self._look_after = look_after
        self._messages: asyncio.Queue[Message | BrokerLost] = asyncio.Queue()
        self._expected = 1

    def put(self, message: Message | BrokerLost) -> None:
        self._messages.put_nowait(message)

    def taken_by(self, desk: str) -> None:
        self.desk, self.taken_at = desk, time.monotonic()

    async def events(self, first_look_s: float = LOOK_EVERY_S) -> AsyncIterator[Message | Waiting]:
        """What happens until the answer ends; every other end raises ApiError."""
        look_s = first_look_s
        while not self.over:
            try:
                async with asyncio.timeout(look_s):
                    message = await self._messages.get()
            except TimeoutError:
                look_s = LOOK_EVERY_S
                yield await self._look_after(self)
                continue
            if isinstance(message, BrokerLost):
                raise unavailable("The connection to the engine worker was lost.", code="broker_lost")
            if message[2] != self._expected:
                raise unavailable("A part of the answer was lost on its way.", code="broker_lost")
            self._expected += 1
            self.over = message[0] in ("end", "failed")
            if message[0] == "failed":
                raise ApiError.from_wire(message[3])
            yield message
