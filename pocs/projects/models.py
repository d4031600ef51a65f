"""Projects: the POC, its members, what it declares, its scenarios and its CI tokens."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from pocs.common.actors import Actor
from pocs.common.models import VersionedModel
from pocs.people.models import Organisation, Team, User
from pocs.people.roles import ProjectRole
from pocs.projects.choices import (
    AffectedKind,
    DeclarationKind,
    OptimisationGoal,
    ProjectState,
    ReadinessKind,
    ScenarioKind,
    ScenarioState,
)


class Project(VersionedModel):
    organisation = models.ForeignKey(Organisation, models.PROTECT, related_name="projects")
    name = models.CharField(_("name"), max_length=160)
    goal = models.TextField(_("what is to be decided"), blank=True)
    optimisation_goal = models.CharField(
        _("what an optimisation is to serve"), max_length=12, choices=OptimisationGoal.choices, blank=True
    )
    state = models.CharField(max_length=20, choices=ProjectState.choices, default=ProjectState.DRAFT)
    where_applies = models.TextField(_("where it applies (Q24)"), blank=True)
    where_not = models.TextField(_("where it does not apply (Q25)"), blank=True)
    demo_environment_only = models.BooleanField(_("demo environment only (X16)"), default=False)
    environment_note = models.TextField(_("environment"), blank=True)
    supplier = models.TextField(_("suppliers and what each delivers (Q23)"), blank=True)
    budget_basis = models.TextField(_("budget basis (E10)"), blank=True)
    responsibility_boundary = models.TextField(_("responsibility boundary (Q28)"), blank=True)
    created_by = models.ForeignKey(User, models.PROTECT, related_name="+")
    template = models.CharField(max_length=20, blank=True)  # key of pocs.projects.blueprints
    cloned_from = models.ForeignKey("self", models.PROTECT, related_name="clones", null=True)

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [models.UniqueConstraint(fields=["organisation", "name"], name="project_name_once")]

    def __str__(self) -> str:
        return self.name


class ProjectMember(models.Model):
    """One role of one person on one project; a person may hold several."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="members")
    user = models.ForeignKey(User, models.PROTECT, related_name="project_roles")
    role = models.CharField(max_length=20, choices=ProjectRole.choices)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["role", "user_id"]
        constraints = [models.UniqueConstraint(fields=["project", "user", "role"], name="member_role_once")]

    def __str__(self) -> str:
        return f"{self.user} · {self.get_role_display()}"


class AffectedItem(VersionedModel):
    """An application, team or kind of data that the service touches (E8, Q11)."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="affected")
    kind = models.CharField(max_length=12, choices=AffectedKind.choices)
    name = models.CharField(_("name"), max_length=200)
    owner = models.CharField(_("owner"), max_length=200, blank=True)
    note = models.CharField(_("note"), max_length=500, blank=True)

    class Meta:
        ordering = ["kind", "name", "id"]

    def __str__(self) -> str:
        return self.name


class ReadinessItem(VersionedModel):
    """One of the five readiness points with the evidence for it (E9, Q12)."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="readiness")
    kind = models.CharField(max_length=12, choices=ReadinessKind.choices)
    ready = models.BooleanField(_("ready"), default=False)
    basis = models.TextField(_("what shows it"), blank=True)
    team = models.ForeignKey(Team, models.PROTECT, related_name="+", null=True, blank=True)

    class Meta:
        ordering = ["kind"]
        constraints = [models.UniqueConstraint(fields=["project", "kind"], name="readiness_kind_once")]

    def __str__(self) -> str:
        return self.get_kind_display()


class Declaration(VersionedModel):
    """What makes the POC real: requests, roles and operating metrics, and where they come from."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="declarations")
    kind = models.CharField(max_length=20, choices=DeclarationKind.choices)
    statement = models.TextField(_("statement"), blank=True)
    source = models.CharField(_("source"), max_length=300, blank=True)

    class Meta:
        ordering = ["kind"]
        constraints = [models.UniqueConstraint(fields=["project", "kind"], name="declaration_kind_once")]

    def __str__(self) -> str:
        return self.get_kind_display()


class Scenario(VersionedModel):
    """A named scenario; what is run is one of its versions, written `slug@number`."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="scenarios")
    slug = models.SlugField(_("short name"), max_length=60)
    name = models.CharField(_("name"), max_length=160)
    kind = models.CharField(_("kind"), max_length=20, choices=ScenarioKind.choices)

    class Meta:
        ordering = ["slug"]
        constraints = [models.UniqueConstraint(fields=["project", "slug"], name="scenario_slug_once")]

    def __str__(self) -> str:
        return self.slug


class ScenarioVersion(VersionedModel):
    """One immutable definition: `spec` (see `pocs.projects.scenario_spec`) and its digest."""

    scenario = models.ForeignKey(Scenario, models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    state = models.CharField(max_length=10, choices=ScenarioState.choices, default=ScenarioState.DRAFT)
    spec = models.JSONField()
    digest = models.CharField(max_length=64)
    created_by = models.ForeignKey(User, models.PROTECT, related_name="+")
    approved_by = models.ForeignKey(User, models.PROTECT, related_name="+", null=True)
    approved_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["scenario_id", "-number"]
        constraints = [models.UniqueConstraint(fields=["scenario", "number"], name="scenario_version_once")]

    def __str__(self) -> str:
        return f"{self.scenario.slug}@{self.number}"


class WorkloadFile(models.Model):
    """A request set or trace as it was read: redacted, in the kept form of the reader, under its digest."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="workloads")
    name = models.CharField(_("file"), max_length=200)
    digest = models.CharField(max_length=64)
    content = models.BinaryField()  # zlib
    report = models.JSONField()
    uploaded_by = models.ForeignKey(User, models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    confirmed_at = models.DateTimeField(null=True)  # looked at, and to be used

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [models.UniqueConstraint(fields=["project", "digest"], name="workload_digest_once")]

    def __str__(self) -> str:
        return self.name


class CIToken(models.Model):
    """A machine's way in: bound to one project, answered for by its sponsor, stored as a digest."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="ci_tokens")
    name = models.CharField(_("name"), max_length=80)
    sponsor = models.ForeignKey(User, models.PROTECT, related_name="sponsored_tokens")
    prefix = models.CharField(max_length=12)
    token_digest = models.CharField(max_length=64, unique=True)
    scopes = models.JSONField(default=list)
    allowed_addresses = models.JSONField(default=list, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-created_at", "-id"]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    def as_actor(self) -> Actor:
        """The token as the author of a change: never its sponsor, who only answers for it."""
        return Actor(
            kind="token",
            organisation_id=self.project.organisation_id,
            label=f"{self.name} · {self.sponsor}",
            user_id=self.sponsor_id,
            token_id=self.pk,
            token_project_id=self.project_id,
            token_scopes=tuple(self.scopes),
        )
