"""A web process's line to the engine workers: requests go out, answers come in, over one subscription."""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

from redis.exceptions import RedisError

from pocs.serving import broker, wire
from pocs.serving.ending import end_all
from pocs.serving.errors import ApiError, unavailable
from pocs.serving.limits import Limits
from pocs.serving.pace import retry_after_answer_s, retry_after_line_s, retry_after_minute_s
from pocs.serving.ticket import BrokerLost, Ticket, Waiting
from pocs.serving.wire import Entry, Message

logger = logging.getLogger(__name__)

#: what a request may wait for an engine
LONGEST_WAIT_S = 900.0
#: a web process that was killed keeps its tokens' places for so long; a living one renews them
PLACE_EXPIRE_S, PLACE_RENEW_S = 60, 20.0
#: the state of the desks is asked for at most so often
STATES_FRESH_S = 0.5

#: one step, so that no two processes pass a limit together: a word, and the depth of the queue
_ENTER = """
local now = tonumber(redis.call('TIME')[1])
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
local depth = redis.call('LLEN', KEYS[1])
if depth >= tonumber(ARGV[3]) then return {'full', depth} end
if redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[4]) then return {'token_open', depth} end
if tonumber(redis.call('GET', KEYS[3]) or '0') >= tonumber(ARGV[5]) then return {'token_rate', depth} end
redis.call('INCR', KEYS[3])
redis.call('EXPIRE', KEYS[3], 120)
redis.call('ZADD', KEYS[2], now + tonumber(ARGV[6]), ARGV[2])
redis.call('EXPIRE', KEYS[2], 3600)
redis.call('RPUSH', KEYS[1], ARGV[1])
redis.call('PUBLISH', KEYS[4], '')
return {'entered', depth}
"""


