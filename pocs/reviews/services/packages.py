"""Services of packages: freezing what is to be signed into a numbered manifest with one digest."""

from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from pocs.common import audit
from pocs.common.actors import Actor
from pocs.common.canonical import digest
from pocs.common.errors import Conflict, GateNotMet, Missing
from pocs.evidence import services as evidence_services
from pocs.evidence.choices import RevisionState
from pocs.evidence.models import EvidenceRevision
from pocs.people import policies
from pocs.projects import services as project_services
from pocs.projects.choices import PROJECT_ORDER, ProjectState
from pocs.projects.gates import missing_before
from pocs.projects.models import Project
from pocs.reviews.choices import PackageState
from pocs.reviews.difference import manifest_difference
from pocs.reviews.manifest import manifest_of, newest_revisions
from pocs.reviews.models import Package
from pocs.reviews.selectors import current_package
from pocs.reviews.services.requests import signoffs_request
from pocs.reviews.services.support import require_person, tell
from pocs.reviews.staleness import package_mark_stale

#: revisions that may be signed for: reviewed, or reviewed and frozen into an earlier package
SIGNABLE = (RevisionState.REVIEWED, RevisionState.FROZEN)


@transaction.atomic
def package_freeze(*, actor: Actor, project: Project) -> Package:
    """Freeze the project's current material as package n+1 and ask the three slots for signatures.

    Every gate up to the review must be met now, not only when its step was taken (GateNotMet), and
    every hash is checked again (ContentMismatch).
    Raises Conflict when the project is not ready for it or nothing changed since a rejection.
    """
    user_id = require_person(actor)
    policies.require(actor, "package.freeze", project)
    project = Project.objects.select_for_update().get(pk=project.pk)
    _require_freezable(project)
    revisions = newest_revisions(project)
    missing = _missing_for_review(project) + _unfinished(revisions)
    if missing:
        raise GateNotMet(_("The package cannot be frozen yet."), missing)
    evidence_services.revisions_freeze(actor=actor, revisions=revisions)
    last = Package.objects.filter(project=project).order_by("-number").first()
    number = last.number + 1 if last else 1
    manifest = manifest_of(project, number)
    _require_change(last, manifest)
    package = Package.objects.create(
        project=project,
        number=number,
        manifest=manifest,
        digest=digest(manifest),
        frozen_by_id=user_id,
        frozen_at=timezone.now(),
    )
    if last is not None and last.state in (PackageState.FROZEN, PackageState.APPROVED):
        package_mark_stale(
            package=last, actor=actor, obj=package, what=gettext_lazy("a newer package was frozen")
        )
    audit.record(
        actor=actor,
        verb="package.frozen",
        obj=package,
        project_id=project.pk,
        after={"state": package.state, "number": number, "digest": package.digest},
    )
    signoffs_request(actor, package)
    if project.state != ProjectState.IN_REVIEW:
        project_services.project_state_set(actor=actor, project=project, to=ProjectState.IN_REVIEW)
    tell(project, "package", package=number, state=package.state)
    return package


def _require_freezable(project: Project) -> None:
    if project.state == ProjectState.EVIDENCE_COMPLETE:
        return
    if project.state == ProjectState.IN_REVIEW:
        if current_package(project) is None:
            return
        raise Conflict(_("A package of this project is already waiting for its signatures or its decision."))
    detail = _("The project is “%(state)s”; a package is frozen when its evidence is complete.")
    raise Conflict(detail % {"state": ProjectState(project.state).label})


def _require_change(last: Package | None, manifest: dict[str, Any]) -> None:
    """A rejected package is not asked again unchanged: the veto would only be a matter of patience."""
    if last is None or last.state != PackageState.REJECTED or manifest_difference(last.manifest, manifest):
        return
    detail = _("Package %(number)d was rejected and nothing has changed since; change it first.")
    raise Conflict(detail % {"number": last.number})


def _missing_for_review(project: Project) -> list[Missing]:
    upto = PROJECT_ORDER.index(ProjectState.IN_REVIEW)
    return [item for state in PROJECT_ORDER[: upto + 1] for item in missing_before(project, state)]


def _unfinished(revisions: list[EvidenceRevision]) -> list[Missing]:
    return [
        Missing(
            guard="G5",
            text=_("“%(title)s” has revision %(number)d that is not reviewed yet.")
            % {"title": revision.title, "number": revision.number},
            code="evidence.unfinished",
            object=f"evidence:{revision.evidence_id}",
        )
        for revision in revisions
        if revision.state not in SIGNABLE
    ]
