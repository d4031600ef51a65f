"""Who may do what: one question, `allowed`, asked by every service through `require`."""

from dataclasses import dataclass
from typing import Any

from django.db.models import FilteredRelation, Q
from django.utils.translation import gettext as _

from pocs.common.actors import Actor
from pocs.common.errors import NotFound, NotPermitted
from pocs.common.reading import remembered
from pocs.people.models import User
from pocs.people.roles import (
    CAPABILITIES,
    DELEGABLE_ROLES,
    ORGANISATION_CAPABILITIES,
    TOKEN_SCOPES,
    OrganisationRole,
    ProjectRole,
)
from pocs.people.selectors import active_person, person_behind, principals_of


def allowed(actor: Actor, capability: str, project: Any) -> bool:
    """Whether the actor has `capability` (a key of roles.CAPABILITIES) on this project.

    `project` is anything with `pk`, `organisation_id` and `members` (people sits below projects).
    People act by their roles, a CI token by its scopes on its own project; auditors may view,
    administrators manage members. A deputy sees the projects on which the principal signs.
    Superuser status gives nothing. The system may do anything in its organisation.
    """
    roles = CAPABILITIES[capability]
    if actor.organisation_id != project.organisation_id:
        return False
    if actor.kind == "token":
        scope = TOKEN_SCOPES.get(capability)
        return actor.token_project_id == project.pk and scope is not None and scope in actor.token_scopes
    return actor.kind == "system" or _person_allowed(actor, capability, project, roles)


def _person_allowed(actor: Actor, capability: str, project: Any, roles: frozenset[ProjectRole]) -> bool:
    standing = _standing(actor, project)
    if standing is None:
        return False
    if standing.roles & roles or capability in standing.by_organisation:
        return True
    return capability == "project.view" and _is_deputy(actor, project)


@dataclass(frozen=True)
class _Standing:
    """What an active person is in the organisation, and which roles they have on one project."""

    organisation_role: OrganisationRole
    roles: frozenset[str]

    @property
    def by_organisation(self) -> frozenset[str]:
        return ORGANISATION_CAPABILITIES.get(self.organisation_role, frozenset())


@remembered
def _standing(actor: Actor, project: Any) -> _Standing | None:
    """The standing of the person behind the actor; None when they are not active. One query."""
    here = FilteredRelation("project_roles", condition=Q(project_roles__project=project.pk))
    rows = list(active_person(actor).annotate(here=here).values_list("organisation_role", "here__role"))
    if not rows:
        return None
    return _Standing(OrganisationRole(rows[0][0]), frozenset(role for _organisation, role in rows if role))


@remembered
def _is_deputy(actor: Actor, project: Any) -> bool:
    """Whether somebody who signs on the project has made the person their deputy for today."""
    return bool(project.members.filter(user_id__in=principals_of(actor), role__in=DELEGABLE_ROLES).exists())


def capabilities_of(actor: Actor, project: Any) -> frozenset[str]:
    """Everything the actor may do on this project, for pages that show many buttons."""
    if not actor.is_person or actor.organisation_id != project.organisation_id:
        return frozenset(capability for capability in CAPABILITIES if allowed(actor, capability, project))
    standing = _standing(actor, project)
    if standing is None:
        return frozenset()
    found = set(standing.by_organisation)
    found |= {capability for capability, roles in CAPABILITIES.items() if standing.roles & roles}
    if "project.view" not in found and _is_deputy(actor, project):
        found.add("project.view")
    return frozenset(found)


def principals_for(actor: Actor, capability: str, project: Any) -> list[User]:
    """Those who have `capability` on the project by their role and for whom the actor is deputy today.

    Only a principal's own role counts, so that a delegation is never passed on.
    """
    if not actor.is_person or person_behind(actor) is None:
        return []
    roles = CAPABILITIES[capability] & DELEGABLE_ROLES
    holders = project.members.filter(role__in=roles).values("user_id")
    return list(principals_of(actor).filter(pk__in=holders))


def require(actor: Actor, capability: str, project: Any, *, unseen: str = "") -> None:
    """Raise NotFound (`unseen`: its words) when the actor may not even see the project, else NotPermitted.

    What one may not see is as good as foreign, also to a colleague. A token sees the one project that it
    is bound to: there it lacks the scope, elsewhere it finds nothing.
    """
    if allowed(actor, capability, project):
        return
    if actor.kind == "token" and _is_bound_to(actor, project):
        raise NotPermitted(_missing_scope(capability))
    if capability == "project.view" or not allowed(actor, "project.view", project):
        raise NotFound(unseen or _("There is no such project."))
    raise NotPermitted(_("Your role on this project does not allow this."))


def creating_require(actor: Actor) -> User:
    """The person who may create projects; NotPermitted for auditors and tokens."""
    person = person_behind(actor) if actor.is_person else None
    if person is None or person.organisation_role == OrganisationRole.AUDITOR:
        raise NotPermitted(_("Only people who work on projects may create one."))
    return person


def may_create(actor: Actor) -> bool:
    """Whether this person may create projects."""
    try:
        creating_require(actor)
    except NotPermitted:
        return False
    return True


def _is_bound_to(actor: Actor, project: Any) -> bool:
    return actor.organisation_id == project.organisation_id and actor.token_project_id == project.pk


def _missing_scope(capability: str) -> str:
    scope = TOKEN_SCOPES.get(capability)
    if scope is None:
        return _("No CI token may do this, whatever its scopes.")
    return _("The token lacks the scope “%(scope)s”.") % {"scope": scope}
