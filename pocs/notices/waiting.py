"""What waits for one person, as the digest lists it: the page “What waits for me” in lines of text."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import date

from pocs.people.models import User
from pocs.reviews.inbox import Inbox, Item, inbox_of


@dataclass(frozen=True)
class Waiting:
    """One thing to do: what, in which project, where, by when."""

    title: str
    project: str
    path: str
    detail: str
    due_on: date | None
    overdue: bool


def waiting_for(user: User) -> list[Waiting]:
    """Everything that waits for this person now, in the active language; the overdue first."""
    found = [
        Waiting(str(item.title), item.project.name, item.url, str(item.detail), item.due_on, item.overdue)
        for item in _items(inbox_of(user.as_actor()))
    ]
    return sorted(found, key=lambda item: (not item.overdue, item.due_on or date.max))


def _items(inbox: Inbox) -> Iterator[Item]:
    """The items of every group of the inbox, whichever groups it has."""
    for group in fields(inbox):
        value = getattr(inbox, group.name)
        if isinstance(value, list):
            yield from (item for item in value if isinstance(item, Item))
