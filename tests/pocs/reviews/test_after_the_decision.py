"""Follow-through and observation: readings from everywhere, what is overdue, handing over, and the end."""

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from rest_framework.test import APIClient

from pocs.common import notices
from pocs.common.errors import GateNotMet, InvalidInput, NotFound, NotPermitted
from pocs.evidence.choices import EvidenceType
from pocs.evidence.models import Evidence
from pocs.people.models import User
from pocs.projects.choices import ProjectState
from pocs.projects.gates import missing_before
from pocs.projects.models import Project, ScenarioVersion
from pocs.reviews import services
from pocs.reviews.choices import ObservationState, ReadingSource, Slot
from pocs.reviews.inbox import inbox_of
from pocs.reviews.models import (
    Condition,
    Decision,
    Escalation,
    FollowThroughTask,
    Observation,
    ObservationReading,
    ObservationSchedule,
)
from pocs.runs.choices import RunState, Validity
from pocs.runs.models import Run
from tests.factories import Cast, make_ci_token, make_summary, make_team
from tests.pocs.reviews import walk


@pytest.fixture
def observed(cast: Cast, decision: Decision) -> Cast:
    """The project while it is observed, with owners and observers named."""
    walk.set_follow_through(cast)
    walk.advance(cast, ProjectState.FOLLOW_THROUGH)
    walk.set_observers(cast)
    walk.advance(cast, ProjectState.OBSERVING)
    return cast


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[notices.Notice]:
    """What people were told."""
    found: list[notices.Notice] = []
    monkeypatch.setattr(notices, "_listeners", [found.append])
    return found


def read(cast: Cast, kind: str) -> ObservationReading:
    return services.observation_read(
        actor=cast.observer.as_actor(),
        observation=Observation.objects.get(project=cast.project, kind=kind),
        value=Decimal("1.5"),
        unit="req/s",
    )


def test_it_is_not_closed_with_open_tasks_or_without_readings(observed: Cast) -> None:
    with pytest.raises(GateNotMet) as refused:
        walk.advance(observed, ProjectState.CLOSED)
    assert {item.code for item in refused.value.missing} == {
        "task.budget.open", "task.procurement.open", "task.launch.open",
        "reading.capacity", "reading.cost", "reading.stability",
    }  # fmt: skip
    assert all(item.url for item in refused.value.missing)
    for task in observed.project.follow_through.all():
        services.task_done(actor=observed.procurement.as_actor(), task=task)
    for kind in ("capacity", "cost"):
        read(observed, kind)
        row = Observation.objects.get(project=observed.project, kind=kind)
        services.observation_close(actor=observed.lead.as_actor(), observation=row)
    read(observed, "stability")
    missing = missing_before(observed.project, ProjectState.CLOSED)
    assert [item.code for item in missing] == ["observation.stability.open"]


def test_the_page_says_what_keeps_it_open(observed: Cast, page_as: Callable[[User], Client]) -> None:
    page = page_as(observed.lead).get(reverse("reviews:observation", args=[observed.project.pk]))
    text = page.content.decode()
    assert "Launch is not done yet" in text
    assert "a reading of Cost" in text
    page = page_as(observed.lead).post(
        reverse("reviews:advance", args=[observed.project.pk, "closed"]), follow=True
    )
    assert "a reading of Cost" in page.content.decode()


def test_open_conditions_keep_it_from_being_observed(cast: Cast, package: Any) -> None:
    walk.sign(cast, package, Slot.BUSINESS, Slot.PLATFORM)
    walk.sign(cast, package, Slot.SECURITY, verdict="approve_with_conditions", comment="Mask data.")
    asked = services.ConditionInput(text="Mask data.", owner=cast.procurement, due_on=walk.in_days(9))
    proposal = walk.propose(cast, package, outcome="accepted_with_conditions", conditions=[asked])
    services.decision_confirm(actor=cast.decision_maker.as_actor(), decision=proposal)
    duties = inbox_of(cast.procurement.as_actor()).duties
    assert [str(item.title) for item in duties] == ["Close the condition “Mask data.”"]
    walk.set_follow_through(cast)
    walk.set_observers(cast)
    walk.advance(cast, ProjectState.FOLLOW_THROUGH)
    with pytest.raises(GateNotMet) as refused:
        walk.advance(cast, ProjectState.OBSERVING)
    assert [(item.guard, item.code) for item in refused.value.missing] == [("G10", "condition.open")]


