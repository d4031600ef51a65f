"""The engine page: what the cast sees of the engine, and of what other projects do with it."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import redis
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from inference.targets.switch_report import SwitchReport
from pocs.people.models import User
from pocs.projects.models import Project
from pocs.runs.models import Target
from pocs.runs.seat import Switched
from pocs.serving import services, wire
from pocs.serving.models import ModelSwitch
from tests.factories import Cast, make_project, make_run, make_target

PageAs = Callable[[User], Client]


@pytest.fixture
def told(broker: str, settings: Settings, db: None) -> Callable[..., None]:
    """Let a desk have told this of itself."""
    settings.REDIS_URL = broker

    def tell(**state: Any) -> None:
        nothing = {"holder": None, "open": 0, "loading": False, "loaded": None, "resources": None}
        with redis.Redis.from_url(broker) as client:
            client.flushall()
            client.sadd(wire.DESKS, "engine@one/1")
            body = json.dumps({"hostname": "engine@one"} | nothing | state)
            client.set(wire.state_key("engine@one/1"), body)

    return tell


def loaded(target: Target) -> dict[str, Any]:
    return {"target_id": target.pk, "since": timezone.now().isoformat(), "alive": True}


def url(project: Project, part: str = "") -> str:
    return f"/projects/{project.pk}/engine/{part}"


def foreign_target(cast: Cast) -> Target:
    return make_target(make_project(cast.organisation, name="Secret project"), name="Secret target")


@pytest.mark.parametrize("part", ["", "state/"])
def test_members_see_the_engine_and_nobody_else(
    cast: Cast, page_as: PageAs, told: Callable[..., None], part: str
) -> None:
    told()
    for member in (cast.lead, cast.viewer, cast.procurement, cast.auditor):
        assert page_as(member).get(url(cast.project, part)).status_code == 200
    for stranger in (cast.bystander, cast.outsider):
        assert page_as(stranger).get(url(cast.project, part)).status_code == 404
    assert Client().get(url(cast.project, part)).status_code == 302


def test_the_page_says_what_is_loaded_who_has_it_and_how_to_ask(
    cast: Cast, page_as: PageAs, told: Callable[..., None]
) -> None:
    target = make_target(cast.project, name="Small model")
    run = make_run(cast.project, target=target, state="measuring", validity="pending", records=False)
    told(loaded=loaded(target), holder={"run_id": run.pk, "since": timezone.now().isoformat()})
    page = page_as(cast.lead).get(url(cast.project)).content.decode()
    assert "Small model" in page
    assert f'href="/runs/{run.pk}/"' in page
    assert "small-model" in page
    assert "http://testserver/v1" in page
    assert "A measured run has it" in page
    assert "not looked at while a run is measured" in page


def test_another_projects_run_and_model_stay_unnamed(
    cast: Cast, page_as: PageAs, told: Callable[..., None]
) -> None:
    foreign = foreign_target(cast)
    run = make_run(foreign.project, target=foreign, records=False)
    told(loaded=loaded(foreign), holder={"run_id": run.pk, "since": timezone.now().isoformat()})
    page = page_as(cast.lead).get(url(cast.project)).content.decode()
    assert "Secret" not in page
    assert f'href="/runs/{run.pk}/"' not in page
    assert "a model of another project" in page
    assert "a run of another project" in page


def test_memory_live_requests_and_the_queue(cast: Cast, page_as: PageAs, told: Callable[..., None]) -> None:
    memory = {"weights_bytes": 3 * 2**20, "kv_pool_bytes": 2**27, "kv_used_bytes": 2**20, "rss_bytes": 2**28}
    told(open=3, loaded=loaded(make_target(cast.project)), resources=memory)
    page = page_as(cast.viewer).get(url(cast.project, "state/")).content.decode()
    assert "3 live requests" in page
    assert "128" in page
    assert "at most 64" in page


def test_no_worker_and_no_broker_are_said(
    cast: Cast, page_as: PageAs, told: Callable[..., None], broker: str, settings: Settings
) -> None:
    settings.REDIS_URL = broker
    with redis.Redis.from_url(broker) as client:
        client.flushall()
    assert "No engine worker is running" in page_as(cast.lead).get(url(cast.project)).content.decode()
    settings.REDIS_URL = "unix:///nowhere.sock"
    page = page_as(cast.lead).get(url(cast.project))
    assert page.status_code == 200
    assert "The broker does not answer" in page.content.decode()


def report(**fields: Any) -> SwitchReport:
    started = (timezone.now() - timedelta(minutes=1)).isoformat()
    made: dict[str, Any] = {
        "how": "beside",
        "how_reason": "asked for",
        "source": {"path": "a"},
        "target": {"path": "b"},
        "started_at": started,
        "outcome": "switched",
        "stages_ms": {"load": 1234.0},
        "total_ms": 2345.0,
    }
    return SwitchReport(**(made | fields))


def test_switches_that_concern_the_project(cast: Cast, page_as: PageAs, told: Callable[..., None]) -> None:
    told()
    own, foreign = make_target(cast.project, name="Own model"), foreign_target(cast)
    services.switch_record(Switched(foreign.pk, own.pk, None, report()))
    services.switch_record(Switched(own.pk, foreign.pk, None, report()))
    services.switch_record(Switched(own.pk, own.pk, None, report(outcome="kept", reason="It is broken.")))
    services.switch_record(Switched(foreign.pk, foreign.pk, None, report(reason="Secret reason")))
    page = page_as(cast.lead).get(url(cast.project)).content.decode()
    assert page.count("<td>Own model</td>") == 4
    assert page.count("another project's") == 2
    assert "Secret" not in page
    assert "It is broken." in page
    assert ">1.2<" in page
    assert ModelSwitch.objects.count() == 4


def test_a_switch_outlives_its_target(cast: Cast) -> None:
    target = make_target(cast.project)
    services.switch_record(Switched(None, target.pk, None, report()))
    target.delete()
    switch = ModelSwitch.objects.get()
    assert switch.target is None
    assert switch.report["outcome"] == "switched"


def test_the_project_page_leads_here_and_a_token_may_have_the_scope(
    cast: Cast, page_as: PageAs, told: Callable[..., None]
) -> None:
    make_target(cast.project, name="Small model")
    page = page_as(cast.lead).get(f"/projects/{cast.project.pk}/").content.decode()
    assert url(cast.project) in page
    tokens = page_as(cast.lead).get(f"/projects/{cast.project.pk}/tokens/").content.decode()
    assert 'value="inference"' in tokens
