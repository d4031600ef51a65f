"""What waits for one person across their projects: reviews, signatures, decisions, duties, bad endings."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import date, timedelta

from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from pocs.common.actors import Actor
from pocs.common.errors import Missing, Text
from pocs.common.phrases import Said
from pocs.evidence.selectors import waiting_for_review
from pocs.people.roles import CAPABILITIES
from pocs.people.selectors import person_behind
from pocs.projects.models import Project, ProjectMember
from pocs.projects.selectors import next_step_of, projects_visible_to
from pocs.reviews.choices import (
    UNDECIDED_OBJECTIONS,
    DecisionState,
    ObjectionState,
    SignOffState,
    WaiverState,
)
from pocs.reviews.citations import line_in_words
from pocs.reviews.duties import ENDED_STATES, Duty, open_duties
from pocs.reviews.eligibility import candidates
from pocs.reviews.models import Decision, Escalation, Objection, Waiver, is_past
from pocs.reviews.objections import answer_hindrance, deciders
from pocs.reviews.selectors import waiting_packages
from pocs.reviews.services.decisions import confirm_hindrance
from pocs.runs.choices import RunState, Validity
from pocs.runs.models import Run

BAD_RUNS_WITHIN = timedelta(days=14)
BAD_RUNS_MAX = 10
LED_PROJECTS_MAX = 10


@dataclass(frozen=True)
class Item:
    """One thing to do: what, in which project, where, and by when."""

    title: Text | Said
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
    objections: list[Item]
    decisions: list[Item]
    waivers: list[Item]
    duties: list[Item]
    escalated: list[Item]
    bad_runs: list[Item]
    led: list[LedProject]
    has_projects: bool

    @property
    def count(self) -> int:
        """Things to do, without the outlook on one's own projects."""
        mine = (self.signatures, self.reviews, self.objections, self.decisions, self.waivers)
        return sum(len(kind) for kind in (*mine, self.duties, self.escalated, self.bad_runs))


def inbox_of(actor: Actor) -> Inbox:
    """What waits for the acting person now."""
    projects = {project.pk: project for project in projects_visible_to(actor)}
    still_open = [project for project in projects.values() if project.state not in ENDED_STATES]
    roles = _roles(actor, still_open)
    return Inbox(
        signatures=_signatures(actor, still_open),
        reviews=_reviews(actor),
        objections=_objections(actor, still_open),
        decisions=_decisions(actor, _with(roles, still_open, "decision.confirm")),
        waivers=_waivers(actor, _with(roles, still_open, "waiver.grant")),
        duties=_duties(actor, still_open),
        escalated=_escalated(actor, still_open),
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
    """Slots that this person may sign now, in their own name or as a deputy; each slot once."""
    items = []
    for package in waiting_packages(projects):
        requested = package.signoffs.filter(state=SignOffState.REQUESTED).order_by("slot", "seat")
        asked = {signoff.slot: signoff for signoff in requested if not signoff.lapsed}
        found = candidates(package.project, package) if asked else {}
        for slot, signoff in asked.items():
            able = [item for item in found[slot] if item.eligible and item.user.pk == actor.user_id]
            if not able:
                continue
            title = _("Sign package %(number)d: %(slot)s") % {
                "number": package.number,
                "slot": signoff.get_slot_display(),
            }
            if able[0].on_behalf_of is not None:
                title += " · " + _("for %(who)s") % {"who": able[0].on_behalf_of}
            due = signoff.expires_at.date() if signoff.expires_at else None
            url = reverse("reviews:package", args=[package.pk])
            items.append(Item(title, package.project, url, _(signoff.meaning), due))
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
    return [_duty(duty) for duty in open_duties(projects=projects, owner_id=actor.user_id or 0)]


def _duty(duty: Duty) -> Item:
    return Item(
        duty.title, duty.project, reverse(duty.route, args=[duty.project.pk]), duty.detail, duty.due_on
    )


def _escalated(actor: Actor, projects: list[Project]) -> list[Item]:
    """Overdue duties of others of which this person was told: as their team, as lead, as decision maker."""
    told = Escalation.objects.filter(project__in=projects, told=actor.user_id or 0)
    keys = set(told.values_list("object_type", "object_id", "due_on"))
    if not keys:
        return []
    return [
        replace(_duty(duty), detail=_("overdue with %(owner)s") % {"owner": duty.owner or _("nobody")})
        for duty in open_duties(projects=projects, overdue=True)
        if (duty.row._meta.label_lower, duty.row.pk, duty.due_on) in keys
        and (duty.owner is None or duty.owner.pk != actor.user_id)
    ]


def _objections(actor: Actor, projects: list[Project]) -> list[Item]:
    """Objections that this person may answer, or rule on."""
    rows = Objection.objects.filter(package__project__in=projects, state__in=UNDECIDED_OBJECTIONS)
    user = person_behind(actor)
    if user is None:
        return []
    items = []
    for row in rows.select_related("package__project", "revision__evidence", "raised_by"):
        if row.state == ObjectionState.OPEN and not answer_hindrance(row, user):
            title = _("Answer the objection to package %(number)d") % {"number": row.package.number}
        elif row.state == ObjectionState.ANSWERED and any(
            person.pk == actor.user_id and not why for person, why in deciders(row)
        ):
            title = _("Rule on the objection to package %(number)d") % {"number": row.package.number}
        else:
            continue
        url = reverse("reviews:package", args=[row.package_id]) + "#objections"
        items.append(Item(title, row.package.project, url, f"{row.rule} · {line_in_words(row)}"[:140]))
    return items


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
    progress = next_step_of(project)
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
