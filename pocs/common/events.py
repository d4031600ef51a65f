"""Numbered live events: written with the change, published after commit through a port.

The site fills the port at start-up (`set_publisher`); without one, events are only stored, and a
page that connects later replays them. Streams are named `kind:id`; the app that owns a kind says
who may follow it (`register_stream`).
"""

from collections.abc import Callable
from typing import Any, Protocol

from django.db import IntegrityError, transaction
from django.db.models import Max
from django.utils import timezone

from pocs.common.models import LiveEvent

#: writers of one stream are few: its run's worker, and a person who cancels
EMIT_ATTEMPTS = 10


class Publisher(Protocol):
    def __call__(self, stream: str, event: dict[str, Any]) -> None: ...


def _store_only(stream: str, event: dict[str, Any]) -> None:
    """Publisher of a process without a channel layer."""


_publisher: Publisher = _store_only
_stream_guards: dict[str, Callable[[int, str], bool]] = {}


def set_publisher(publisher: Publisher) -> None:
    """Fill the port: called once per process by the site's wiring."""
    global _publisher  # noqa: PLW0603 the port is process-wide by intent
    _publisher = publisher


def register_stream(kind: str, may_follow: Callable[[int, str], bool]) -> None:
    """Say who may follow streams `kind:id`: `may_follow(user_id, id) -> bool`."""
    _stream_guards[kind] = may_follow


def may_follow(user_id: int, stream: str) -> bool:
    """Whether this user may follow this stream; unknown kinds are refused."""
    kind, _, key = stream.partition(":")
    guard = _stream_guards.get(kind)
    return bool(guard and key and guard(user_id, key))


def emit(stream: str, kind: str, data: dict[str, Any]) -> LiveEvent:
    """Store the stream's next event and publish it once the surrounding transaction commits.

    Two writers of one stream may want the same number; the later one takes the next.
    """
    for attempt in range(EMIT_ATTEMPTS):
        try:
            with transaction.atomic():
                number = last_number(stream) + 1
                event = LiveEvent.objects.create(
                    stream=stream, number=number, kind=kind, data=data, at=timezone.now()
                )
            break
        except IntegrityError:
            if attempt == EMIT_ATTEMPTS - 1:
                raise
    message = as_message(event)
    transaction.on_commit(lambda: _publisher(stream, message))
    return event


def last_number(stream: str) -> int:
    """Number of the stream's newest event, 0 before the first: where a page starts to follow."""
    return LiveEvent.objects.filter(stream=stream).aggregate(last=Max("number"))["last"] or 0


def as_message(event: LiveEvent) -> dict[str, Any]:
    """The form in which browsers receive an event."""
    return {"number": event.number, "kind": event.kind, "at": event.at.isoformat(), "data": event.data}


def events_after(stream: str, number: int, limit: int = 2000) -> list[dict[str, Any]]:
    """Events of the stream with a number above `number`, oldest first."""
    rows = LiveEvent.objects.filter(stream=stream, number__gt=number).order_by("number")[:limit]
    return [as_message(event) for event in rows]
