"""People: organisation (the hard boundary), teams and users."""

from datetime import date

from django.contrib.auth.models import AbstractUser
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from pocs.common.actors import Actor
from pocs.common.models import VersionedModel
from pocs.people.roles import OrganisationRole


class Organisation(VersionedModel):
    name = models.CharField(_("name"), max_length=120, unique=True)
    slug = models.SlugField(_("short name"), unique=True)

    def __str__(self) -> str:
        return self.name


class Team(VersionedModel):
    organisation = models.ForeignKey(Organisation, models.PROTECT, related_name="teams")
    name = models.CharField(_("name"), max_length=120)
    contact = models.CharField(_("contact or alert route"), max_length=200, blank=True)

    class Meta:
        ordering = ["name", "id"]
        constraints = [models.UniqueConstraint(fields=["organisation", "name"], name="team_name_once")]

    def __str__(self) -> str:
        return self.name


class User(AbstractUser):
    """A person of one organisation; deactivated, never deleted. Superusers get no right from it."""

    organisation = models.ForeignKey(Organisation, models.PROTECT, related_name="users", null=True)
    organisation_role = models.CharField(
        max_length=10, choices=OrganisationRole.choices, default=OrganisationRole.MEMBER
    )
    team = models.ForeignKey(Team, models.PROTECT, related_name="users", null=True, blank=True)
    language = models.CharField(_("language"), max_length=10, default="", blank=True)
    time_zone = models.CharField(_("time zone"), max_length=64, default="UTC")

    class Meta:
        ordering = ["username"]

    def __str__(self) -> str:
        return self.get_full_name() or self.username

    def as_actor(self) -> Actor:
        """This person as the author of a change; raises ValueError without an organisation."""
        if self.organisation_id is None:
            raise ValueError("a person without an organisation cannot act")
        return Actor(kind="user", organisation_id=self.organisation_id, label=str(self), user_id=self.pk)


class Delegation(models.Model):
    """For some days a deputy may sign where the principal may: dated, one at a time, never passed on."""

    organisation = models.ForeignKey(Organisation, models.PROTECT, related_name="delegations")
    principal = models.ForeignKey(User, models.PROTECT, related_name="delegations_given")
    deputy = models.ForeignKey(User, models.PROTECT, related_name="delegations_received")
    starts_on = models.DateField(_("from"))
    ends_on = models.DateField(_("until"))  # the last day on which it holds (UTC)
    reason = models.CharField(_("reason"), max_length=300)
    created_at = models.DateTimeField(auto_now_add=True)
    revoked_at = models.DateTimeField(null=True)
    revoked_by = models.ForeignKey(User, models.PROTECT, related_name="+", null=True)

    class Meta:
        ordering = ["-starts_on", "-id"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(ends_on__gte=models.F("starts_on")), name="delegation_ends_after_start"
            ),
            models.CheckConstraint(
                condition=~models.Q(principal=models.F("deputy")), name="delegation_to_another"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.principal} → {self.deputy}"

    @property
    def place(self) -> str:
        """`revoked`, `past`, `coming` or `current`, by today (UTC)."""
        if self.revoked_at is not None:
            return "revoked"
        today: date = timezone.now().date()
        if self.ends_on < today:
            return "past"
        return "coming" if self.starts_on > today else "current"