class Line:
    """One a process and event loop. Whatever breaks ends as an ApiError of the requests concerned."""

    def __init__(self, url: str) -> None:
        self.name = uuid4().hex
        self._url = url
        self._client = broker.client(url)
        self._enter = self._client.register_script(_ENTER)
        self._tickets: dict[str, Ticket] = {}
        self._listening: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        self._states: dict[str, dict[str, Any]] = {}
        self._states_at = float("-inf")

    @asynccontextmanager
    async def place(
        self, order: dict[str, Any], *, target_id: int, engine: str, asker: str, limits: Limits
    ) -> AsyncIterator[Ticket]:
        """Put a request into the queue and follow it; `engine` is the mark of the engine that it needs.

        `asker` names the token or person whose limits count.

        Leaving the block early takes the request out of the queue, or out of the engine's batch within a
        step. Raises ApiError: 429 above a limit, 503 where nobody serves.
        """
        entry = Entry(uuid4().hex, target_id, engine, self.name, time.time())
        ticket = Ticket(entry, order, self._look_after)
        places = wire.place_keys(asker, int(time.time() // 60))
        ticket.place_key = places[0]
        try:
            await self._listen()
            if not await self.desks():
                raise unavailable("No engine worker is running.", code="no_engine_worker")
            self._tickets[entry.id] = ticket
            await self._push(ticket, places, limits)
            yield ticket
        except RedisError as error:
            logger.warning("the broker does not take a live request: %s", error)
            raise unavailable("The broker does not answer.", code="broker_lost") from error
        finally:
            if self._tickets.pop(entry.id, None) is not None:
                await asyncio.shield(self._forget(ticket))

    async def desks(self) -> dict[str, dict[str, Any]]:
        """The states of the living desks, by name, as of just now."""
        if time.monotonic() - self._states_at > STATES_FRESH_S:
            states = await broker.desk_states(self._client)
            self._states = {name: wire.state_unpacked(state) for name, state in states.items()}
            self._states_at = time.monotonic()
        return self._states

    async def _known(self) -> list[dict[str, Any]]:
        return list((await self.desks()).values())

    async def close(self) -> None:
        if self._listening is not None:
            await end_all([self._listening])
        await self._client.aclose()

    # -- the queue ------------------------------------------------------------------------------------

    async def _push(self, ticket: Ticket, places: tuple[str, str], limits: Limits) -> None:
        entry = ticket.entry
        bounds = [limits.queue, limits.token_open, limits.token_per_minute, PLACE_EXPIRE_S]
        said, depth = await self._enter(
            keys=[wire.QUEUE, *places, wire.BELL], args=[entry.packed(), entry.id, *bounds]
        )
        ticket.depth = depth
        match said:
            case b"full":
                text = f"{depth} requests wait for the engine already."
                raise _too_many(
                    text, "queue_full", retry_after_line_s(depth, await self._known(), limits.open)
                )
            case b"token_open":
                text = f"This token has {limits.token_open} requests open already."
                raise _too_many(text, "rate_limit_exceeded", retry_after_answer_s(await self._known()))
            case b"token_rate":
                text = f"This token began {limits.token_per_minute} requests within this minute."
                raise _too_many(text, "rate_limit_exceeded", retry_after_minute_s(time.time()))

    async def _forget(self, ticket: Ticket) -> None:
        """The request is over here: wherever it still stands, it is taken out."""
        try:
            if not ticket.over:
                await self._client.lrem(wire.QUEUE, 1, ticket.entry.packed())  # type: ignore[arg-type]
                if ticket.desk is not None:
                    await self._tell(ticket.desk, ["leave", ticket.entry.id])
            await self._client.zrem(ticket.place_key, ticket.entry.id)
        except RedisError as error:
            logger.warning("a live request that is over could not be taken out: %s", error)

    async def _look_after(self, ticket: Ticket) -> Waiting:
        """After a silence: is anybody still at work on this request? Raises ApiError if not."""
        try:
            desks = await self.desks()
            depth = await self._client.lpos(wire.QUEUE, ticket.entry.packed())  # type: ignore[arg-type]
        except RedisError as error:
            raise unavailable("The broker does not answer.", code="broker_lost") from error
        if ticket.desk is None and not desks:
            raise unavailable("No engine worker is running.", code="no_engine_worker")
        if ticket.desk in desks or (ticket.desk is None and depth is not None):
            ticket.missed = 0
        else:  # late with its sign of life, or just about to say that it has it; the next look decides
            ticket.missed += 1
            if ticket.missed > 1:
                text = "The engine worker ended before the answer did."
                raise unavailable(text, code="engine_worker_lost")
        if ticket.desk is not None:
            return Waiting(taken=True, loading=desks.get(ticket.desk, {}).get("loading", False))
        if ticket.entry.waited_s > LONGEST_WAIT_S:
            text = f"The request waited {LONGEST_WAIT_S:.0f} s for an engine."
            raise unavailable(text, code="waited_too_long")
        holders = [state["holder"] for state in desks.values()]
        run_id = holders[0]["run_id"] if all(holders) else None
        return Waiting(depth=depth if isinstance(depth, int) else 0, run_id=run_id)

    # -- answers ----------------------------------------------------------------------------------------

    async def _listen(self) -> None:
        """Have a subscription: a new one after the last has broken."""
        async with self._starting:
            if self._listening is not None and not self._listening.done():
                return
            subscription = broker.Subscription(self._url)
            await subscription.open(wire.web_channel(self.name))
            self._listening = asyncio.create_task(self._read(subscription))

    async def _read(self, subscription: broker.Subscription) -> None:
        renewed = time.monotonic()
        try:
            while True:
                received = await subscription.next(PLACE_RENEW_S)
                for message in wire.unpacked(received[1]) if received else ():
                    await self._take_in(message)
                if time.monotonic() - renewed > PLACE_RENEW_S:
                    renewed = time.monotonic()
                    await self._renew_places()
        except (RedisError, OSError) as error:
            logger.warning("the subscription to answers broke: %s", error)
        finally:
            for ticket in self._tickets.values():
                ticket.put(BrokerLost())
            with contextlib.suppress(RedisError, OSError):
                await subscription.close()

    async def _take_in(self, message: Message) -> None:
        kind, request_id = message[0], message[1]
        ticket = self._tickets.get(request_id)
        if kind == "taken":
            desk = message[3]
            if ticket is None:
                await self._tell(desk, ["leave", request_id])
                return
            ticket.taken_by(desk)
            await self._tell(desk, ["order", request_id, ticket.order])
        if ticket is not None:
            ticket.put(message)

    async def _tell(self, desk: str, message: Message) -> None:
        await self._client.publish(wire.desk_channel(desk), wire.packed([message]))

    async def _renew_places(self) -> None:
        until = int(time.time()) + PLACE_EXPIRE_S
        for ticket in list(self._tickets.values()):
            await self._client.zadd(ticket.place_key, {ticket.entry.id: until}, xx=True)


def _too_many(message: str, code: str, retry_after_s: int) -> ApiError:
    return ApiError(429, message, type="rate_limit_error", code=code, retry_after_s=retry_after_s)
