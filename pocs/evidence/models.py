"""Evidence: typed records whose revisions are append-only, hashed and reviewed by someone else."""

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from pocs.common.models import VersionedModel
from pocs.evidence.choices import ContributionKind, EvidenceType, RevisionState
from pocs.people.models import User
from pocs.projects.models import CIToken, Project
from pocs.runs.models import Run


class Evidence(VersionedModel):
    """One piece of evidence of one of the four types; its content lives in its revisions.

    `version` grows with every change to the evidence, its revisions and attachments: it is what an
    editor's form was built on. `title` repeats that of the newest revision, for lists.
    """

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
    title = models.CharField(_("title"), max_length=200)
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
        constraints = [
            models.UniqueConstraint(fields=["evidence", "number"], name="revision_number_once"),
            models.UniqueConstraint(
                fields=["evidence"], condition=models.Q(state="draft"), name="one_draft_per_evidence"
            ),
        ]
        indexes = [
            # the inbox: what waits for a reviewer
            models.Index(
                fields=["submitted_at"], condition=models.Q(state="submitted"), name="revision_to_review"
            ),
        ]

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
    created_at = models.DateTimeField(default=timezone.now)  # kept when a new revision carries the file on

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return self.name


class Contribution(models.Model):
    """Who had a hand in a revision, and how; append-only, so that a removed file still counts.

    `user` is the person, or the sponsor of `token`. Nobody listed here reviews the evidence.
    """

    revision = models.ForeignKey(EvidenceRevision, models.CASCADE, related_name="contributions")
    user = models.ForeignKey(User, models.PROTECT, related_name="+")
    token = models.ForeignKey(CIToken, models.PROTECT, related_name="+", null=True)
    kind = models.CharField(max_length=10, choices=ContributionKind.choices)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(
                fields=["revision", "user", "kind"],
                condition=models.Q(token=None),
                name="contribution_once_by_person",
            ),
            models.UniqueConstraint(
                fields=["revision", "token", "kind"],
                condition=models.Q(token__isnull=False),
                name="contribution_once_by_token",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user} {self.kind} {self.revision}"
