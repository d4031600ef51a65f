"""Candidates: one change at a time, each measured against its baseline (T10, X5)."""

from pathlib import Path
from typing import Any

import pytest
from rest_framework.test import APIClient

from pocs.common.errors import Conflict, InvalidInput, NotPermitted
from pocs.projects.models import Project
from pocs.runs.candidates import changed_switches, pairs_with_baseline
from pocs.runs.models import Target
from pocs.runs.services import candidate_create, target_create, target_update
from tests.factories import Cast, make_run, make_scenario_version, make_target


@pytest.fixture
def source(cast: Cast, project: Project, model_folder: Path) -> Target:
    return target_create(
        actor=cast.lead.as_actor(),
        project=project,
        name="engine",
        kind="engine",
        location="small",
        engine_settings={"dtype": "bfloat16", "max_batch": 8},
    )


def candidate(cast: Cast, source: Target, **change: Any) -> Target:
    return candidate_create(actor=cast.lead.as_actor(), source=source, change=change)


def test_a_candidate_is_the_same_but_for_one_switch(cast: Cast, source: Target) -> None:
    made = candidate(cast, source, dtype="int8")

    assert made.name == "engine · dtype int8"
    assert made.engine_settings == {"dtype": "int8", "max_batch": 8}
    assert (made.location, made.baseline) == (source.location, source)
    assert changed_switches(made) == ["dtype"]


def test_a_value_that_is_false_is_a_change(cast: Cast, source: Target) -> None:
    assert candidate(cast, source, prefix_cache=False).engine_settings["prefix_cache"] is False


def test_another_model_is_one_change_too(cast: Cast, source: Target, model_folder: Path) -> None:
    other = model_folder.parent / "tiny"
    other.mkdir()
    (other / "config.json").write_text("{}")

    made = candidate(cast, source, location="tiny")

    assert made.location == str(other)
    assert changed_switches(made) == ["location"]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"dtype": "int8", "max_batch": 4}, "stacked"),
        ({}, "required"),
        ({"dtype": ""}, "required"),
        ({"turbo": 1}, "unknown"),
        ({"max_batch": 8}, "no_change"),
        ({"prefix_cache": True}, "no_change"),
        ({"speculate": "none"}, "no_change"),
        ({"block_tokens": 0}, "range"),
    ],
)
def test_none_several_and_idle_changes_are_refused(
    cast: Cast, source: Target, change: dict[str, Any], code: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        candidate(cast, source, **change)

    assert caught.value.errors[0].code == code
    assert Target.objects.count() == 1


def test_an_endpoint_has_no_switches(cast: Cast, project: Project) -> None:
    endpoint = make_target(project, kind="http", location="http://gpu/v1", model="m")

    with pytest.raises(InvalidInput, match="endpoint"):
        candidate(cast, endpoint, dtype="int8")


def test_a_second_change_waits_for_the_measurement_of_the_first(
    cast: Cast, project: Project, source: Target
) -> None:
    first = candidate(cast, source, dtype="int8")
    with pytest.raises(Conflict, match="not measured"):
        candidate(cast, first, max_batch=16)
    version = make_scenario_version(project, "short-request")
    before = make_run(project, scenario_version=version, target=source, records=False)
    assert pairs_with_baseline(first) is None
    after = make_run(project, scenario_version=version, target=first, records=False)

    assert pairs_with_baseline(first) == (before, after)
    assert candidate(cast, first, max_batch=16).baseline == first


def test_switches_that_pile_up_by_editing_are_counted(cast: Cast, source: Target) -> None:
    made = candidate(cast, source, speculate="ngram")
    settings = made.engine_settings | {"speculate_tokens": 3}
    edit = {"name": made.name, "location": made.location}
    made = target_update(actor=cast.lead.as_actor(), target=made, version=1, engine_settings=settings, **edit)
    assert changed_switches(made) == ["speculate"]
    made = target_update(
        actor=cast.lead.as_actor(), target=made, version=2, engine_settings=settings | {"threads": 1}, **edit
    )
    assert changed_switches(made) == ["threads", "speculate"]


def test_a_viewer_makes_no_candidate(cast: Cast, source: Target) -> None:
    with pytest.raises(NotPermitted):
        candidate_create(actor=cast.viewer.as_actor(), source=source, change={"dtype": "int8"})


def test_over_the_api_with_exactly_one_change(cast: Cast, source: Target) -> None:
    client = APIClient()
    client.force_login(cast.lead)
    url = f"/api/v1/targets/{source.pk}/candidates/"

    made = client.post(url, {"change": {"dtype": "int8"}}, format="json", headers={"Idempotency-Key": "a"})
    stacked = client.post(
        url, {"change": {"dtype": "int4", "threads": 1}}, format="json", headers={"Idempotency-Key": "b"}
    )

    assert made.status_code == 201
    assert made.json()["baseline"] == source.pk
    assert stacked.status_code == 400
    assert stacked.json()["errors"][0]["code"] == "stacked"
