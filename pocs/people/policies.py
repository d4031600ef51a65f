"""Who may do what: one question, `allowed`, asked by every service through `require`."""

from typing import Any

from django.db.models import Exists, Q
from django.utils.translation import gettext as _

from pocs.common.actors import Actor
from pocs.common.errors import NotFound, NotPermitted
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
    by_role_of = Q(user_id=actor.user_id, role__in=roles)
    if capability == "project.view":
        by_role_of |= Q(user_id__in=principals_of(actor), role__in=DELEGABLE_ROLES)
    held = project.members.filter(by_role_of)
    found = active_person(actor).annotate(held=Exists(held)).values_list("organisation_role", "held")
    for organisation_role, by_role in found:
        by_organisation = ORGANISATION_CAPABILITIES.get(OrganisationRole(organisation_role), frozenset())
        return by_role or capability in by_organisation
    return False


def capabilities_of(actor: Actor, project: Any) -> frozenset[str]:
    """Everything the actor may do on this project, for pages that show many buttons."""
    if not actor.is_person or actor.organisation_id != project.organisation_id:
        return frozenset(capability for capability in CAPABILITIES if allowed(actor, capability, project))
    user = person_behind(actor)
    if user is None:
        return frozenset()
    held = set(project.members.filter(user_id=user.pk).values_list("role", flat=True))
    found = set(ORGANISATION_CAPABILITIES.get(OrganisationRole(user.organisation_role), frozenset()))
    found |= {capability for capability, roles in CAPABILITIES.items() if held & roles}
    if "project.view" not in found and allowed(actor, "project.view", project):
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


def require(actor: Actor, capability: str, project: Any) -> None:
    """Raise NotFound when the actor may not even see the project, NotPermitted without the right."""
    if allowed(actor, capability, project):
        return
    if capability == "project.view" or not allowed(actor, "project.view", project):
        raise NotFound(_("There is no such project."))
    raise NotPermitted(_("Your role on this project does not allow this."))
