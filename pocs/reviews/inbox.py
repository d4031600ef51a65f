"""What waits for one person across their projects: reviews, signatures, decisions, duties, bad endings."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, timedelta

from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from pocs.common.actors import Actor
from pocs.common.errors import Missing, Text
from pocs.evidence.selectors import waiting_for_review
from pocs.people.roles import CAPABILITIES
from pocs.projects.choices import ProjectState
from pocs.projects.models import Project, ProjectMember
from pocs.projects.selectors import progress_of, projects_visible_to
from pocs.reviews.choices import DecisionState, ObservationState, SignOffState, TaskState, WaiverState
from pocs.reviews.eligibility import candidates
from pocs.reviews.models import Condition, Decision, FollowThroughTask, Observation, Waiver, is_past
from pocs.reviews.selectors import waiting_packages
from pocs.reviews.services.decisions import confirm_hindrance
from pocs.runs.choices import RunState, Validity
from pocs.runs.models import Run

ENDED_STATES = (ProjectState.CLOSED, ProjectState.CANCELLED)
BAD_RUNS_WITHIN = timedelta(days=14)
BAD_RUNS_MAX = 10
LED_PROJECTS_MAX = 10


@dataclass(frozen=True)
class Item:
    """One thing to do: what, in which project, where, and by when."""

    title: Text
    project: Project
    url: str
    detail: Text = ""
    due_on: date | None = None

    @property
    def overdue(self) -> bool:
        return is_past(self.due_on)


@dataclass(frozen=True)
class LedProject:
    """What is missing next in a project that the person leads."""

    project: Project
    next_label: Text
    missing: list[Missing]
    notes: list[Text] = field(default_factory=list)


@dataclass(frozen=True)
class Inbox:
    """Everything that waits for one person, by kind; duties with the overdue first."""

    signatures: list[Item]
    reviews: list[Item]
    decisions: list[Item]
    waivers: list[Item]
    duties: list[Item]
    bad_runs: list[Item]
    led: list[LedProject]
    has_projects: bool

    @property
    def count(self) -> int:
        """Things to do, without the outlook on one's own projects."""
        kinds = (self.signatures, self.reviews, self.decisions, self.waivers, self.duties, self.bad_runs)
        return sum(len(kind) for kind in kinds)


def inbox_of(actor: Actor) -> Inbox:
    """What waits for the acting person now."""
    projects = {project.pk: project for project in projects_visible_to(actor)}
    still_open = [project for project in projects.values() if project.state not in ENDED_STATES]
    roles = _roles(actor, still_open)
    return Inbox(
        signatures=_signatures(
            actor, _with(roles, still_open, "signoff.business", "signoff.platform", "signoff.security")
        ),
        reviews=_reviews(actor),
        decisions=_decisions(actor, _with(roles, still_open, "decision.confirm")),
        waivers=_waivers(actor, _with(roles, still_open, "waiver.grant")),
        duties=_duties(actor, still_open),
        bad_runs=_bad_runs(actor, still_open),
        led=[_led(project) for project in _with(roles, still_open, "project.advance")[:LED_PROJECTS_MAX]],
        has_projects=bool(projects),
    )


def _roles(actor: Actor, projects: Iterable[Project]) -> dict[int, set[str]]:
    rows = ProjectMember.objects.filter(user_id=actor.user_id or 0, project__in=list(projects))
    found: dict[int, set[str]] = {}
    for project_id, role in rows.values_list("project_id", "role"):
        found.setdefault(project_id, set()).add(role)
    return found


def _with(roles: dict[int, set[str]], projects: list[Project], *capabilities: str) -> list[Project]:
    """Those of the projects on which the person's roles give one of the capabilities."""
    wanted = set().union(*(CAPABILITIES[capability] for capability in capabilities))
    return [project for project in projects if roles.get(project.pk, set()) & wanted]


def _signatures(actor: Actor, projects: list[Project]) -> list[Item]:
    items = []
    for package in waiting_packages(projects):
        requested = package.signoffs.filter(state=SignOffState.REQUESTED)
        mine = candidates(package.project, package)
        for signoff in requested:
            if any(item.eligible and item.user.pk == actor.user_id for item in mine[signoff.slot]):
                title = _("Sign package %(number)d: %(slot)s") % {
                    "number": package.number,
                    "slot": signoff.get_slot_display(),
                }
                url = reverse("reviews:package", args=[package.pk])
                items.append(Item(title, package.project, url, _(signoff.meaning)))
    return items


def _reviews(actor: Actor) -> list[Item]:
    return [
        Item(
            _("Review “%(title)s”, revision %(number)d")
            % {"title": revision.title, "number": revision.number},
            revision.evidence.project,
            reverse("evidence:detail", args=[revision.evidence_id]),
            revision.evidence.get_type_display(),
        )
        for revision in waiting_for_review(actor)
    ]


