"""Services of the run that an observation repeats: set by a person, started by the clock, read out."""

from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from pocs.common import audit
from pocs.common.actors import Actor
from pocs.common.errors import DomainError, FieldError, InvalidInput
from pocs.common.versions import save_version
from pocs.people import policies
from pocs.projects.choices import ProjectState, ScenarioState
from pocs.projects.models import Project, ScenarioVersion
from pocs.reviews.choices import ObservationKind, ObservationState
from pocs.reviews.models import Observation, ObservationReading, ObservationSchedule
from pocs.reviews.services.observation import observation_read
from pocs.reviews.services.support import require_date, require_open, require_person, require_version, tell
from pocs.runs.choices import ACTIVE_STATES
from pocs.runs.models import Run, Target
from pocs.runs.services import run_start

LONGEST_DAYS = 90


@dataclass(frozen=True)
class Figure:
    """What a run says about one of the three: value and unit."""

    kind: ObservationKind
    value: Decimal
    unit: str


@transaction.atomic
def schedule_set(
    *,
    actor: Actor,
    project: Project,
    scenario_version: ScenarioVersion | None,
    target: Target | None,
    every_days: int,
    next_on: date | None,
    active: bool = True,
    cost_per_hour: Decimal | None = None,
    currency: str = "",
    version: int | None = None,
) -> ObservationSchedule:
    """Say which run is repeated while the project is observed, how often and from when.

    It runs in the name of whoever set it last. `cost_per_hour` in `currency` is what the target costs;
    without it no reading of the cost is taken. Raises InvalidInput with pointers.
    """
    user_id = require_person(actor)
    policies.require(actor, "observation.edit", project)
    policies.require(actor, "run.execute", project)
    require_open(project)
    row = ObservationSchedule.objects.select_for_update().filter(project=project).first()
    row = row or ObservationSchedule(project=project, version=0)
    require_version(row, version)
    wrong = _check(project, scenario_version, target, every_days)
    wrong += _check_cost(cost_per_hour, currency)
    if wrong or scenario_version is None or target is None:
        raise InvalidInput(_("The repeated run cannot be set like this."), wrong)
    if row.pk is None or row.next_on != next_on:
        next_on = require_date("/next_on", next_on)
    before = _facts(row) if row.pk else None
    row.scenario_version, row.target, row.every_days = scenario_version, target, every_days
    row.next_on, row.active, row.set_by_id = next_on, active, user_id
    row.cost_per_hour, row.currency, row.last_problem = cost_per_hour, currency.strip(), ""
    row.version += 1
    row.save()
    audit.record(
        actor=actor, verb="schedule.set", obj=row, project_id=project.pk, before=before, after=_facts(row)
    )
    tell(project, "observation", schedule=row.pk)
    return row


def schedules_run() -> int:
    """Start the repeated runs that are due and read the figures of those that ended; returns how many."""
    rows = ObservationSchedule.objects.filter(
        project__state__in=[ProjectState.FOLLOW_THROUGH, ProjectState.OBSERVING]
    ).select_related("project", "scenario_version__scenario", "target", "last_run", "set_by")
    return sum(_read_last(row) + _start_due(row) for row in rows)


def figures_for(run: Run, schedule: ObservationSchedule) -> list[Figure]:
    """Capacity, cost and stability as the run's summary has them; what it does not hold is left out.

    Capacity is output tokens per second, stability the share of requests that failed, cost that of
    1,000 output tokens at the target's price per hour and the measured speed.
    """
    summary = run.summary or {}
    found = []
    speed = summary.get("output_tokens_per_second")
    if speed:
        found.append(Figure(ObservationKind.CAPACITY, _decimal(speed), "tokens/s"))
        if schedule.cost_per_hour is not None:
            cost = schedule.cost_per_hour / 3600 / _decimal(speed) * 1000
            unit = f"{schedule.currency or '¤'}/1k tokens"
            found.append(Figure(ObservationKind.COST, cost.quantize(Decimal("0.0001")), unit))
    errors = summary.get("error_rate")
    if errors is not None:
        found.append(Figure(ObservationKind.STABILITY, _decimal(errors * 100), "% failed"))
    return found


