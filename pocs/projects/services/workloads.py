"""Request sets and traces of a project: read and redacted, looked at, then used or thrown away."""

import hashlib
import zlib
from collections.abc import Mapping

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from pocs.common import audit
from pocs.common.actors import Actor
from pocs.common.errors import Conflict, FieldError, InvalidInput
from pocs.people import policies
from pocs.projects.models import Project, ScenarioVersion, WorkloadFile
from pocs.projects.services.projects import require_open
from pocs.projects.workload_port import workload_reader

NAME_MAX = 200


def workload_upload(
    *,
    actor: Actor,
    project: Project,
    name: str,
    raw: bytes,
    format_name: str = "",
    columns: Mapping[str, str] | None = None,
    skip_faulty: bool = False,
) -> WorkloadFile:
    """Read a file and keep what was read, without personal data; the upload itself is kept nowhere.

    The same content again gives the row that is there. It has to be confirmed before a scenario uses it.
    """
    policies.require(actor, "scenario.edit", project)
    require_open(project)
    if len(raw) > settings.PHASEGATE_ATTACHMENT_MAX_BYTES:
        most = settings.PHASEGATE_ATTACHMENT_MAX_BYTES // (1024 * 1024)
        text = _("The file is larger than %(most)s MiB.") % {"most": most}
        raise InvalidInput(text, [FieldError("/file", "too_large", text)])
    if format_name and format_name not in workload_reader().formats:
        text = _("There is no format “%(name)s”.") % {"name": format_name[:80]}
        raise InvalidInput(text, [FieldError("/format", "unknown", text)])
    read = workload_reader().read(
        raw, name[-NAME_MAX:], format_name=format_name, columns=columns or {}, skip_faulty=skip_faulty
    )
    kept = read.text.encode()
    digest = hashlib.sha256(kept).hexdigest()
    with transaction.atomic():
        Project.objects.select_for_update().get(pk=project.pk)
        known = project.workloads.filter(digest=digest).first()
        if known is not None:
            return known
        workload = WorkloadFile.objects.create(
            project=project,
            name=name[-NAME_MAX:],
            digest=digest,
            content=zlib.compress(kept),
            report=read.report,
            uploaded_by_id=actor.answers_with,
        )
        after = {"name": workload.name, "digest": digest} | {
            key: read.report[key] for key in ("format", "n", "redactions")
        }
        audit.record(actor=actor, verb="workload.uploaded", obj=workload, project_id=project.pk, after=after)
    return workload


def workload_confirm(*, actor: Actor, workload: WorkloadFile) -> WorkloadFile:
    """Let scenarios use a file whose preview somebody has looked at."""
    policies.require(actor, "scenario.edit", workload.project)
    require_open(workload.project)
    with transaction.atomic():
        stored = WorkloadFile.objects.select_for_update().defer("content").get(pk=workload.pk)
        if stored.confirmed_at is None:
            stored.confirmed_at = timezone.now()
            stored.save(update_fields=["confirmed_at"])
            after = {"digest": stored.digest}
            audit.record(
                actor=actor, verb="workload.confirmed", obj=stored, project_id=stored.project_id, after=after
            )
    return stored


def workload_discard(*, actor: Actor, workload: WorkloadFile) -> None:
    """Throw a file away; Conflict where a version of a scenario rests on it."""
    policies.require(actor, "scenario.edit", workload.project)
    require_open(workload.project)
    with transaction.atomic():
        Project.objects.select_for_update().get(pk=workload.project_id)
        used = ScenarioVersion.objects.filter(
            scenario__project_id=workload.project_id, spec__workload=workload.digest
        ).select_related("scenario").first()  # fmt: skip
        if used is not None:
            text = _("%(version)s uses this file; it is kept with its runs.")
            raise Conflict(text % {"version": used})
        before = {"name": workload.name, "digest": workload.digest}
        audit.record(
            actor=actor,
            verb="workload.discarded",
            obj=workload,
            project_id=workload.project_id,
            before=before,
        )
        workload.delete()


def workloads_copy(*, actor: Actor, source: Project, project: Project, digests: set[str]) -> None:
    """The files that scenarios of a cloned project rest on."""
    for row in source.workloads.filter(digest__in=digests):
        kept = {name: getattr(row, name) for name in ("name", "digest", "content", "report", "confirmed_at")}
        copy = WorkloadFile.objects.create(project=project, uploaded_by_id=actor.answers_with, **kept)
        after = {"name": copy.name, "digest": copy.digest, "cloned_from": source.pk}
        audit.record(actor=actor, verb="workload.uploaded", obj=copy, project_id=project.pk, after=after)


def workload_text(workload: WorkloadFile) -> str:
    """The kept form of a file."""
    return zlib.decompress(bytes(workload.content)).decode()