def test_reviewed_evidence_closes_a_condition(
    cast: Cast, evidence: dict[EvidenceType, Evidence], package: Any, api_as: Callable[..., APIClient]
) -> None:
    walk.sign(cast, package)
    asked = services.ConditionInput(text="Mask data.", owner=cast.procurement, due_on=walk.in_days(9))
    proposal = walk.propose(cast, package, outcome="accepted_with_conditions", conditions=[asked])
    services.decision_confirm(actor=cast.decision_maker.as_actor(), decision=proposal)
    condition = Condition.objects.get()
    url = reverse("api-condition-close", args=[condition.pk])
    kept = evidence[EvidenceType.RETROSPECTIVE]
    reviewed = kept.revisions.get(number=1)
    walk.edit(cast, kept, degradation="Seen later.")
    draft = kept.revisions.get(number=2)
    client, body = api_as(cast.procurement), {"evidence": "Masked since Monday."}
    assert client.post(url, body | {"revision": 10**6}).status_code == 404
    refused = client.post(url, body | {"revision": draft.pk})
    assert refused.json()["errors"][0]["pointer"] == "/revision"
    assert client.post(url, body | {"revision": reviewed.pk}).json()["closing_revision"] == reviewed.pk


# -- readings ---------------------------------------------------------------------------------------------


def test_readings_by_hand_and_by_a_token(observed: Cast, api_as: Callable[..., APIClient]) -> None:
    url = reverse("api-readings", args=[observed.project.pk, "cost"])
    body = {"value": "0.42", "unit": "CNY/1k tokens"}
    _, reading = make_ci_token(observed.project, sponsor=observed.lead, scopes=("read",))
    assert api_as(token=reading).post(url, body).status_code == 403
    _, writing = make_ci_token(observed.project, sponsor=observed.lead, scopes=("read", "observation:write"))
    stored = api_as(token=writing).post(url, body)
    assert (stored.status_code, stored.json()["source"]) == (201, ReadingSource.TOKEN)
    assert stored.json()["entered_by"]["id"] == observed.lead.pk
    assert read(observed, "cost").source == ReadingSource.HAND
    foreign, other = make_ci_token(
        Project.objects.exclude(pk=observed.project.pk).first(), sponsor=observed.outsider,
        scopes=("read", "observation:write"),
    )  # fmt: skip
    assert foreign.project_id != observed.project.pk
    assert api_as(token=other).post(url, body).status_code == 404


def schedule(cast: Cast, **fields: Any) -> ObservationSchedule:
    version = ScenarioVersion.objects.get(scenario__project=cast.project, scenario__slug="short-request")
    values: dict[str, Any] = {
        "scenario_version": version,
        "target": cast.project.targets.first(),
        "every_days": 7,
        "next_on": timezone.now().date(),
        "cost_per_hour": Decimal("18"),
        "currency": "CNY",
    } | fields
    return services.schedule_set(actor=cast.lead.as_actor(), project=cast.project, **values)


def finish(run: Run, **fields: Any) -> None:
    values = {
        "state": RunState.COMPLETE,
        "validity": Validity.VALID,
        "finished_at": timezone.now(),
        "summary": make_summary(output_tokens_per_second=50.0, error_rate=0.02),
    } | fields
    Run.objects.filter(pk=run.pk).update(**values)


