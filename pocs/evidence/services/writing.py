"""Writing evidence: a draft is edited in place, an edit of anything later makes the next revision."""

from collections.abc import Iterable, Sequence
from typing import Any

from django.core.files.base import File
from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from pocs.common.actors import Actor
from pocs.common.errors import FieldError, InvalidInput
from pocs.evidence.bodies import captured_configuration, empty_body
from pocs.evidence.choices import ContributionKind, EvidenceType, RevisionState
from pocs.evidence.files import check_upload
from pocs.evidence.models import Evidence, EvidenceRevision
from pocs.evidence.services.attachments import attach, stored_files
from pocs.evidence.services.support import (
    claim,
    contribute,
    facts,
    invalid,
    require_author,
    seal,
    tell,
    touch,
)
from pocs.evidence.validation import clean, run_refusal
from pocs.projects.models import Project
from pocs.runs.models import Run

TITLE_MAX_CHARACTERS = 200


def configuration_from_run(run: Run) -> dict[str, Any]:
    """A configuration body with everything that the run recorded, and the rest still to be written."""
    return empty_body(EvidenceType.CONFIGURATION) | captured_configuration(run) | {"source_run": run.pk}


def evidence_create(
    *,
    actor: Actor,
    project: Project,
    type: str,
    title: str,
    body: dict[str, Any],
    runs: Iterable[Run] = (),
    uploads: Sequence[File] = (),
) -> Evidence:
    """New evidence with its first draft; raises InvalidInput with pointers into the input."""
    user_id = require_author(actor, project)
    if type not in EvidenceType.values:
        raise invalid(
            "/type", "choice", _("One of: %(choices)s.") % {"choices": ", ".join(EvidenceType.values)}
        )
    title = _clean_title(title)
    body = clean(type=type, body=body, project=project)
    attached = _clean_runs(project, body, runs)
    files = [check_upload(upload) for upload in uploads]
    with stored_files() as stored, transaction.atomic():
        evidence = Evidence.objects.create(project=project, type=type, title=title)
        revision = EvidenceRevision.objects.create(
            evidence=evidence,
            number=1,
            title=title,
            body=body,
            created_by_id=user_id,
            token_id=actor.token_id,
        )
        revision.runs.set(attached)
        contribute(revision, actor, ContributionKind.WROTE)
        attach(revision, actor, zip(files, uploads, strict=True), stored)
        seal(revision)
        tell(actor, "evidence.created", revision, what=gettext_lazy("evidence was added"))
    return evidence


def revision_edit(
    *,
    actor: Actor,
    evidence: Evidence,
    version: int,
    body: dict[str, Any],
    runs: Iterable[Run],
    title: str | None = None,
    uploads: Sequence[File] = (),
) -> EvidenceRevision:
    """Save what an editor wrote on top of `version` of the evidence; returns the draft it is in.

    Raises StaleVersion (`current`: the version now) when someone else saved in between. Files of
    the revision before are carried into a new one.
    """
    user_id = require_author(actor, evidence.project)
    title = _clean_title(evidence.title if title is None else title)
    body = clean(type=evidence.type, body=body, project=evidence.project)
    attached = _clean_runs(evidence.project, body, runs)
    files = [check_upload(upload) for upload in uploads]
    with stored_files() as stored, transaction.atomic():
        evidence = claim(evidence, version)
        latest = evidence.revisions.order_by("-number")[0]
        before = facts(latest)
        if latest.state == RevisionState.DRAFT:
            revision = latest
            revision.title, revision.body = title, body
            revision.version += 1
            revision.save(update_fields=["title", "body", "version", "updated_at"])
        else:
            revision = _next_revision(
                latest, title=title, body=body, user_id=user_id, token_id=actor.token_id
            )
        revision.runs.set(attached)
        contribute(revision, actor, ContributionKind.WROTE)
        attach(revision, actor, zip(files, uploads, strict=True), stored)
        seal(revision)
        evidence.title = title
        touch(evidence)
        tell(actor, "evidence.edited", revision, before=before, what=gettext_lazy("evidence was edited"))
    return revision


def _clean_title(title: str) -> str:
    title = title.strip()
    if not title:
        raise invalid("/title", "required", _("Give the evidence a title."))
    if len(title) > TITLE_MAX_CHARACTERS:
        detail = _("A title has at most %(max)d characters.") % {"max": TITLE_MAX_CHARACTERS}
        raise invalid("/title", "max_length", detail)
    return title


def _clean_runs(project: Project, body: dict[str, Any], runs: Iterable[Run]) -> list[Run]:
    """The runs a revision stands on, each of this project, complete and valid."""
    found = {run.pk: run for run in runs}
    source = body.get("source_run")
    if source is not None and source not in found:
        found[source] = Run.objects.get(pk=source)
    errors = []
    for index, run in enumerate(found.values()):
        if run.project_id != project.pk:
            detail = _("There is no such run in this project.")
            errors.append(FieldError(f"/runs/{index}", "not_found", detail))
        elif not run.counts_as_evidence:
            errors.append(FieldError(f"/runs/{index}", "not_evidence", run_refusal(run)))
    if errors:
        raise InvalidInput(_("Only complete and valid runs of this project are evidence."), errors)
    return list(found.values())


def _next_revision(
    latest: EvidenceRevision, *, title: str, body: dict[str, Any], user_id: int, token_id: int | None
) -> EvidenceRevision:
    """The draft after `latest`, with its files."""
    revision = EvidenceRevision.objects.create(
        evidence=latest.evidence,
        number=latest.number + 1,
        title=title,
        body=body,
        created_by_id=user_id,
        token_id=token_id,
    )
    for kept in latest.attachments.all():
        kept.pk, kept.revision = None, revision
        kept.save(force_insert=True)
    return revision
