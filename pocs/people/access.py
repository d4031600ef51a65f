"""Rights of routes in terms of people and roles: what the apps' tables are written with."""

from collections.abc import Callable, Mapping
from typing import Any

from django.db.models import Model
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from pocs.common.access import Right
from pocs.common.actors import Actor
from pocs.common.errors import NotFound, NotPermitted, Text
from pocs.people import policies
from pocs.people.selectors import is_admin

#: finds the project that a route's arguments lead to; NotFound for one of another organisation
Found = Callable[[Actor, Mapping[str, Any]], Any]


def behind(model: type[Model], path: str = "", key: str = "pk") -> Found:
    """The project at `path` from the row of `model` whose number is the route's argument `key`."""
    organisation = f"{path}__organisation_id" if path else "organisation_id"

    def find(actor: Actor, arguments: Mapping[str, Any]) -> Any:
        rows = model._default_manager.filter(pk=arguments[key], **{organisation: actor.organisation_id})
        row: Any = (rows.select_related(path) if path else rows).first()
        if row is None:
            raise NotFound(_("There is nothing under this number that you may see."))
        for step in filter(None, path.split("__")):
            row = getattr(row, step)
        return row

    return find


def reads(capability: str = "project.view") -> Right:
    """Reading by `capability`, which the view's selectors ask for."""
    return Right(capability)


def needs(capability: str, found: Found) -> Right:
    """A change by `capability` on the project found."""
    return Right(
        capability, lambda actor, arguments: policies.require(actor, capability, found(actor, arguments))
    )


def person_needs(capability: str, found: Found) -> Right:
    """The same, by a person only, never by a token."""

    def ask(actor: Actor, arguments: Mapping[str, Any]) -> None:
        project = found(actor, arguments)
        policies.require(actor, capability, project)
        _require_person(actor)

    return Right(capability, ask)


def rule(name: str, text: Text, ask: Callable[..., object] | None = None) -> Right:
    """A right that is no capability: `ask(actor, **arguments)` raises for whoever lacks it."""
    return Right(name, ask and (lambda actor, arguments: ask(actor, **arguments)), text)


def needs_admin_of(found: Callable[[Actor, int], object]) -> Right:
    """A change of what `found(actor, pk)` finds in the organisation, by its administrators."""

    def ask(actor: Actor, pk: int, **arguments: Any) -> None:
        found(actor, pk)
        _require_admin(actor)

    return rule(ADMIN.name, ADMIN.text, ask)


def _require_person(actor: Actor) -> None:
    if not actor.is_person:
        raise NotPermitted(_("Only a signed-in person can do this; a token or the system cannot."))


def _require_admin(actor: Actor, **arguments: Any) -> None:
    if not is_admin(actor):
        raise NotPermitted(_("Only administrators of the organisation may do this."))


ANYONE = rule("anyone", gettext_lazy("everybody, signed in or not"))
SIGNED_IN = rule(
    "signed-in", gettext_lazy("everybody who is signed in, and every token; each reads what is theirs")
)
PERSON = rule(
    "person",
    gettext_lazy("every signed-in person, for what is their own; no token"),
    lambda actor, **arguments: _require_person(actor),
)
ADMIN = rule("administrator", gettext_lazy("administrators of the organisation"), _require_admin)
CREATOR = rule(
    "creator",
    gettext_lazy("every person of the organisation except auditors; no token"),
    lambda actor, **arguments: policies.creating_require(actor),
)
