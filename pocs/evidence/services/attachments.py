"""Files of a draft: checked by content, stored under their digest, gone again when the change fails."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from django.core.files.base import File
from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from pocs.common.actors import Actor
from pocs.evidence.choices import ContributionKind, RevisionState
from pocs.evidence.files import CheckedFile, check_upload
from pocs.evidence.models import Attachment, EvidenceRevision
from pocs.evidence.separation import person_behind
from pocs.evidence.services.support import (
    claim_revision,
    contribute,
    facts,
    invalid,
    require_author,
    seal,
    tell,
    touch,
)


def attachment_add(*, actor: Actor, revision: EvidenceRevision, upload: File) -> Attachment:
    """Attach a file to a draft; raises InvalidInput at `/file` for a wrong one, Conflict after the draft."""
    require_author(actor, revision.evidence.project)
    checked = check_upload(upload)
    with stored_files() as stored, transaction.atomic():
        evidence, revision = claim_revision(revision, RevisionState.DRAFT)
        before = facts(revision)
        [attachment] = attach(revision, actor, [(checked, upload)], stored)
        seal(revision)
        touch(evidence)
        tell(
            actor,
            "evidence.file_added",
            revision,
            before=before,
            what=gettext_lazy("a file was attached to evidence"),
        )
    return attachment


@transaction.atomic
def attachment_remove(*, actor: Actor, attachment: Attachment) -> None:
    """Take a file off a draft; whoever uploaded it stays a contributor."""
    require_author(actor, attachment.revision.evidence.project)
    evidence, revision = claim_revision(attachment.revision, RevisionState.DRAFT)
    before = facts(revision)
    stored_name, storage = str(attachment.file.name), attachment.file.storage
    attachment.delete()
    seal(revision)
    touch(evidence)
    contribute(revision, actor, ContributionKind.WROTE)
    tell(
        actor,
        "evidence.file_removed",
        revision,
        before=before,
        what=gettext_lazy("a file was taken off evidence"),
    )
    if not Attachment.objects.filter(file=stored_name).exists():
        transaction.on_commit(lambda: storage.delete(stored_name))


def attach(
    revision: EvidenceRevision, actor: Actor, files: Iterable[tuple[CheckedFile, File]], stored: list[Any]
) -> list[Attachment]:
    """Store checked files under their digest and note them in `stored`, to be undone on failure."""
    attachments = []
    for checked, upload in files:
        _require_new(revision, checked)
        attachment = Attachment(
            revision=revision,
            name=checked.name,
            content_type=checked.content_type,
            size_bytes=checked.size_bytes,
            sha256=checked.sha256,
            uploaded_by_id=person_behind(actor),
        )
        attachment.file.save(checked.sha256, upload, save=False)
        stored.append(attachment.file)
        attachment.save(force_insert=True)
        contribute(revision, actor, ContributionKind.UPLOADED)
        attachments.append(attachment)
    return attachments


def _require_new(revision: EvidenceRevision, checked: CheckedFile) -> None:
    """Raise InvalidInput at `/file` for content, or a name, that the revision has already."""
    for item in revision.attachments.filter(Q(sha256=checked.sha256) | Q(name=checked.name)):
        if item.sha256 == checked.sha256:
            detail = _("“%(name)s” has the same content as “%(other)s”, which is attached already.")
            raise invalid("/file", "duplicate", detail % {"name": checked.name, "other": item.name})
        detail = _("Another file is attached as “%(name)s”. Take it off first, or rename this one.")
        raise invalid("/file", "name_taken", detail % {"name": checked.name})


@contextmanager
def stored_files() -> Iterator[list[Any]]:
    """Collects files stored in a transaction and deletes them again when it fails."""
    stored: list[Any] = []
    try:
        yield stored
    except BaseException:
        for file in stored:
            file.storage.delete(file.name)
        raise