@pytest.fixture
def _no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are queued and nobody executes them."""
    monkeypatch.setattr("pocs.runs.services.running.enqueue", lambda run: None)


@pytest.mark.usefixtures("_no_engine")
def test_a_repeated_run_becomes_readings(observed: Cast) -> None:
    row = schedule(observed)
    assert services.schedules_run() == 1
    row.refresh_from_db()
    assert row.next_on == timezone.now().date() + timedelta(days=7)
    assert services.schedules_run() == 0  # it is under way
    finish(row.last_run)
    assert services.schedules_run() == 3
    assert services.schedules_run() == 0
    found = {
        reading.observation.kind: (str(reading.value), reading.unit, reading.source)
        for reading in ObservationReading.objects.select_related("observation")
    }
    assert found == {
        "capacity": ("50.0000", "tokens/s", "run"),
        "cost": ("0.1000", "CNY/1k tokens", "run"),
        "stability": ("2.0000", "% failed", "run"),
    }
    watched = Observation.objects.get(project=observed.project, kind="cost")
    assert (watched.state, watched.next_reading_on) == (ObservationState.ACTIVE, row.next_on)


@pytest.mark.usefixtures("_no_engine")
def test_a_repeated_run_that_does_not_count_says_so(observed: Cast) -> None:
    row = schedule(observed)
    services.schedules_run()
    row.refresh_from_db()
    finish(row.last_run, state=RunState.FAILED, validity=Validity.INVALID)
    assert services.schedules_run() == 0
    row.refresh_from_db()
    assert "does not count" in row.last_problem
    assert not ObservationReading.objects.exists()


@pytest.mark.usefixtures("_no_engine")
def test_what_a_repeated_run_needs(observed: Cast) -> None:
    for fields, pointer in (
        ({"scenario_version": None}, "/scenario"), ({"target": None}, "/target"),
        ({"every_days": 0}, "/every_days"),
        ({"next_on": walk.in_days(-1)}, "/next_on"), ({"currency": ""}, "/currency"),
        ({"cost_per_hour": Decimal("NaN")}, "/cost_per_hour"),
    ):  # fmt: skip
        with pytest.raises(InvalidInput) as refused:
            schedule(observed, **fields)
        assert pointer in [error.pointer for error in refused.value.errors]
    schedule(observed, active=False)
    assert services.schedules_run() == 0
    with pytest.raises(NotPermitted):
        services.schedule_set(
            actor=observed.observer.as_actor(), project=observed.project, scenario_version=None, target=None,
            every_days=1, next_on=None,
        )  # fmt: skip


@pytest.mark.usefixtures("_no_engine")
def test_the_repeated_run_over_page_and_api(
    observed: Cast, api_as: Callable[..., APIClient], page_as: Callable[[User], Client]
) -> None:
    url = reverse("api-observation-schedule", args=[observed.project.pk])
    body = {"scenario": "short-request@1", "target": observed.project.targets.get().pk, "every_days": 7,
            "next_on": str(walk.in_days(1))}  # fmt: skip
    assert api_as(observed.viewer).get(url).json() == {"version": 0}
    assert api_as(observed.viewer).put(url, {}, headers={"If-Match": '"0"'}).status_code == 403
    assert (
        api_as(observed.lead).put(url, body | {"scenario": "x@9"}, headers={"If-Match": '"0"'}).status_code
        == 400
    )
    assert api_as(observed.lead).put(url, body, headers={"If-Match": '"0"'}).json()["every_days"] == 7
    page = reverse("reviews:schedule", args=[observed.project.pk])
    version = ScenarioVersion.objects.get(scenario__slug="short-request")
    form = {"schedule-version": 1, "schedule-scenario": version.pk, "schedule-target": body["target"],
            "schedule-every_days": 3,
            "schedule-next_on": body["next_on"], "schedule-active": "on"}  # fmt: skip
    assert page_as(observed.viewer).post(page, {}).status_code == 403
    assert page_as(observed.lead).post(page, form | {"schedule-every_days": 0}).status_code == 400
    assert page_as(observed.lead).post(page, form).status_code == 302
    assert api_as(observed.viewer).get(url).json()["every_days"] == 3


# -- overdue ----------------------------------------------------------------------------------------------


def test_what_is_overdue_is_told_to_the_team_and_then_to_those_who_lead(
    observed: Cast, told: list[notices.Notice]
) -> None:
    FollowThroughTask.objects.filter(kind="budget").update(due_on=walk.in_days(-1))
    User.objects.filter(pk=observed.viewer.pk).update(team=make_team(observed.organisation))
    assert services.overdue_escalate() == 1
    assert services.overdue_escalate() == 0
    (first,) = Escalation.objects.all()
    assert first.told.filter(pk=observed.procurement.pk).exists()
    assert first.told.filter(pk=observed.contributor.pk).exists()  # of the owner's team
    assert not first.told.filter(pk=observed.viewer.pk).exists()  # of another
    assert [notice.kind for notice in told] == ["duty.overdue"]
    assert [str(item.detail) for item in inbox_of(observed.contributor.as_actor()).escalated] == [
        f"overdue with {observed.procurement}"
    ]
    assert inbox_of(observed.procurement.as_actor()).escalated == []  # theirs: among the duties

    FollowThroughTask.objects.filter(kind="budget").update(due_on=walk.in_days(-8))
    assert services.overdue_escalate() == 2
    leads = Escalation.objects.get(level=2)
    assert set(leads.told.all()) == {observed.lead, observed.decision_maker}


def test_an_overdue_reading_and_an_owner_who_left(observed: Cast) -> None:
    Observation.objects.filter(kind="cost").update(next_reading_on=walk.in_days(-2))
    User.objects.filter(pk=observed.observer.pk).update(is_active=False, team=None)
    assert services.overdue_escalate() == 1
    assert set(Escalation.objects.get().told.all()) == {observed.lead}


# -- handing over in bulk ---------------------------------------------------------------------------------


def keys(cast: Cast) -> list[str]:
    tasks = [f"task:{row.pk}" for row in FollowThroughTask.objects.filter(project=cast.project)]
    return tasks + [f"observation:{row.pk}" for row in Observation.objects.filter(project=cast.project)]


def test_duties_go_over_all_of_them_or_none(observed: Cast) -> None:
    def hand_over(items: list[str], who: User | None = None, to: User | None = observed.lead) -> None:
        services.duties_hand_over(
            actor=(who or observed.lead).as_actor(), keys=items, to=to, reason="She left."
        )

    everything = keys(observed)
    for items, error in (
        ([*everything, "task:999999"], NotFound), ([*everything, "nonsense"], NotFound), ([], InvalidInput),
    ):  # fmt: skip
        with pytest.raises(error):
            hand_over(items)
    with pytest.raises(NotPermitted) as refused:  # may edit tasks, not observations
        hand_over(everything, observed.procurement)
    assert refused.value.extra == {"item": 3}
    for to in (None, observed.outsider, observed.bystander):
        with pytest.raises(InvalidInput):
            hand_over(everything, to=to)
    assert not FollowThroughTask.objects.filter(owner=observed.lead).exists()
    hand_over(everything)
    assert FollowThroughTask.objects.filter(owner=observed.lead).count() == 3
    assert Observation.objects.filter(observer=observed.lead).count() == 3


def test_handing_over_another_organisations_duties(
    observed: Cast, api_as: Callable[..., APIClient], page_as: Callable[[User], Client]
) -> None:
    body = {"items": keys(observed), "to": observed.outsider.pk, "reason": "Mine now."}
    assert api_as(observed.outsider).post(reverse("api-duties-hand-over"), body).status_code == 404
    assert api_as(observed.outsider).get(reverse("api-duties")).json()["results"] == []
    assert len(api_as(observed.viewer).get(reverse("api-duties")).json()["results"]) == 6
    body["to"] = observed.lead.pk
    assert api_as(observed.viewer).post(reverse("api-duties-hand-over"), body).status_code == 403
    form = {"items": keys(observed)[:1], "to": observed.lead.pk, "reason": "She left."}
    assert page_as(observed.lead).post(reverse("reviews:hand_over"), form).status_code == 302
    assert api_as(observed.lead).post(reverse("api-duties-hand-over"), body).status_code == 200
