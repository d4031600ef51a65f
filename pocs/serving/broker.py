"""Connections to the broker for live inference, and how they fail: soon, and never silently mended."""

from collections.abc import Sequence

import redis
import redis.asyncio
from redis.asyncio.retry import Retry
from redis.backoff import ConstantBackoff, NoBackoff

from pocs.serving import wire

TIMEOUT_S = 5


def client(url: str) -> redis.asyncio.Redis:
    """For commands: one more try after a broken connection, then the error."""
    return redis.asyncio.Redis.from_url(
        url, socket_timeout=TIMEOUT_S, socket_connect_timeout=2, retry=Retry(ConstantBackoff(0.1), 1)
    )


class Subscription:
    """What is published on some channels; a broken connection raises, since messages may have been lost.

    The library's own reconnection would hide that.
    """

    def __init__(self, url: str) -> None:
        # no time-out on reading: answers may be long in coming; the health check finds a dead connection
        self._client = redis.asyncio.Redis.from_url(
            url, socket_connect_timeout=2, health_check_interval=10, retry=Retry(NoBackoff(), 0)
        )
        self._pubsub = self._client.pubsub(ignore_subscribe_messages=True)

    async def open(self, *channels: str) -> None:
        """Subscribe, and wait until the broker has confirmed it: nothing sent from now on is missed."""
        await self._pubsub.subscribe(*channels)
        for _ in channels:
            await self._pubsub.get_message(timeout=TIMEOUT_S)
        if not self._pubsub.subscribed:
            raise redis.ConnectionError("the broker does not confirm the subscription")

    async def next(self, timeout_s: float) -> tuple[str, bytes] | None:
        """Channel and data of the next message; None after a silent `timeout_s`."""
        message = await self._pubsub.get_message(timeout=timeout_s)
        return (message["channel"].decode(), message["data"]) if message else None

    async def close(self) -> None:
        await self._pubsub.aclose()
        await self._client.aclose()


async def desk_states(connection: redis.asyncio.Redis) -> dict[str, bytes]:
    """The packed state of each living desk, by name."""
    names = sorted(wire.as_bytes(name) for name in await connection.smembers(wire.DESKS))
    if not names:
        return {}
    states = await connection.mget([wire.state_key(name.decode()) for name in names])
    gone = [name for name, state in zip(names, states, strict=True) if state is None]
    if gone:
        await connection.srem(wire.DESKS, *gone)
    return _living(names, states)


def desk_states_now(url: str) -> tuple[dict[str, bytes], int]:
    """The same for pages, with the number of waiting requests; raises redis.RedisError."""
    with redis.Redis.from_url(url, socket_timeout=2, socket_connect_timeout=2) as connection:
        names = sorted(wire.as_bytes(name) for name in connection.smembers(wire.DESKS))
        depth = connection.llen(wire.QUEUE)
        states = connection.mget([wire.state_key(name.decode()) for name in names]) if names else []
        return _living(names, states), depth


def _living(names: list[bytes], states: Sequence[bytes | str | None]) -> dict[str, bytes]:
    pairs = zip(names, states, strict=True)
    return {name.decode(): wire.as_bytes(state) for name, state in pairs if state is not None}
