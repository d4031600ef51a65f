"""What is read of reviews: packages, signatures, decision, follow-through; scoped to the reader."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from pocs.common.actors import Actor
from pocs.common.errors import NotFound, Text
from pocs.common.reading import remembered
from pocs.people import policies
from pocs.people.models import User
from pocs.projects.models import Project
from pocs.reviews.choices import (
    CURRENT_APPROVALS,
    STANDING_STATES,
    DecisionState,
    ObservationKind,
    PackageState,
    SignOffState,
    Slot,
    TaskKind,
    WaiverState,
)
from pocs.reviews.difference import Difference, manifest_difference
from pocs.reviews.eligibility import FILLING, Candidate, candidates
from pocs.reviews.models import (
    BusinessResult,
    Conclusion,
    Condition,
    Decision,
    FollowThroughTask,
    Objection,
    Observation,
    ObservationReading,
    ObservationSchedule,
    Package,
    SignOff,
    Waiver,
)
from pocs.reviews.policy import NEVER_WAIVED, quorum_of

InProject = TypeVar("InProject", Package, Waiver, Decision)

_PEOPLE = ("raised_by", "answered_by", "ruled_by")


def packages_of(actor: Actor, project: Project) -> QuerySet[Package]:
    """The project's packages, newest first."""
    policies.require(actor, "project.view", project)
    rows = Package.objects.filter(project=project).select_related("project", "frozen_by")
    return rows.prefetch_related("signoffs__signer").order_by("-number")


def package_get(actor: Actor, pk: int) -> Package:
    """One package the actor may see; NotFound for a foreign or absent one."""
    rows = Package.objects.filter(pk=pk, project__organisation_id=actor.organisation_id)
    package = rows.select_related("project", "frozen_by").prefetch_related("signoffs__signer").first()
    return _seen(actor, package, _("There is no such package."))


def signoff_get(actor: Actor, pk: int) -> SignOff:
    rows = SignOff.objects.filter(pk=pk, package__project__organisation_id=actor.organisation_id)
    row = rows.select_related("package__project", "signer").first()
    if row is None:
        raise NotFound(_("There is no such signature."))
    policies.require(actor, "project.view", row.package.project, unseen=_("There is no such signature."))
    return row


def objections_of(actor: Actor, package: Package) -> QuerySet[Objection]:
    """The objections to a package, newest first."""
    policies.require(actor, "project.view", package.project)
    rows = Objection.objects.filter(package=package).select_related("package__project", "revision", *_PEOPLE)
    return rows.order_by("-id")


def objection_get(actor: Actor, pk: int) -> Objection:
    rows = Objection.objects.filter(pk=pk, package__project__organisation_id=actor.organisation_id)
    row = rows.select_related("package__project", "revision", *_PEOPLE).first()
    if row is None:
        raise NotFound(_("There is no such objection."))
    policies.require(actor, "project.view", row.package.project, unseen=_("There is no such objection."))
    return row


def waivers_of(actor: Actor, project: Project) -> QuerySet[Waiver]:
    """The project's waivers, newest first."""
    policies.require(actor, "project.view", project)
    rows = Waiver.objects.filter(project=project).select_related("requested_by", "decided_by", "project")
    return rows.order_by("-id")


def waiver_get(actor: Actor, pk: int) -> Waiver:
    rows = Waiver.objects.filter(pk=pk, project__organisation_id=actor.organisation_id)
    waiver = rows.select_related("project", "requested_by", "decided_by").first()
    return _seen(actor, waiver, _("There is no such waiver."))


def waived_guards(project: Project) -> set[str]:
    """Codes of the guards waived for the project now: granted and not expired."""
    rows = Waiver.objects.filter(project=project, state=WaiverState.GRANTED, expires_at__gt=timezone.now())
    return set(rows.values_list("guard", flat=True)) - NEVER_WAIVED


def decisions_of(actor: Actor, project: Project) -> QuerySet[Decision]:
    """The project's decisions, newest first, each with its conditions."""
    policies.require(actor, "project.view", project)
    rows = Decision.objects.filter(project=project)
    return (
        rows.select_related("project", "package", "proposed_by", "confirmed_by")
        .prefetch_related(
            "conditions__owner", "conditions__closed_by", "conditions__closing_revision__evidence"
        )
        .order_by("-id")
    )


def decision_get(actor: Actor, pk: int) -> Decision:
    rows = Decision.objects.filter(pk=pk, project__organisation_id=actor.organisation_id)
    decision = rows.select_related("project", "package", "proposed_by", "confirmed_by").first()
    return _seen(actor, decision, _("There is no such decision."))


