"""Bodies: what a draft may hold, what a submission needs, what a run gives by itself."""

from collections.abc import Callable
from typing import Any

import pytest

from pocs.common.errors import InvalidInput
from pocs.evidence.bodies import captured_configuration, empty_body, json_schema
from pocs.evidence.choices import EvidenceType
from pocs.evidence.services import configuration_from_run
from pocs.evidence.validation import clean, missing_fields
from pocs.runs.choices import Validity
from pocs.runs.models import Run
from tests.factories import Cast, make_run, make_team, make_user


def wrong_places(type: str, body: Any, cast: Cast) -> set[tuple[str, str]]:
    with pytest.raises(InvalidInput) as refusal:
        clean(type=type, body=body, project=cast.project)
    return {(wrong.pointer, wrong.code) for wrong in refusal.value.errors}


@pytest.mark.parametrize("type", EvidenceType.values)
def test_an_empty_draft_is_valid_and_says_what_it_lacks(cast: Cast, type: str) -> None:
    assert clean(type=type, body={}, project=cast.project) == empty_body(type)
    assert missing_fields(type=type, body=empty_body(type), runs=[])


@pytest.mark.parametrize("type", EvidenceType.values)
def test_a_complete_body_lacks_nothing(
    cast: Cast, run: Run, body_of: Callable[[str], dict[str, Any]], type: str
) -> None:
    body = clean(type=type, body=body_of(type), project=cast.project)
    assert missing_fields(type=type, body=body, runs=[run]) == []


def test_runtime_keeps_first_token_and_generation_apart(cast: Cast, run: Run, body_of: Any) -> None:
    body = body_of("runtime") | {"generation": ""}
    assert [lack.pointer for lack in missing_fields(type="runtime", body=body, runs=[run])] == [
        "/body/generation"
    ]
    assert wrong_places("runtime", {"latency": "310 ms"}, cast) == {("/body/latency", "unknown")}


def test_wrong_values_are_pointed_at(cast: Cast) -> None:
    row = {"kind": "boss", "subject": 3, "team": 10**9, "person": True}
    assert wrong_places("responsibility", {"rows": [row]}, cast) == {
        ("/body/rows/0/kind", "choice"),
        ("/body/rows/0/subject", "invalid"),
        ("/body/rows/0/team", "not_found"),
        ("/body/rows/0/person", "invalid"),
    }
    assert wrong_places("responsibility", {"rows": "x"}, cast) == {("/body/rows", "invalid")}
    assert wrong_places("configuration", {"model": {"layers": float("nan")}}, cast) == {
        ("/body/model", "invalid")
    }
    assert wrong_places("retrospective", [], cast) == {("/body", "invalid")}
    assert wrong_places("retrospective", {"conclusion": "x" * 20_001}, cast) == {
        ("/body/conclusion", "max_length")
    }


def test_teams_and_people_of_another_organisation_do_not_exist(cast: Cast) -> None:
    foreign = make_team(make_user().organisation)
    body = {"rows": [{"kind": "approval", "team": foreign.pk, "person": cast.outsider.pk}]}
    assert wrong_places("responsibility", body, cast) == {
        ("/body/rows/0/team", "not_found"),
        ("/body/rows/0/person", "not_found"),
    }


def test_each_kind_of_responsibility_needs_a_row_with_its_team(cast: Cast) -> None:
    rows = [
        {"kind": "alert", "subject": "Queue too long", "team": None},
        {"kind": "handler", "subject": "Restart", "team": cast.team.pk},
    ]
    body = clean(type="responsibility", body={"rows": rows}, project=cast.project)
    lacks = [lack.pointer for lack in missing_fields(type="responsibility", body=body, runs=[])]
    assert lacks == [
        "/body/rows/0/team",
        "/body/rows/0/alert_route",
        "/body/rows/1/on_call",
        "/body/rows",  # no approval
        "/body/rows",  # no ownership
    ]


def test_a_configuration_is_captured_from_the_run(cast: Cast, run: Run) -> None:
    body = configuration_from_run(run)
    assert body["source_run"] == run.pk
    assert body["model"] == {"model_digest": "a" * 64}
    assert body["engine_settings"] == {"dtype": "float32"}
    assert body["versions"] == {"torch": "2"}
    assert body["environment"] == {"platform": "test", "cpus": 2}
    assert body["configuration_digest"] == run.configuration_digest
    assert body["policy"] == ""


def test_what_ci_submitted_is_captured_too(cast: Cast) -> None:
    run = make_run(
        cast.project,
        configuration={
            "configuration": {"model": "small", "max_num_seqs": 8},
            "environment": {"gpu": "L4"},
        },
    )
    captured = captured_configuration(run)
    assert captured["model"] == {"name": "small"}
    assert captured["engine_settings"] == {"max_num_seqs": 8}
    assert captured["environment"] == {"gpu": "L4"}


def test_the_engine_s_record_is_spread_over_the_fields(cast: Cast) -> None:
    run = make_run(
        cast.project,
        configuration={
            "model": "small",
            "model_digest": "a" * 64,
            "dtype": "bfloat16",
            "shape": {"layers": 30},
            "engine": {"max_batch": 32},
            "device": "cpu",
            "versions": {"torch": "2.13.0"},
            "target": {"kind": "engine", "model": "small"},
            "environment": {"cpu_cores": 2},
        },
    )
    captured = captured_configuration(run)
    assert captured["model"] == {
        "name": "small",
        "model_digest": "a" * 64,
        "dtype": "bfloat16",
        "shape": {"layers": 30},
    }
    assert captured["engine_settings"] == {
        "max_batch": 32,
        "device": "cpu",
        "target": {"kind": "engine", "model": "small"},
    }


def test_what_a_run_did_not_record_is_typed(cast: Cast) -> None:
    run = make_run(
        cast.project,
        configuration={
            "url": "http://host/v1",
            "target": {"model": "large"},
            "environment": {"cpu_cores": 2},
        },
    )
    body = configuration_from_run(run) | {"versions": {"vllm": "0.9"}}
    cleaned = clean(type="configuration", body=body, project=cast.project)
    assert cleaned["model"] == {"name": "large"}
    assert cleaned["versions"] == {"vllm": "0.9"}
    other_digest = body | {"configuration_digest": "e" * 64}
    assert wrong_places("configuration", other_digest, cast) == {("/body/configuration_digest", "differs")}


def test_captured_values_cannot_be_edited(cast: Cast, run: Run) -> None:
    body = configuration_from_run(run) | {"versions": {"torch": "3"}}
    assert wrong_places("configuration", body, cast) == {("/body/versions", "differs")}
    named_only = clean(type="configuration", body={"source_run": run.pk}, project=cast.project)
    assert named_only["versions"] == {"torch": "2"}


def test_a_configuration_rests_only_on_runs_that_count(cast: Cast, run: Run) -> None:
    invalid = make_run(cast.project, validity=Validity.INVALID)
    foreign = make_run(cast.outsider.project_roles.get().project)
    for source in (invalid.pk, foreign.pk, 10**9):
        assert wrong_places("configuration", {"source_run": source}, cast) == {
            ("/body/source_run", "not_found")
        }


@pytest.mark.parametrize("type", EvidenceType.values)
def test_the_schema_names_every_field(type: str) -> None:
    assert set(json_schema(type)["properties"]) == set(empty_body(type))
