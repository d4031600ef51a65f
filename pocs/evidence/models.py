"""Evidence: typed records whose revisions are append-only, hashed and reviewed by someone else."""

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from pocs.common.models import VersionedModel
from pocs.evidence.choices import (
    ContributionKind,
    EvidenceType,
    RequestState,
    RevisionState,
    ThreadState,
)
from pocs.people.models import User
from pocs.projects.choices import ReadinessKind
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
    submit_note = models.TextField(blank=True)  # what the author tells the reviewer; no content
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


class ReviewRequest(VersionedModel):
    """That one person was asked to review one revision; answered by any review of it."""

    revision = models.ForeignKey(EvidenceRevision, models.CASCADE, related_name="review_requests")
    person = models.ForeignKey(User, models.PROTECT, related_name="review_requests")
    requested_by = models.ForeignKey(User, models.PROTECT, related_name="+")
    note = models.TextField(_("note"), blank=True)
    state = models.CharField(max_length=10, choices=RequestState.choices, default=RequestState.WAITING)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(
                fields=["revision", "person"],
                condition=models.Q(state="waiting"),
                name="one_waiting_request_per_person",
            )
        ]
        indexes = [
            # the inbox: which reviews this person was asked for
            models.Index(
                fields=["person"], condition=models.Q(state="waiting"), name="review_request_waiting"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.revision} → {self.person}"


class Thread(VersionedModel):
    """A discussion of one line of evidence, anchored to the revision it was opened on.

    `path` names the line (see `pocs.evidence.lines`), `quote` one line of a longer text (empty: all of
    it), `text` what stood there. Later revisions show it as long as they still hold the line.
    """

    evidence = models.ForeignKey(Evidence, models.CASCADE, related_name="threads")
    revision = models.ForeignKey(EvidenceRevision, models.CASCADE, related_name="threads")
    path = models.CharField(max_length=700)
    label = models.CharField(max_length=700)
    quote = models.TextField(blank=True)
    text = models.TextField(blank=True)
    state = models.CharField(max_length=10, choices=ThreadState.choices, default=ThreadState.OPEN)
    opened_by = models.ForeignKey(User, models.PROTECT, related_name="+")
    resolved_by = models.ForeignKey(User, models.PROTECT, related_name="+", null=True)
    resolved_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.revision} · {self.label[:80]}"


class Comment(models.Model):
    """One contribution to a thread; written once, never changed."""

    thread = models.ForeignKey(Thread, models.CASCADE, related_name="comments")
    author = models.ForeignKey(User, models.PROTECT, related_name="+")
    text = models.TextField(_("comment"))
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return self.text[:80]


class ReadinessSupport(models.Model):
    """That a piece of evidence shows one of the project's readiness points (E9)."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="readiness_support")
    kind = models.CharField(max_length=12, choices=ReadinessKind.choices)
    evidence = models.ForeignKey(Evidence, models.CASCADE, related_name="readiness_support")
    linked_by = models.ForeignKey(User, models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["kind", "id"]
        constraints = [
            models.UniqueConstraint(fields=["project", "kind", "evidence"], name="readiness_support_once")
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} · {self.evidence.title}"


class RunIndex(models.Model):
    """That the requests of an ended run were read once and grouped; `records_digest` says which."""

    run = models.OneToOneField(Run, models.CASCADE, related_name="request_index")
    records_digest = models.CharField(max_length=64)
    built_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return str(self.run)


class RequestGroup(models.Model):
    """The measured requests of one run with one tenant, application and outcome (E2).

    `record_ids` are the keys of the request records in order, packed as 64-bit integers; the values
    are ascending 64-bit floats in ms, of the requests that observed them, and `figures` what they give
    by themselves. So a query over a million requests reads a few rows, exactly, instead of all of them.
    """

    index = models.ForeignKey(RunIndex, models.CASCADE, related_name="groups")
    tenant = models.CharField(max_length=120, blank=True)
    application = models.CharField(max_length=120, blank=True)
    outcome = models.CharField(max_length=14)
    count = models.PositiveIntegerField()
    figures = models.JSONField(default=dict)
    record_ids = models.BinaryField()
    ttft_ms = models.BinaryField()
    tpot_ms = models.BinaryField()
    queue_wait_ms = models.BinaryField()

    class Meta:
        ordering = ["index_id", "tenant", "application", "outcome"]
        constraints = [
            models.UniqueConstraint(
                fields=["index", "tenant", "application", "outcome"], name="request_group_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.tenant} / {self.application}: {self.count} {self.outcome}"
