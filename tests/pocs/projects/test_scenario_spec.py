"""A scenario's definition: what is refused, and with which words at which pointer."""

from typing import Any

import pytest

from pocs.common.canonical import canonical_json
from pocs.common.errors import InvalidInput
from pocs.projects.limits import Limit
from pocs.projects.scenario_spec import Interruption, ScenarioSpec

COMPLETE: dict[str, Any] = {"input_tokens": 64, "output_tokens": 16, "concurrency": 2, "requests": 8}


def errors(data: Any) -> dict[str, str]:
    """Pointer -> code of what is refused."""
    with pytest.raises(InvalidInput) as caught:
        ScenarioSpec.from_json(data)
    return {error.pointer: error.code for error in caught.value.errors}


def test_a_spec_survives_its_stored_form() -> None:
    spec = ScenarioSpec.from_json(
        COMPLETE
        | {
            "interruptions": [{"phase": "decode", "every": 3}],
            "limits": [{"metric": "ttft_ms", "percentile": "p95", "max": 800}],
            "prompts": ["你好"],
            "tenants": ["a"],
        }
    )
    assert spec.interruptions == (Interruption(phase="decode", every=3),)
    assert spec.limits == (Limit(metric="ttft_ms", percentile="p95", max=800.0),)
    again = ScenarioSpec.from_json(spec.as_json())
    assert again == spec
    assert canonical_json(again.as_json()) == canonical_json(spec.as_json())


def test_lengths_load_and_number_have_no_default() -> None:
    assert errors({}) == {
        "/input_tokens": "required",
        "/output_tokens": "required",
        "/concurrency": "required",
        "/requests": "required",
    }


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [
        ("input_tokens", 0, "range"),
        ("input_tokens", 64.0, "type"),
        ("input_tokens", "64", "type"),
        ("output_tokens", True, "type"),
        ("output_tokens", None, "type"),
        ("concurrency", -1, "range"),
        ("requests", 10**7, "range"),
        ("rate", 0, "range"),
        ("rate", float("nan"), "type"),
        ("rate", float("inf"), "type"),
        ("temperature", 2.5, "range"),
        ("timeout_s", 0, "range"),
        ("seed", 2**63, "range"),
        ("language", "fr", "unknown"),
        ("language", ["en"], "unknown"),
        ("prompts", "one text", "type"),
        ("tenants", {"a": 1}, "type"),
        ("shared_prefix_tokens", 65, "range"),
        ("requests", 1, "never_reached"),
        ("warmup", 1, "unknown"),
    ],
)
def test_one_wrong_field_is_named(field: str, value: Any, code: str) -> None:
    assert errors(COMPLETE | {field: value}) == {f"/{field}": code}


@pytest.mark.parametrize("data", [None, [], "text", 5])
def test_what_is_no_object_is_refused(data: Any) -> None:
    assert errors(data)[""] == "type"


def test_entries_of_lists_are_named_by_their_index() -> None:
    assert errors(COMPLETE | {"prompts": ["good", "", 5]}) == {
        "/prompts/1": "invalid",
        "/prompts/2": "invalid",
    }
    wrong = [{"phase": "network"}, {"phase": "decode", "every": 0}, {"phase": "queue", "when": 1}, "decode"]
    assert errors(COMPLETE | {"interruptions": wrong}) == {
        "/interruptions/0/phase": "unknown",
        "/interruptions/1/every": "range",
        "/interruptions/2/when": "unknown",
        "/interruptions/3": "type",
    }


def test_latency_below_100_ms_is_no_limit() -> None:
    with pytest.raises(InvalidInput) as caught:
        ScenarioSpec.from_json({"limits": ["latency < 100 ms"]}, pointer="/spec")
    found = {error.pointer: str(error.detail) for error in caught.value.errors}
    assert "names no percentile, phase, length and load" in found["/spec/limits/0"]
    assert {"/spec/input_tokens", "/spec/output_tokens", "/spec/concurrency"} <= set(found)


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        ({"metric": "ttft_ms", "max": 100}, {"/limits/0/percentile": "percentile_required"}),
        (
            {"metric": "ttft_ms", "percentile": "mean", "max": 100},
            {"/limits/0/percentile": "percentile_required"},
        ),
        ({"metric": "latency", "percentile": "p95", "max": 100}, {"/limits/0/metric": "phase_required"}),
        ({"metric": "ttft_ms", "percentile": "p95"}, {"/limits/0/max": "required"}),
        ({"metric": "ttft_ms", "percentile": "p95", "max": -1}, {"/limits/0/max": "range"}),
        ({"metric": "e2e_ms", "percentile": "p95", "max": 100}, {"/limits": "total_alone"}),
    ],
)
def test_a_limit_names_phase_percentile_and_bound(limit: dict[str, Any], expected: dict[str, str]) -> None:
    assert errors(COMPLETE | {"limits": [limit]}) == expected


def test_a_mean_is_refused_in_words() -> None:
    with pytest.raises(InvalidInput) as caught:
        ScenarioSpec.from_json(COMPLETE | {"limits": [{"metric": "tpot_ms", "percentile": "mean", "max": 1}]})
    assert "A mean hides the tail" in str(caught.value.errors[0].detail)


def test_a_total_time_beside_a_phase_is_fine() -> None:
    limits = [{"metric": name, "percentile": "p95", "max": 100} for name in ("e2e_ms", "ttft_ms")]
    assert len(ScenarioSpec.from_json(COMPLETE | {"limits": limits}).limits) == 2
