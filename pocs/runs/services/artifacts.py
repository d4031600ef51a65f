"""Files that an ingested result names by digest: the run completes when every one is there and verified."""

import hashlib

from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from pocs.common import audit
from pocs.common.actors import Actor
from pocs.common.errors import Conflict, FieldError, InvalidInput, NotFound
from pocs.people import policies
from pocs.runs.choices import RunState
from pocs.runs.lifecycle import run_move
from pocs.runs.models import Run, RunArtifact


def artifact_add(*, actor: Actor, run: Run, name: str, upload: UploadedFile) -> RunArtifact:
    """Verify an upload against the digest that the result named for it, and store it.

    The last one completes the run. The same file again changes nothing; another one is refused.
    """
    policies.require(actor, "run.execute", run.project)
    content = hashlib.sha256()
    for chunk in upload.chunks():
        content.update(chunk)
    upload.seek(0)
    with transaction.atomic():
        Run.objects.select_for_update().get(pk=run.pk)
        artifact = run.artifacts.filter(name=name).first()
        if artifact is None:
            raise NotFound(_("Run %(run)s names no artifact “%(name)s”.") % {"run": run, "name": name})
        if content.hexdigest() != artifact.sha256 or upload.size != artifact.size_bytes:
            text = _(
                "This is not the file that the result named “%(name)s”: its SHA-256 or size differs."
            ) % {"name": name}
            raise InvalidInput(text, [FieldError("/file", "digest_mismatch", text)])
        if artifact.verified_at is not None:
            return artifact
        if run.state != RunState.FINALISING:
            raise Conflict(_("Run %(run)s has already ended.") % {"run": run})
        artifact.file.save(name, upload, save=False)
        artifact.verified_at = timezone.now()
        artifact.save(update_fields=["file", "verified_at"])
        audit.record(
            actor=actor,
            verb="run.artifact_verified",
            obj=artifact,
            project_id=run.project_id,
            after={"run": str(run), "sha256": artifact.sha256},
        )
        if not run.artifacts.filter(verified_at=None).exists():
            run_move(run_id=run.pk, actor=actor, to=RunState.COMPLETE, expect=[RunState.FINALISING])
    return artifact
