"""What web processes and engine workers say to each other through the broker.

A web process puts an *entry* into the queue: who asks for which engine, nothing of the prompt. The desk of
an engine worker takes it, says `taken`, and gets the prompt from the web process that still holds it. Prompts
and answers travel over pub/sub alone, so the broker never keeps them, and never writes them to its disk.

| from | to | message |
|---|---|---|
| web | desk | `["order", id, fields]` the prompt and its settings · `["leave", id]` the client has gone |
| desk | web | `["taken", id, n, desk]` · `["queued", id, n]` the engine has accepted it |
| desk | web | `["text", id, n, piece, output tokens so far, log probabilities or nil]` |
| desk | web | `["end", id, n, facts]` · `["failed", id, n, fields of an ApiError]` |

`n` counts the messages of one request: a gap means that the broker has lost some.
"""

import hashlib
import json
import time
from dataclasses import dataclass
from typing import Any

import msgpack

from pocs.runs.models import Target
from pocs.runs.seat import key_of

PREFIX = "phasegate:live:"
QUEUE = PREFIX + "queue"
BELL = PREFIX + "bell"  # rung when there is a new entry
DESKS = PREFIX + "desks"  # names of desks; those without a state are gone
#: a desk that has not said for so long that it lives is gone
STATE_EXPIRE_S = 6
STATE_RENEW_S = 1.0

Message = list[Any]


@dataclass(frozen=True)
class Entry:
    """One waiting request, as it stands in the queue."""

    id: str
    target_id: int
    engine: str  # mark of the engine it needs
    web: str  # name of the web process that holds its prompt
    at: float  # seconds since the epoch

    def packed(self) -> bytes:
        return msgpack.packb([self.id, self.target_id, self.engine, self.web, self.at])

    @classmethod
    def unpacked(cls, data: bytes) -> "Entry":
        return cls(*msgpack.unpackb(data))

    @property
    def waited_s(self) -> float:
        return max(0.0, time.time() - self.at)


def engine_mark(key: tuple[object, ...]) -> str:
    """A short name for the engine that serves a key of `pocs.runs.seat`."""
    return hashlib.sha256(repr(key).encode()).hexdigest()[:16]


def mark_of(target: Target) -> str:
    return engine_mark(key_of(target))


def state_key(desk: str) -> str:
    return f"{PREFIX}state:{desk}"


def place_keys(asker: str, minute: int) -> tuple[str, str]:
    """Requests that a token or person has open, and how many they began in this minute."""
    return f"{PREFIX}open:{asker}", f"{PREFIX}rate:{asker}:{minute}"


def desk_channel(desk: str) -> str:
    return f"{PREFIX}desk:{desk}"


def web_channel(web: str) -> str:
    return f"{PREFIX}web:{web}"


def packed(messages: list[Message]) -> bytes:
    return msgpack.packb(messages)


def unpacked(data: bytes) -> list[Message]:
    return msgpack.unpackb(data)


def as_bytes(data: bytes | str) -> bytes:
    """What our connections give, whatever their type says: they decode nothing."""
    assert isinstance(data, bytes)
    return data


def state_packed(state: dict[str, Any]) -> str:
    return json.dumps(state)


def state_unpacked(data: bytes) -> dict[str, Any]:
    return json.loads(data)
