"""Which right each route asks for: one table an app, asked before anything of a request is read.

Apps declare their routes at start-up; the base classes of the API and of the pages ask here first, so that
whoever may not do something hears that, whatever is wrong with what they sent. Services ask again.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.urls import ResolverMatch

from pocs.common.actors import Actor
from pocs.common.errors import Text

Question = Callable[[Actor, Mapping[str, Any]], object]


@dataclass(frozen=True)
class Right:
    """What one method of a route asks for.

    `name` is a capability of `pocs.people.roles` or names a rule that `text` puts in words. `ask` raises
    NotFound or NotPermitted for an actor and the route's arguments; without it the view's own reading
    answers, as for everything that only reads.
    """

    name: str
    ask: Question | None = None
    text: Text = ""


#: route -> method -> right
Table = Mapping[str, Mapping[str, Right]]
_routes: dict[str, Mapping[str, Right]] = {}


def declare(table: Table) -> None:
    """Say what the routes of one app ask for."""
    _routes.update(table)


def declared() -> dict[str, Mapping[str, Right]]:
    """Every route that was declared."""
    return dict(_routes)


def offered(match: ResolverMatch | None) -> list[str]:
    """The methods of a declared route; empty for one that nobody declared."""
    methods = _routes.get(match.view_name, {}) if match is not None else {}
    return [*methods, *(["HEAD"] if "GET" in methods else [])]


def ask_first(actor: Callable[[], Actor], match: ResolverMatch | None, method: str | None) -> None:
    """Raise NotFound or NotPermitted where the actor lacks what the route asks for."""
    right = _routes.get(match.view_name, {}).get(method or "") if match is not None else None
    if match is not None and right is not None and right.ask is not None:
        right.ask(actor(), match.kwargs)