@remembered
def current_decision(project: Project) -> Decision | None:
    """The decision that is proposed or confirmed now."""
    rows = Decision.objects.filter(
        project=project, state__in=[DecisionState.PROPOSED, DecisionState.CONFIRMED]
    )
    return rows.select_related("package", "proposed_by", "confirmed_by", "project").order_by("-id").first()


def condition_get(actor: Actor, pk: int) -> Condition:
    rows = Condition.objects.filter(pk=pk, decision__project__organisation_id=actor.organisation_id)
    row = rows.select_related("decision__project", "owner").first()
    if row is None:
        raise NotFound(_("There is no such condition."))
    policies.require(actor, "project.view", row.decision.project, unseen=_("There is no such condition."))
    return row


@remembered
def open_conditions(project: Project) -> list[Condition]:
    """Conditions of the confirmed decision that nothing has closed yet."""
    rows = Condition.objects.filter(
        decision__project=project, decision__state=DecisionState.CONFIRMED, closed_at__isnull=True
    )
    return list(rows.select_related("owner"))


def conclusion_of(actor: Actor, project: Project) -> Conclusion | None:
    policies.require(actor, "project.view", project)
    return Conclusion.objects.filter(project=project).select_related("updated_by").first()


def business_result_of(actor: Actor, project: Project) -> BusinessResult | None:
    policies.require(actor, "project.view", project)
    return BusinessResult.objects.filter(project=project).select_related("updated_by").first()


def task_get(actor: Actor, project: Project, kind: str) -> FollowThroughTask:
    """One of the three tasks; one that nobody has set yet is an unsaved row with version 0."""
    policies.require(actor, "project.view", project)
    if kind not in TaskKind.values:
        raise NotFound(_("There is no such task."))
    rows = FollowThroughTask.objects.filter(project=project, kind=kind).select_related("project", "owner")
    return rows.first() or FollowThroughTask(project=project, kind=kind, version=0)


def observation_get(actor: Actor, project: Project, kind: str) -> Observation:
    """One of the three observations; one without an observer yet is an unsaved row with version 0."""
    policies.require(actor, "project.view", project)
    return observation_row(project, kind)


def observation_row(project: Project, kind: str) -> Observation:
    """The same without a question of rights, for whoever only reads in."""
    if kind not in ObservationKind.values:
        raise NotFound(_("There is no such observation."))
    rows = Observation.objects.filter(project=project, kind=kind).select_related("project", "observer")
    return rows.first() or Observation(project=project, kind=kind, version=0)


def schedule_of(actor: Actor, project: Project) -> ObservationSchedule:
    """The repeated run of the observation; one that nobody has set yet is an unsaved row with version 0."""
    policies.require(actor, "project.view", project)
    rows = ObservationSchedule.objects.filter(project=project)
    found = rows.select_related(
        "project", "scenario_version__scenario", "target", "last_run", "set_by"
    ).first()
    return found or ObservationSchedule(project=project, version=0)


def readings_of(observation: Observation) -> QuerySet[ObservationReading]:
    """Readings of an observation that was read through `observation_get`, newest first."""
    return ObservationReading.objects.filter(observation_id=observation.pk).select_related(
        "entered_by", "run"
    )


def person_of(project: Project, pk: int) -> User | None:
    """A person of the project's organisation by number; None for anyone else."""
    return User.objects.filter(pk=pk, organisation_id=project.organisation_id).first()


@dataclass(frozen=True)
class TaskView:
    """One of the three tasks, named or not yet."""

    kind: TaskKind
    task: FollowThroughTask | None

    @property
    def label(self) -> Text:
        return self.kind.label

    @property
    def overdue(self) -> bool:
        return self.task is not None and self.task.overdue


@dataclass(frozen=True)
class ObservationView:
    """One of the three observations, with an observer or not yet."""

    kind: ObservationKind
    observation: Observation | None

    @property
    def label(self) -> Text:
        return self.kind.label

    @property
    def overdue(self) -> bool:
        return self.observation is not None and self.observation.overdue


@remembered
def task_views(project: Project) -> list[TaskView]:
    """Budget, procurement and launch, in this order."""
    rows = FollowThroughTask.objects.filter(project=project).select_related("owner", "done_by")
    found = {row.kind: row for row in rows}
    return [TaskView(kind, found.get(kind.value)) for kind in TaskKind]


@remembered
def observation_views(project: Project) -> list[ObservationView]:
    """Capacity, cost and stability, in this order."""
    rows = Observation.objects.filter(project=project).select_related("observer")
    found = {row.kind: row for row in rows.prefetch_related("readings__entered_by", "readings__run")}
    return [ObservationView(kind, found.get(kind.value)) for kind in ObservationKind]


