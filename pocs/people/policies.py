"""Who may do what: one question, `allowed`, asked by every service through `require`."""

from typing import Any

from django.utils.translation import gettext as _

from pocs.common.actors import Actor
from pocs.common.errors import NotFound, NotPermitted
from pocs.people.models import User
from pocs.people.roles import CAPABILITIES, TOKEN_SCOPES, OrganisationRole


def allowed(actor: Actor, capability: str, project: Any) -> bool:
    """Whether the actor has `capability` (a key of roles.CAPABILITIES) on this project.

    `project` is anything with `pk`, `organisation_id` and `members` (people sits below projects).
    People act by their roles, a CI token by its scopes on its own project, auditors may view.
    Superuser status gives nothing. The system may do anything in its organisation.
    """
    roles = CAPABILITIES[capability]
    if actor.organisation_id != project.organisation_id:
        return False
    if actor.kind == "system":
        return True
    if actor.kind == "token":
        scope = TOKEN_SCOPES.get(capability)
        return actor.token_project_id == project.pk and scope is not None and scope in actor.token_scopes
    user = User.objects.filter(pk=actor.user_id, is_active=True).first()
    if user is None or user.organisation_id != project.organisation_id:
        return False
    if capability == "project.view" and user.organisation_role == OrganisationRole.AUDITOR:
        return True
    return project.members.filter(user_id=user.pk, role__in=roles).exists()


def require(actor: Actor, capability: str, project: Any) -> None:
    """Raise NotFound when the actor may not even see the project, NotPermitted without the right."""
    if allowed(actor, capability, project):
        return
    if capability == "project.view" or not allowed(actor, "project.view", project):
        raise NotFound(_("There is no such project."))
    raise NotPermitted(_("Your role on this project does not allow this."))
