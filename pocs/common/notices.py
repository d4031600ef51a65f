"""The port through which services tell people of what concerns them: filled by whoever delivers.

A service calls `send` inside the transaction of its change; listeners run there too, so what they
store is stored with the change, and what they deliver they deliver after the commit.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from pocs.common.errors import Text
from pocs.common.phrases import Said


@dataclass(frozen=True, kw_only=True)
class Notice:
    """One thing to tell: a stable `kind`, a sentence, to whom, and the page that shows it."""

    kind: str
    title: Text | Said
    user_ids: Iterable[int]
    project_id: int
    route: str
    route_args: tuple[Any, ...] = field(default=())
    due_on: date | None = None


Listener = Callable[[Notice], None]
_listeners: list[Listener] = []


def on_notice(listener: Listener) -> None:
    """Register a listener; called once per process at start-up."""
    if listener not in _listeners:
        _listeners.append(listener)


def send(notice: Notice) -> None:
    """Hand the notice to every listener; without one nobody is told beyond what pages show."""
    for listener in _listeners:
        listener(notice)
