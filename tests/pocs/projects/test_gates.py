"""G1 and G2 name each missing thing in the checklist's words, with the page where it is done."""

import pytest
from django.test import Client

from pocs.common.errors import Missing
from pocs.projects import gates, guards, services
from pocs.projects.choices import ProjectState
from tests.factories import Cast, complete_plan


def by_code(missing: list[Missing]) -> dict[str, Missing]:
    return {item.code: item for item in missing}


def test_an_empty_project_misses_everything_of_g1(cast: Cast) -> None:
    missing = by_code(guards.check_plan(cast.project))
    assert set(missing) == {
        "affected.application",
        "affected.team",
        "affected.data",
        "readiness.permissions",
        "readiness.monitoring",
        "readiness.logs",
        "readiness.capacity",
        "readiness.rollback",
        "where_applies",
        "where_not",
    }
    assert missing["affected.data"].text == "missing: the affected data (E8, Q11)"
    assert missing["readiness.rollback"].text == "missing: readiness of the rollback plan (E9, Q12)"
    assert missing["where_not"].text == "missing: where it does not apply (Q25)"
    assert {item.guard for item in missing.values()} == {"G1"}


def test_g1_and_g2_are_met_by_a_complete_plan(cast: Cast) -> None:
    complete_plan(cast.project, cast.team)
    assert guards.check_plan(cast.project) == []
    assert guards.check_reality(cast.project) == []


@pytest.mark.parametrize("kind", ["application", "team", "data"])
def test_g1_misses_one_kind_of_what_is_affected(cast: Cast, kind: str) -> None:
    complete_plan(cast.project, cast.team)
    cast.project.affected.filter(kind=kind).delete()
    assert [item.code for item in guards.check_plan(cast.project)] == [f"affected.{kind}"]


def test_a_point_that_is_stated_as_not_ready_is_missing(cast: Cast) -> None:
    complete_plan(cast.project, cast.team)
    services.readiness_set(actor=cast.lead.as_actor(), project=cast.project, kind="capacity", ready=False)
    assert [item.code for item in guards.check_plan(cast.project)] == ["readiness.capacity"]


def test_g2_wants_reality_declared_with_its_source(cast: Cast) -> None:
    assert set(by_code(guards.check_reality(cast.project))) == {
        "declaration.real_requests",
        "declaration.real_roles",
        "declaration.operating_metrics",
    }
    complete_plan(cast.project, cast.team)
    cast.project.declarations.filter(kind="real_roles").update(source="")
    (missing,) = guards.check_reality(cast.project)
    assert missing.text == "missing: real permission roles and where they come from (S14)"


def test_a_demo_only_environment_is_flagged(cast: Cast) -> None:
    complete_plan(cast.project, cast.team)
    cast.project.demo_environment_only = True
    (missing,) = guards.check_reality(cast.project)
    assert missing.code == "demo_environment_only"
    assert "X16" in str(missing.text)


def test_every_missing_point_links_to_a_page_that_opens(cast: Cast, client: Client) -> None:
    client.force_login(cast.lead)
    cast.project.demo_environment_only = True
    for item in guards.check_plan(cast.project) + guards.check_reality(cast.project):
        assert client.get(item.url).status_code == 200


def test_a_waived_gate_lets_through_and_says_so(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "_waived", lambda project: {"G1"})
    assert gates.missing_before(cast.project, ProjectState.PLANNED) == []
    status = next(status for status in gates.gate_status(cast.project) if status.gate.code == "G1")
    assert status.waived
    assert status.met
    assert status.missing


def test_a_code_belongs_to_one_check() -> None:
    with pytest.raises(ValueError, match="registered twice"):
        gates.register_gate(gates.Gate("G1", "Other", ProjectState.PLANNED, lambda project: []))