@dataclass(frozen=True)
class SlotView:
    """One slot of a package as a reader sees it: its seats, its history, who may sign and why not.

    `current` is the seat that says most about the slot: a rejection, else what is still open, else the
    last approval. `mine` holds the acting person's candidacies: by their own role and as a deputy.
    """

    slot: Slot
    meaning: Text
    quorum: int
    seats: list[SignOff]
    history: list[SignOff] = field(default_factory=list)
    candidates: list[Candidate] = field(default_factory=list)
    mine: list[Candidate] = field(default_factory=list)

    @property
    def label(self) -> Text:
        return self.slot.label

    @property
    def current(self) -> SignOff | None:
        by_weight = sorted(
            self.seats, key=lambda row: (row.state != SignOffState.REJECTED, row.state in FILLING)
        )
        return by_weight[0] if by_weight else None

    @property
    def filled(self) -> bool:
        return len(self.seats) >= self.quorum and all(row.state in FILLING for row in self.seats)

    @property
    def approved(self) -> bool:
        """Whether as many approvals stand as the policy asks for."""
        standing = [row for row in self.seats if row.state in CURRENT_APPROVALS and not row.lapsed]
        return len(standing) >= self.quorum

    @property
    def lapsed(self) -> bool:
        """Whether the slot lacks a signature that is asked for no longer: the lead may ask again."""
        asked = [
            row for row in self.seats if row.state in (SignOffState.REQUESTED, *FILLING) and not row.lapsed
        ]
        return len(asked) < self.quorum

    @property
    def closed(self) -> bool:
        """Whether nobody could sign this slot now."""
        return not self.filled and not any(candidate.eligible for candidate in self.candidates)

    @property
    def names(self) -> str:
        """Who signed, one after the other."""
        return ", ".join(row.signed_as for row in self.seats if row.signed_as)


def slot_views(package: Package, actor: Actor | None = None) -> list[SlotView]:
    """The three slots of the package; `mine` is filled for the acting person.

    Candidates are looked up only while the package takes signatures.
    """
    waiting = package.state == PackageState.FROZEN
    found = candidates(package.project, package) if waiting else {slot.value: [] for slot in Slot}
    rows = _signoffs(package)
    acting = actor.user_id if actor is not None and actor.is_person else None
    return [_slot_view(package, slot, rows, found[slot.value], acting) for slot in Slot]


@remembered
def _signoffs(package: Package) -> list[SignOff]:
    return list(package.signoffs.select_related("signer", "on_behalf_of").order_by("id"))


def _slot_view(
    package: Package, slot: Slot, signoffs: list[SignOff], found: list[Candidate], acting: int | None
) -> SlotView:
    rows = [row for row in signoffs if row.slot == slot.value]
    newest = {row.seat: row for row in rows if row.state != SignOffState.WITHDRAWN}
    seats = [newest[seat] for seat in sorted(newest)]
    return SlotView(
        slot=slot,
        meaning=_(rows[0].meaning) if rows else "",
        quorum=quorum_of(package, slot.value),
        seats=seats,
        history=[row for row in rows if row not in seats],
        candidates=found,
        mine=[item for item in found if acting is not None and item.user.pk == acting],
    )


def difference_to_previous(package: Package) -> tuple[Package | None, list[Difference]]:
    """The package before this one and what changed since; (None, []) for the first."""
    rows = Package.objects.filter(project_id=package.project_id, number__lt=package.number)
    previous = rows.order_by("-number").first()
    if previous is None:
        return None, []
    return previous, manifest_difference(previous.manifest, package.manifest)


@remembered
def latest_package(project: Project) -> Package | None:
    """The newest package whatever its state."""
    rows = Package.objects.filter(project=project).select_related("project", "frozen_by")
    return rows.order_by("-number").first()


@remembered
def current_package(project: Project) -> Package | None:
    """The package that stands for the project: frozen or approved, not stale, not rejected."""
    latest = latest_package(project)
    if latest is None or latest.state in STANDING_STATES:
        return latest
    rows = Package.objects.filter(project=project, state__in=STANDING_STATES)
    return rows.select_related("project", "frozen_by").order_by("-number").first()


def waiting_packages(projects: Iterable[Project]) -> QuerySet[Package]:
    """Packages of these projects that wait for signatures."""
    rows = Package.objects.filter(project__in=list(projects), state=PackageState.FROZEN)
    return rows.select_related("project").order_by("frozen_at", "id")


def members_of(project: Project) -> list[User]:
    """Active people with any role on the project: those to whom a duty can be given."""
    ids = project.members.values("user_id")
    return list(User.objects.filter(pk__in=ids, is_active=True).order_by("username"))


def _seen(actor: Actor, row: InProject | None, detail: str) -> InProject:
    if row is None:
        raise NotFound(detail)
    policies.require(actor, "project.view", row.project, unseen=detail)
    return row
