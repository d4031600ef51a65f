"""Who has which role on a project."""

from django.db import transaction
from django.utils.translation import gettext as _

from pocs.common import audit
from pocs.common.actors import Actor
from pocs.common.errors import Conflict, FieldError, InvalidInput, NotFound, NotPermitted
from pocs.people import policies
from pocs.people.models import User
from pocs.people.roles import ProjectRole
from pocs.projects.models import Project, ProjectMember
from pocs.projects.services.projects import require_open


def member_add(*, actor: Actor, project: Project, user: User, role: str) -> ProjectMember:
    """Give an active person of the same organisation a role; they may hold several."""
    policies.require(actor, "project.members", project)
    require_open(project)
    _require_no_self_service(actor, project, user)
    if role not in ProjectRole.values:
        text = _("“%(role)s” is no role on a project.") % {"role": role}
        raise InvalidInput(text, [FieldError("/role", "unknown", text)])
    if user.organisation_id != project.organisation_id:
        text = _("There is no such person in your organisation.")
        raise InvalidInput(text, [FieldError("/user", "unknown", text)])
    if not user.is_active:
        text = _("%(person)s is deactivated.") % {"person": user}
        raise InvalidInput(text, [FieldError("/user", "inactive", text)])
    with transaction.atomic():
        Project.objects.select_for_update().get(pk=project.pk)
        member, created = ProjectMember.objects.get_or_create(project=project, user=user, role=role)
        if not created:
            text = _("%(person)s has this role already.") % {"person": user}
            raise InvalidInput(text, [FieldError("/role", "taken", text)])
        after = {"user": user.pk, "person": str(user), "role": role}
        audit.record(actor=actor, verb="member.added", obj=member, project_id=project.pk, after=after)
    return member


def member_remove(*, actor: Actor, project: Project, user: User, role: str) -> None:
    """Take a role back; the last technical lead stays."""
    policies.require(actor, "project.members", project)
    require_open(project)
    with transaction.atomic():
        Project.objects.select_for_update().get(pk=project.pk)
        member = ProjectMember.objects.filter(project=project, user=user, role=role).first()
        if member is None:
            raise NotFound(_("%(person)s does not have this role here.") % {"person": user})
        leads = ProjectMember.objects.filter(project=project, role=ProjectRole.LEAD, user__is_active=True)
        if role == ProjectRole.LEAD and not leads.exclude(pk=member.pk).exists():
            raise Conflict(_("A project keeps at least one technical lead. Name another one first."))
        before = {"user": user.pk, "person": str(user), "role": role}
        audit.record(actor=actor, verb="member.removed", obj=member, project_id=project.pk, before=before)
        member.delete()


def _require_no_self_service(actor: Actor, project: Project, user: User) -> None:
    """An administrator manages the members of every project, but lets nobody in by themselves."""
    leads = project.members.filter(user=user, role=ProjectRole.LEAD)
    if actor.is_person and actor.user_id == user.pk and not leads.exists():
        raise NotPermitted(_("Administrators cannot give roles to themselves. Ask the technical lead."))
