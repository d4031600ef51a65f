"""Evidence: typed records whose revisions are append-only, hashed and reviewed by someone else."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from pocs.common.models import VersionedModel
from pocs.evidence.choices import EvidenceType, RevisionState
from pocs.people.models import User
from pocs.projects.models import CIToken, Project
from pocs.runs.models import Run


class Evidence(VersionedModel):
    """One piece of evidence of one of the four types; its content lives in its revisions."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="evidence")
    type = models.CharField(max_length=16, choices=EvidenceType.choices)
    title = models.CharField(_("title"), max_length=200)

    class Meta:
        ordering = ["type", "id"]
        verbose_name_plural = "evidence"

    def __str__(self) -> str:
        return self.title


class EvidenceRevision(VersionedModel):
    """One revision: `body` follows the schema of its type, `content_sha256` covers all of it.

    Submitted and later revisions never change their content; an edit makes the next revision.
    """

    evidence = models.ForeignKey(Evidence, models.CASCADE, related_name="revisions")
    number = models.PositiveIntegerField()
    state = models.CharField(max_length=12, choices=RevisionState.choices, default=RevisionState.DRAFT)
    body = models.JSONField()
    runs = models.ManyToManyField(Run, related_name="evidence_revisions", blank=True)
    content_sha256 = models.CharField(max_length=64)
    created_by = models.ForeignKey(User, models.PROTECT, related_name="+")
    token = models.ForeignKey(CIToken, models.PROTECT, related_name="+", null=True)
    submitted_at = models.DateTimeField(null=True)
    submitted_by = models.ForeignKey(User, models.PROTECT, related_name="+", null=True)
    reviewed_by = models.ForeignKey(User, models.PROTECT, related_name="+", null=True)
    reviewed_at = models.DateTimeField(null=True)
    review_note = models.TextField(blank=True)  # the reason, when returned

    class Meta:
        ordering = ["evidence_id", "-number"]
        constraints = [models.UniqueConstraint(fields=["evidence", "number"], name="revision_number_once")]

    def __str__(self) -> str:
        return f"{self.evidence.title} r{self.number}"


class Attachment(models.Model):
    """A file of a revision: checked by content, stored by digest, served as a download."""

    revision = models.ForeignKey(EvidenceRevision, models.CASCADE, related_name="attachments")
    name = models.CharField(max_length=200)
    content_type = models.CharField(max_length=100)
    size_bytes = models.PositiveBigIntegerField()
    sha256 = models.CharField(max_length=64)
    file = models.FileField(upload_to="attachments/%Y/%m/")
    uploaded_by = models.ForeignKey(User, models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return self.name
