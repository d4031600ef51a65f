"""The waiting requests in the broker: which one is next, and which ones nobody waits for any more."""

import msgpack
import redis.asyncio

from pocs.serving import wire
from pocs.serving.wire import Entry

#: so long the loaded model goes first while requests for it keep coming; then the oldest request decides
TURN_S = 10.0


async def next_entry(client: redis.asyncio.Redis, *, loaded: str, idle: bool) -> Entry | None:
    """Take one entry out of the queue: the oldest that the loaded engine can serve now, if any.

    Only an idle engine is given up for another model. A request for another model that has waited for
    a turn stops the taking in, so that the engine becomes idle. Two desks never take the same entry.
    """
    while True:
        found = await client.lrange(wire.QUEUE, 0, -1)
        entries = [entry for data in found if (entry := _read(data)) is not None]
        chosen = choose(entries, loaded=loaded, idle=idle)
        if chosen is None:
            return None
        if await client.lrem(wire.QUEUE, 1, chosen.packed()):  # type: ignore[arg-type]
            return chosen


def choose(entries: list[Entry], *, loaded: str, idle: bool) -> Entry | None:
    """The entry to take, oldest first as they stand."""
    if not entries:
        return None
    oldest = entries[0]
    if oldest.engine == loaded or (idle and (not loaded or oldest.waited_s > TURN_S)):
        return oldest
    if oldest.waited_s > TURN_S:
        return None
    same = next((entry for entry in entries if entry.engine == loaded), None)
    return same or (oldest if idle else None)


async def prune(client: redis.asyncio.Redis) -> None:
    """Take out what nobody waits for: of web processes that are gone, or of another form than ours."""
    found = {data: _read(data) for data in await client.lrange(wire.QUEUE, 0, -1)}
    webs = sorted({entry.web for entry in found.values() if entry is not None})
    channels = [wire.web_channel(web) for web in webs]
    listening = await client.pubsub_numsub(*channels) if channels else []
    there = {web for web, (_, count) in zip(webs, listening, strict=True) if count}
    for data, entry in found.items():
        if entry is None or entry.web not in there:
            await client.lrem(wire.QUEUE, 1, data)  # type: ignore[arg-type]


def _read(data: bytes | str) -> Entry | None:
    try:
        return Entry.unpacked(wire.as_bytes(data))
    except (TypeError, ValueError, msgpack.UnpackException):
        return None