def _start_due(row: ObservationSchedule) -> int:
    if not row.active or row.next_on > timezone.now().date():
        return 0
    if row.last_run is not None and row.last_run.state in ACTIVE_STATES:
        return 0
    following = max(row.next_on, timezone.now().date()) + timedelta(days=row.every_days)
    try:
        with transaction.atomic():
            run = run_start(
                actor=row.set_by.as_actor(),
                project=row.project,
                scenario_version=row.scenario_version,
                target=row.target,
            )
            save_version(row, last_run=run, next_on=following, last_problem="")
    except DomainError as refused:
        # the page says why; it is tried again at the next date
        save_version(row, next_on=following, last_problem=str(refused.detail)[:300])
        return 0
    return 1


def _read_last(row: ObservationSchedule) -> int:
    """Readings from the last run, once it ended; a run that does not count says so instead."""
    run = row.last_run
    if run is None or run.finished_at is None or row.last_problem:
        return 0
    if ObservationReading.objects.filter(run=run).exists():
        return 0
    if not run.counts_as_evidence:
        problem = _("%(run)s does not count: %(state)s") % {"run": run, "state": run.get_state_display()}
        save_version(row, last_problem=problem)
        return 0
    count = 0
    for figure in figures_for(run, row):
        watched = Observation.objects.filter(project=row.project, kind=figure.kind)
        observation = watched.exclude(state=ObservationState.CLOSED).select_related("project").first()
        if observation is None:
            continue
        try:
            with transaction.atomic():
                observation_read(
                    actor=row.set_by.as_actor(),
                    observation=observation,
                    value=figure.value,
                    unit=figure.unit,
                    at=run.finished_at,
                    next_reading_on=row.next_on if row.active else None,
                    run=run,
                )
            count += 1
        except DomainError as refused:
            save_version(row, last_problem=str(refused.detail)[:300])
    if not count and not row.last_problem:
        save_version(row, last_problem=_("%(run)s holds no figure that is observed") % {"run": run})
    return count


def _check(
    project: Project, scenario_version: ScenarioVersion | None, target: Target | None, every_days: int
) -> list[FieldError]:
    wrong = []
    if scenario_version is None or scenario_version.scenario.project_id != project.pk:
        wrong.append(FieldError("/scenario", "unknown", _("This project has no such scenario.")))
    elif scenario_version.state != ScenarioState.APPROVED:
        wrong.append(FieldError("/scenario", "not-approved", _("Only approved versions are run.")))
    if target is None or target.project_id != project.pk:
        wrong.append(FieldError("/target", "unknown", _("This project has no such target.")))
    if not 1 <= every_days <= LONGEST_DAYS:
        text = _("A whole number from %(least)d to %(most)d.") % {"least": 1, "most": LONGEST_DAYS}
        wrong.append(FieldError("/every_days", "range", text))
    return wrong


def _check_cost(cost_per_hour: Decimal | None, currency: str) -> list[FieldError]:
    wrong = []
    if cost_per_hour is not None and not (cost_per_hour.is_finite() and 0 < cost_per_hour < 10**8):
        wrong.append(FieldError("/cost_per_hour", "range", _("The cost is a number above 0.")))
    if cost_per_hour is not None and not currency.strip():
        wrong.append(FieldError("/currency", "required", _("Name the currency of the cost.")))
    if len(currency.strip()) > 8:
        wrong.append(FieldError("/currency", "max_length", _("At most 8 characters.")))
    return wrong


def _facts(row: ObservationSchedule) -> dict[str, str | int | bool]:
    return {
        "scenario": str(row.scenario_version),
        "target": str(row.target),
        "every_days": row.every_days,
        "next_on": row.next_on.isoformat(),
        "active": row.active,
        "cost_per_hour": "" if row.cost_per_hour is None else str(row.cost_per_hour),
        "currency": row.currency,
    }


def _decimal(value: float) -> Decimal:
    return Decimal(str(round(value, 4)))
