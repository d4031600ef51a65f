"""Limits as data: the forms in which they are given, and what is refused."""

from typing import Any

import pytest

from inference import criteria
from pocs.common.errors import InvalidInput
from pocs.projects import limits
from pocs.projects.limits import Limit, limit_of_line
from pocs.projects.scenario_spec import ScenarioSpec

COMPLETE = {"input_tokens": 10, "output_tokens": 10, "concurrency": 1, "requests": 4}


def read(*given: Any) -> tuple[Limit, ...]:
    return ScenarioSpec.from_json(COMPLETE | {"limits": list(given)}).limits


@pytest.mark.parametrize(
    ("given", "limit"),
    [
        (
            {"metric": "ttft_ms", "percentile": "p95", "bound": 0.8, "unit": "s", "direction": "max"},
            Limit(metric="ttft_ms", percentile="p95", max=800.0),
        ),
        ({"metric": "error_rate", "bound": 1, "unit": "%"}, Limit(metric="error_rate", max=0.01)),
        (
            {"metric": "output_tokens_per_second", "min": 100},
            Limit(metric="output_tokens_per_second", min=100.0),
        ),
        ({"metric": "cache_hit_rate", "bound": 0.5}, Limit(metric="cache_hit_rate", min=0.5)),
    ],
)
def test_a_limit_in_its_forms(given: dict[str, Any], limit: Limit) -> None:
    assert read(given) == (limit,)
    assert read(limit.as_json()) == (limit,)
    assert read(limit_of_line(str(limit))) == (limit,)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"metric": "ttft_ms", "bound": 100}, "percentile"),
        ({"metric": "error_rate", "percentile": "p95", "bound": 0.1}, "percentile"),
        ({"metric": "error_rate", "bound": 0.1, "unit": "ms"}, "unit"),
        ({"metric": "error_rate", "bound": 0.1, "direction": "sideways"}, "direction"),
        ({"metric": "accuracy", "bound": 0.95}, "metric"),
    ],
)
def test_what_is_no_limit(given: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read(given)
    assert f"/limits/0/{field}" in [error.pointer for error in caught.value.errors]


@pytest.mark.parametrize("line", ["latency < 100 ms", "accuracy over 95 %", "p95 ttft_ms <= fast", "ttft"])
def test_a_wish_stays_as_typed(line: str) -> None:
    assert limit_of_line(line) == line


def test_a_line_may_carry_its_unit() -> None:
    assert read(limit_of_line("p95 ttft_ms <= 0.8 s"), limit_of_line("error_rate <= 1 %")) == (
        Limit(metric="ttft_ms", percentile="p95", max=800.0),
        Limit(metric="error_rate", max=0.01),
    )


def test_the_measuring_core_knows_every_metric() -> None:
    assert set(limits.KNOWN) <= set(criteria.METRICS)
    for metric, (unit, direction) in limits.RATE_METRICS.items():
        known = criteria.METRICS[metric]
        assert (known.unit, known.direction, known.per_request) == (unit, direction, False)
