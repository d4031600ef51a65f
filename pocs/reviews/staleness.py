"""When a frozen package stops standing for its project: who changed what, and what ends with it."""

from typing import Any

from django.db import models, transaction
from django.utils import timezone
from django.utils.translation import gettext_lazy

from pocs.common import audit, events
from pocs.common.actors import Actor
from pocs.common.errors import Text
from pocs.common.phrases import Said, kept, reason_facts, said
from pocs.common.versions import save_version
from pocs.projects import services as project_services
from pocs.projects.choices import ProjectState
from pocs.projects.models import Project
from pocs.reviews.choices import (
    CURRENT_APPROVALS,
    STANDING_STATES,
    UNDECIDED_OBJECTIONS,
    DecisionState,
    ObjectionState,
    PackageState,
    SignOffState,
)
from pocs.reviews.manifest import digest_now
from pocs.reviews.models import Decision, Objection, Package, SignOff


def on_project_change(project: Project, actor: Actor, obj: models.Model, what: Text | Said) -> None:
    """Listener of `pocs.projects.changes`: mark the current package stale if its content changed.

    Runs in the transaction of the change. The package is compared by digest, so a change of what
    it does not cover leaves it alone.
    """
    with transaction.atomic():
        package = (
            Package.objects.select_for_update()
            .filter(project=project, state__in=STANDING_STATES)
            .order_by("-number")
            .first()
        )
        if package is not None and digest_now(package) != package.digest:
            package_mark_stale(package=package, actor=actor, obj=obj, what=what)


def package_mark_stale(*, package: Package, actor: Actor, obj: models.Model, what: Text | Said) -> None:
    """Package and signatures become stale, naming who changed what; the review starts over.

    The signatures stay listed. A project in review falls back to `evidence_complete`, where it can
    be frozen again; a decided one keeps its state and shows that its package is no longer current.
    Call inside a transaction that holds the package's row.
    """
    reason = said(gettext_lazy("%(what)s: %(object)s"), what=what, object=obj)
    now = timezone.now()
    who: dict[str, Any] = {"kind": actor.kind, "label": actor.label, "user_id": actor.user_id}
    was = str(package.state)
    package.state = PackageState.STALE
    package.stale_at, package.stale_by = now, who
    package.stale_reason, package.stale_said = kept(reason)
    package.version += 1
    fields = ["state", "stale_at", "stale_by", "stale_reason", "stale_said", "version", "updated_at"]
    package.save(update_fields=fields)
    project = package.project
    for signoff in package.signoffs.filter(state__in=CURRENT_APPROVALS):
        _end(actor, project, signoff, SignOffState.STALE, reason)
    for signoff in package.signoffs.filter(state=SignOffState.REQUESTED):
        _end(actor, project, signoff, SignOffState.EXPIRED, reason)
    for objection in package.objections.filter(state__in=UNDECIDED_OBJECTIONS):
        _end_objection(actor, objection)
    in_review = Project.objects.filter(pk=project.pk, state=ProjectState.IN_REVIEW).exists()
    if in_review:
        for decision in package.decisions.filter(state=DecisionState.PROPOSED):
            _end(
                actor,
                project,
                decision,
                DecisionState.SUPERSEDED,
                said(gettext_lazy("its package became stale")),
            )
    audit.record(
        actor=actor,
        verb="package.stale",
        obj=package,
        project_id=project.pk,
        before={"state": was, "digest": package.digest},
        after={
            "state": package.state,
            **reason_facts(reason),
            "object": f"{obj._meta.label_lower}:{obj.pk}",
        },
    )
    if in_review:
        project_services.project_state_set(actor=actor, project=project, to=ProjectState.EVIDENCE_COMPLETE)
    events.emit(f"project:{project.pk}", "package", {"package": package.number, "state": package.state})


def _end(actor: Actor, project: Project, row: SignOff | Decision, to: str, reason: Said) -> None:
    """End one signature, request or proposal with its own audit entry."""
    before = str(row.state)
    text, stored = kept(reason)
    save_version(row, state=to, ended_at=timezone.now(), ended_reason=text, ended_said=stored)
    audit.record(
        actor=actor,
        verb=f"{row._meta.model_name}.{to}",
        obj=row,
        project_id=project.pk,
        before={"state": before},
        after={"state": to, **reason_facts(reason)},
    )


def _end_objection(actor: Actor, objection: Objection) -> None:
    """The line it cites is no longer what is signed; it may be raised again on the next package."""
    before = str(objection.state)
    save_version(objection, state=ObjectionState.OVERTAKEN, ended_at=timezone.now())
    audit.record(
        actor=actor,
        verb="objection.overtaken",
        obj=objection,
        project_id=objection.package.project_id,
        before={"state": before},
        after={"state": ObjectionState.OVERTAKEN},
    )
