"""The matrix builder: the smallest set of scenarios for G3, seen first and added on demand."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from pocs.common.errors import InvalidInput, NotPermitted
from pocs.people.models import User
from pocs.projects import services
from pocs.projects.choices import ScenarioKind, ScenarioState
from pocs.projects.matrix_builder import lacking, needed_for_g3, one_of_each, plan_of
from pocs.projects.scenario_kinds import options_wrong
from tests.factories import Cast, make_scenario_version


def spec(
    input_tokens: int = 64, output_tokens: int = 16, concurrency: int = 2, **more: Any
) -> dict[str, Any]:
    lengths = {"input_tokens": input_tokens, "output_tokens": output_tokens, "concurrency": concurrency}
    return lengths | {"requests": 24, "distinct_prompts": 8} | more


LEFT = {"interruptions": [{"phase": "decode"}]}


@pytest.mark.parametrize(
    ("specs", "codes", "count"),
    [
        ([], ["S8", "S9", "S10", "S11", "X6"], 2),
        ([spec()], ["S8", "S9", "S10", "S11"], 1),
        ([spec(distinct_prompts=1)], ["S8", "S9", "S10", "S11", "X6"], 1),
        ([spec(), spec(128)], ["S9", "S10", "S11"], 1),
        ([spec(**LEFT), spec(128, 32)], ["S10"], 1),
        ([spec(**LEFT), spec(128, 32, 8)], [], 0),
    ],
)
def test_the_fewest_scenarios_that_bring_everything(
    specs: list[dict[str, Any]], codes: list[str], count: int
) -> None:
    assert lacking(specs) == codes
    found = needed_for_g3(specs)
    assert len(found) == count
    assert lacking([*specs, *(one.draft.spec.as_json() for one in found)]) == []


def test_each_kind_has_a_scenario_that_its_own_rules_accept() -> None:
    found = one_of_each(ScenarioKind)
    assert [one.draft.kind for one in found] == list(ScenarioKind)
    for one in found:
        assert options_wrong(one.draft.kind, one.draft.spec.as_json()) == []


def test_retired_scenarios_count_no_more_and_their_names_stay_taken(cast: Cast) -> None:
    make_scenario_version(cast.project, "short", state=ScenarioState.RETIRED)
    plan = plan_of(cast.project)
    assert [one.draft.slug for one in plan.needed] == ["short-2", "interruption"]
    assert {one.draft.kind for one in plan.proposals} == set(ScenarioKind)


def test_what_is_ticked_is_added_as_drafts(cast: Cast, page_as: Callable[[User], Client]) -> None:
    path = f"/projects/{cast.project.pk}/scenarios/missing/"
    browser = page_as(cast.contributor)
    page = browser.get(path).content.decode()
    assert 'value="interruption" checked' in page
    assert 'value="soak">' in page
    assert browser.post(path, {"slug": ["short", "interruption", "soak"]}).status_code == 302
    states = {s.slug: s.versions.get().state for s in cast.project.scenarios.all()}
    assert states == dict.fromkeys(("short", "interruption", "soak"), ScenarioState.DRAFT)
    assert b"For G3 nothing is missing" in browser.get(path).content


def test_who_may_not_write_scenarios_adds_none(cast: Cast, page_as: Callable[[User], Client]) -> None:
    path = f"/projects/{cast.project.pk}/scenarios/missing/"
    assert page_as(cast.viewer).get(path).status_code == 403
    assert page_as(cast.outsider).get(path).status_code == 404
    with pytest.raises(NotPermitted):
        services.scenarios_add_missing(actor=cast.viewer.as_actor(), project=cast.project, slugs=["short"])
    with pytest.raises(InvalidInput):
        services.scenarios_add_missing(actor=cast.lead.as_actor(), project=cast.project, slugs=["nothing"])