def _decisions(actor: Actor, projects: list[Project]) -> list[Item]:
    rows = Decision.objects.filter(project__in=projects, state=DecisionState.PROPOSED)
    return [
        Item(
            _("Confirm the decision “%(outcome)s”") % {"outcome": decision.get_outcome_display()},
            decision.project,
            reverse("reviews:decision", args=[decision.project_id]),
            _("proposed by %(who)s") % {"who": decision.proposed_by},
        )
        for decision in rows.select_related("project", "proposed_by", "package")
        if actor.user_id is not None and not confirm_hindrance(decision, actor.user_id)
    ]


def _waivers(actor: Actor, projects: list[Project]) -> list[Item]:
    rows = Waiver.objects.filter(
        project__in=projects, state=WaiverState.REQUESTED, expires_at__gt=timezone.now()
    )
    rows = rows.exclude(requested_by_id=actor.user_id)
    return [
        Item(
            _("Grant or refuse the waiver for %(guard)s") % {"guard": waiver.guard},
            waiver.project,
            reverse("reviews:waivers", args=[waiver.project_id]),
            waiver.reason[:140],
        )
        for waiver in rows.select_related("project")
    ]


def _duties(actor: Actor, projects: list[Project]) -> list[Item]:
    """Conditions, tasks and observations that carry the person's name; the overdue and early ones first."""
    conditions = Condition.objects.filter(
        decision__project__in=projects,
        decision__state=DecisionState.CONFIRMED,
        owner_id=actor.user_id,
        closed_at__isnull=True,
    ).select_related("decision__project")
    tasks = FollowThroughTask.objects.filter(
        project__in=projects, owner_id=actor.user_id, state=TaskState.OPEN
    ).select_related("project")
    observations = (
        Observation.objects.filter(project__in=projects, observer_id=actor.user_id)
        .exclude(state=ObservationState.CLOSED)
        .select_related("project")
    )
    items = [
        Item(
            _("Close the condition “%(text)s”") % {"text": condition.text[:100]},
            condition.decision.project,
            reverse("reviews:decision", args=[condition.decision.project_id]),
            due_on=condition.due_on,
        )
        for condition in conditions
    ]
    items += [
        Item(
            _("Follow-through: %(task)s") % {"task": task.get_kind_display()},
            task.project,
            reverse("reviews:follow_through", args=[task.project_id]),
            task.note[:140],
            task.due_on,
        )
        for task in tasks
    ]
    items += [
        Item(
            _("Observe: %(what)s") % {"what": observation.get_kind_display()},
            observation.project,
            reverse("reviews:observation", args=[observation.project_id]),
            due_on=observation.next_reading_on,
        )
        for observation in observations
        if observation.project.state in (ProjectState.FOLLOW_THROUGH, ProjectState.OBSERVING)
    ]
    return sorted(items, key=lambda item: (item.due_on is None, item.due_on or date.max, str(item.title)))


def _bad_runs(actor: Actor, projects: list[Project]) -> list[Item]:
    """The person's own runs that failed or do not count, unless a later one of the scenario does."""
    recent = Run.objects.filter(
        project__in=projects, requested_by_id=actor.user_id, finished_at__gt=timezone.now() - BAD_RUNS_WITHIN
    )
    ended = recent.exclude(state=RunState.CANCELLED)  # somebody wanted that
    rows = ended.select_related("project", "scenario_version__scenario").defer("summary", "manifest")
    items, settled = [], set()
    for run in rows.order_by("-id")[:100]:
        if run.scenario_version_id in settled:
            continue
        settled.add(run.scenario_version_id)
        if run.state not in (RunState.FAILED, RunState.INTERRUPTED) and run.validity != Validity.INVALID:
            continue
        label = run.get_validity_display() if run.state == RunState.COMPLETE else run.get_state_display()
        items.append(
            Item(
                _("Run %(run)s of %(scenario)s: %(state)s")
                % {"run": run, "scenario": run.scenario_version, "state": label},
                run.project,
                reverse("runs:detail", args=[run.pk]),
                run.error[:200],
            )
        )
    return items[:BAD_RUNS_MAX]


def _led(project: Project) -> LedProject:
    progress = progress_of(project)
    expired = project.waivers.filter(
        state__in=[WaiverState.GRANTED, WaiverState.EXPIRED],
        expires_at__lte=timezone.now(),
        expires_at__gt=timezone.now() - BAD_RUNS_WITHIN,
    )
    notes: list[Text] = [
        _("The waiver for %(guard)s has expired; its gate counts again.") % {"guard": waiver.guard}
        for waiver in expired
    ]
    label = progress.next_state.label if progress.next_state else ""
    return LedProject(project, label, progress.missing, notes)
