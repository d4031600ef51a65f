"""What a rule gives: kind, sentence, people and page."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date
from typing import Any

from pocs.common.errors import Text
from pocs.common.models import AuditEntry
from pocs.common.phrases import Said
from pocs.people.roles import CAPABILITIES
from pocs.projects.models import Project


@dataclass(frozen=True, kw_only=True)
class Draft:
    kind: str
    text: Text | Said
    user_ids: Iterable[int]
    path: str
    detail: Text | Said = ""
    due_on: date | None = None


#: what a rule is: the entry and the object it names, to what is to be told
Rule = Callable[[AuditEntry, Any], Draft | list[Draft] | None]


def holders(project: Project, *capabilities: str) -> set[int]:
    """Ids of the members whose roles give one of the capabilities."""
    roles = frozenset().union(*(CAPABILITIES[name] for name in capabilities))
    return set(project.members.filter(role__in=roles).values_list("user_id", flat=True))


def who(entry: AuditEntry) -> str:
    """The author of the change as the chain names it."""
    return str(entry.actor.get("label", ""))


def after(entry: AuditEntry) -> dict[str, Any]:
    return entry.after or {}
