"""Notices to people, their preferences, and webhooks with the log of their deliveries."""

import uuid

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from pocs.common.models import VersionedModel
from pocs.common.phrases import read_said
from pocs.notices.choices import Channel, DeliveryState
from pocs.people.models import Organisation, User
from pocs.projects.models import Project

DIGEST_HOUR = 8


class AuditCursor(models.Model):
    """How far the organisation's audit chain was read for notices."""

    organisation_id = models.BigIntegerField(primary_key=True)
    sequence = models.PositiveBigIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.organisation_id}: {self.sequence}"


class Notice(models.Model):
    """One thing told to one person; `key` keeps it from being told twice.

    `text` and `detail` are as they were told; where the system gave the words, `text_said` and `detail_said`
    hold them to be read in any language (see `pocs.common.phrases`).
    """

    recipient = models.ForeignKey(User, models.CASCADE, related_name="notices")
    project = models.ForeignKey(Project, models.CASCADE, related_name="+", null=True)
    kind = models.CharField(max_length=40)
    key = models.CharField(max_length=120)
    text = models.CharField(max_length=500)
    detail = models.TextField(blank=True)
    text_said = models.JSONField(null=True)
    detail_said = models.JSONField(null=True)
    path = models.CharField(max_length=300)
    due_on = models.DateField(null=True)
    channel = models.CharField(max_length=6, choices=Channel.choices)
    created_at = models.DateTimeField(default=timezone.now)
    mailed_at = models.DateTimeField(null=True)
    mail_attempts = models.PositiveSmallIntegerField(default=0)
    mail_next_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-id"]
        constraints = [models.UniqueConstraint(fields=["recipient", "key"], name="notice_once")]
        indexes = [
            # the sender: what is to be mailed now
            models.Index(
                fields=["mail_next_at"],
                condition=models.Q(channel="now", mailed_at=None),
                name="notice_to_mail",
            ),
            # the page of one person
            models.Index(fields=["recipient", "-id"], name="notice_of_person"),
        ]

    def __str__(self) -> str:
        return self.text

    @property
    def shown_text(self) -> str:
        """What was told, in the reader's language."""
        return read_said(self.text_said) if self.text_said else self.text

    @property
    def shown_detail(self) -> str:
        return read_said(self.detail_said) if self.detail_said else self.detail


class NoticeSettings(VersionedModel):
    """What one person chose: `channels` by kind where it differs, and when the digest comes."""

    user = models.OneToOneField(User, models.CASCADE, related_name="notice_settings")
    channels = models.JSONField(default=dict, blank=True)
    digest_on = models.BooleanField(_("daily digest"), default=True)
    digest_hour = models.PositiveSmallIntegerField(_("hour of the digest"), default=DIGEST_HOUR)
    last_digest_on = models.DateField(null=True)  # in the person's time zone

    def __str__(self) -> str:
        return str(self.user)


class Webhook(VersionedModel):
    """An address that is told: of a person, or of the organisation when it has no owner."""

    organisation = models.ForeignKey(Organisation, models.CASCADE, related_name="webhooks")
    owner = models.ForeignKey(User, models.CASCADE, related_name="webhooks", null=True)
    name = models.CharField(_("name"), max_length=80)
    url = models.CharField(_("address"), max_length=500)
    secret = models.BinaryField(editable=False)  # encrypted; shown once
    kinds = models.JSONField(default=list, blank=True)  # empty: every kind
    active = models.BooleanField(_("active"), default=True)
    failures = models.PositiveSmallIntegerField(default=0)  # attempts that failed since the last success
    disabled_at = models.DateTimeField(null=True)
    created_by = models.ForeignKey(User, models.PROTECT, related_name="+")

    class Meta:
        ordering = ["name", "id"]

    def __str__(self) -> str:
        return self.name

    def wants(self, kind: str) -> bool:
        """Whether notices of this kind are sent to it."""
        return self.active and (not self.kinds or kind in self.kinds)


class WebhookDelivery(models.Model):
    """One message to one webhook: `body` are the exact characters that each attempt signs and sends."""

    webhook = models.ForeignKey(Webhook, models.CASCADE, related_name="deliveries")
    uuid = models.UUIDField(default=uuid.uuid4, unique=True)
    key = models.CharField(max_length=120)
    kind = models.CharField(max_length=40)
    body = models.TextField()
    state = models.CharField(max_length=10, choices=DeliveryState.choices, default=DeliveryState.WAITING)
    attempts = models.PositiveSmallIntegerField(default=0)
    next_attempt_at = models.DateTimeField(default=timezone.now)
    status = models.PositiveSmallIntegerField(null=True)  # HTTP status of the last attempt
    error = models.CharField(max_length=300, blank=True)
    duration_ms = models.FloatField(null=True)
    created_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]
        constraints = [models.UniqueConstraint(fields=["webhook", "key"], name="delivery_once")]
        indexes = [
            # the sender: what is due
            models.Index(
                fields=["next_attempt_at"], condition=models.Q(state="waiting"), name="delivery_due"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} → {self.webhook}"
