"""The content of a revision in the form that is hashed, and the check that it is still the same.

Covered: type, title, body, the runs with the digests of their manifests, the attachments with the
digests of their bytes. State, people and times are not content.
"""

import hashlib
from collections.abc import Iterator
from typing import Any

from django.core.files.base import File
from django.utils.translation import gettext as _

from pocs.common.canonical import digest
from pocs.common.errors import Conflict
from pocs.evidence.models import Attachment, EvidenceRevision

CHUNK_BYTES = 256 * 1024


class ContentMismatch(Conflict):
    """What is stored is not what was hashed: someone changed it past the services."""

    type = "content-mismatch"


def content_of(revision: EvidenceRevision) -> dict[str, Any]:
    """What `content_sha256` covers, of a revision as it was read."""
    return {
        "type": revision.evidence.type,
        "title": revision.title,
        "body": revision.body,
        "runs": [
            {"run": run.pk, "manifest_sha256": None if run.manifest is None else digest(run.manifest)}
            for run in sorted(revision.runs.all(), key=lambda run: run.pk)
        ],
        "attachments": [
            {"name": item.name, "size_bytes": item.size_bytes, "sha256": item.sha256}
            for item in sorted(revision.attachments.all(), key=lambda item: (item.name, item.sha256, item.pk))
        ],
    }


def stored_digest(revision: EvidenceRevision) -> str:
    """SHA-256 over the canonical content that the database holds now.

    JSON columns may come back from the database in another spelling of the same number, so a digest
    is never taken over what is still in memory.
    """
    stored = EvidenceRevision.objects.select_related("evidence").get(pk=revision.pk)
    return digest(content_of(stored))


def check_content(revision: EvidenceRevision) -> None:
    """Raise ContentMismatch unless a revision just read has the content that its digest covers."""
    found = digest(content_of(revision))
    if found != revision.content_sha256:
        raise ContentMismatch(
            _(
                "The content of “%(revision)s” no longer matches its digest (stored %(stored)s…, found "
                "%(found)s…). It was changed outside PhaseGate and cannot be used; make a new revision."
            )
            % {"revision": revision, "stored": revision.content_sha256[:12], "found": found[:12]}
        )


def check_file(attachment: Attachment) -> None:
    """Raise ContentMismatch unless the stored file is there with the digest of the upload."""
    try:
        with attachment.file.open("rb") as stored:
            intact = sha256_of(stored) == attachment.sha256
    except OSError:
        intact = False
    if not intact:
        raise ContentMismatch(
            _("The file “%(name)s” of “%(revision)s” is lost or was changed after its upload.")
            % {"name": attachment.name, "revision": attachment.revision}
        )


def sha256_of(stored: File) -> str:
    """Digest of a file's bytes, read in chunks."""
    content = hashlib.sha256()
    for chunk in read_chunks(stored):
        content.update(chunk)
    return content.hexdigest()


def read_chunks(stored: File) -> Iterator[bytes]:
    """The file's bytes from its start, at most CHUNK_BYTES at a time."""
    stored.seek(0)
    while chunk := stored.read(CHUNK_BYTES):
        yield chunk
