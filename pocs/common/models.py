"""Base of all models, the audit chain's tables, live events and idempotency keys."""

from typing import Any, NoReturn

from django.db import models


class VersionedModel(models.Model):
    """A row people edit: `version` is its ETag and grows by one with each save through a service."""

    version = models.PositiveIntegerField(default=1, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        abstract = True


class AuditHead(models.Model):
    """Length and last hash of one organisation's chain; its row lock orders the writers."""

    organisation_id = models.BigIntegerField(primary_key=True)
    length = models.PositiveBigIntegerField(default=0)
    hash = models.CharField(max_length=64, default="0" * 64)

    def __str__(self) -> str:
        return f"{self.organisation_id}: {self.length}"


class AppendOnly(models.QuerySet["AuditEntry"]):
    """Rows that are written once: changing or deleting them through the ORM raises TypeError."""

    def _refuse(self, *args: object, **kwargs: object) -> NoReturn:
        raise TypeError("audit entries are written once and never changed or deleted")

    update = _refuse
    delete = _refuse
    bulk_update = _refuse
    update_or_create = _refuse


class AuditEntry(models.Model):
    """One change, append-only; `hash` covers every other field and `previous_hash`.

    Organisations and people are referred to by number: entries outlive everything they name.
    """

    organisation_id = models.BigIntegerField()
    sequence = models.PositiveBigIntegerField()
    at = models.DateTimeField()
    actor = models.JSONField()
    verb = models.CharField(max_length=80)
    object_type = models.CharField(max_length=80)
    object_id = models.CharField(max_length=64)
    object_label = models.CharField(max_length=300, blank=True)
    project_id = models.BigIntegerField(null=True)
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    previous_hash = models.CharField(max_length=64)
    hash = models.CharField(max_length=64)

    objects = AppendOnly.as_manager()

    class Meta:
        ordering = ["organisation_id", "sequence"]
        constraints = [
            models.UniqueConstraint(fields=["organisation_id", "sequence"], name="audit_sequence_once"),
        ]
        indexes = [
            # the project's history page
            models.Index(fields=["project_id", "-sequence"], name="audit_by_project"),
            # the history of one object
            models.Index(fields=["object_type", "object_id", "sequence"], name="audit_by_object"),
        ]

    def __str__(self) -> str:
        return f"{self.organisation_id}/{self.sequence} {self.verb}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise TypeError("an audit entry is written once and never changed")
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("an audit entry is never deleted")


class LiveEvent(models.Model):
    """One numbered event of a live stream (`run:12`), kept so that a page can replay what it missed."""

    stream = models.CharField(max_length=80)
    number = models.PositiveBigIntegerField()
    kind = models.CharField(max_length=40)
    data = models.JSONField()
    at = models.DateTimeField()

    class Meta:
        ordering = ["stream", "number"]
        constraints = [models.UniqueConstraint(fields=["stream", "number"], name="live_event_number_once")]

    def __str__(self) -> str:
        return f"{self.stream} {self.number} {self.kind}"


class IdempotencyKey(models.Model):
    """The first answer to a POST with an `Idempotency-Key`, per actor and path."""

    actor = models.CharField(max_length=80)
    path = models.CharField(max_length=300)
    key = models.CharField(max_length=200)
    body_digest = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(null=True)  # null while the first request is in flight
    response = models.JSONField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["actor", "path", "key"], name="idempotency_key_once"),
        ]

    def __str__(self) -> str:
        return f"{self.actor} {self.path} {self.key}"
