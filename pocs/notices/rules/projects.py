"""Rules about projects and runs: roles given, runs that ended badly."""

from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from pocs.common.models import AuditEntry
from pocs.common.phrases import said
from pocs.notices.rules.drafts import Draft, Rule, who
from pocs.people.roles import ProjectRole
from pocs.projects.models import ProjectMember
from pocs.runs.choices import RunState, Validity
from pocs.runs.models import Run


def role_given(entry: AuditEntry, member: ProjectMember) -> Draft:
    text = _("%(who)s gave you the role “%(role)s” on “%(project)s”")
    role = ProjectRole(member.role).label
    return Draft(
        kind="role.given",
        text=said(text, who=who(entry), role=role, project=member.project.name),
        user_ids=[member.user_id],
        path=reverse("projects:detail", args=[member.project_id]),
    )


def run_ended(entry: AuditEntry, run: Run) -> Draft | None:
    """Only a run that failed or does not count; whoever cancelled one knows."""
    if run.state == RunState.COMPLETE and run.validity != Validity.INVALID:
        return None
    state = RunState(run.state).label if run.state != RunState.COMPLETE else Validity(run.validity).label
    return Draft(
        kind="run.ended_badly",
        text=said(
            _("Run %(run)s of %(scenario)s: %(state)s"), run=run, scenario=run.scenario_version, state=state
        ),
        detail=run.error,
        user_ids=[run.requested_by_id],
        path=reverse("runs:detail", args=[run.pk]),
    )


RULES: dict[str, Rule] = {
    "member.added": role_given,
    "run.failed": run_ended,
    "run.interrupted": run_ended,
    "run.complete": run_ended,
}
