"""The limits of a run in words, on its page, in lists, and of a submitted result."""

from typing import Any

import pytest
from django.utils.translation import override

from inference.criteria import METRICS
from pocs.common.actors import Actor
from pocs.projects.models import Project
from pocs.runs import services
from pocs.runs.templatetags.limits import limits_badge
from pocs.runs.wording import limits
from tests.factories import make_run, make_scenario_version, make_summary
from tests.pocs.runs.fakes import poc_run

JUDGED = {
    "metric": "ttft_ms",
    "percentile": "p95",
    "max": 800.0,
    "value": 612.5,
    "n": 20,
    "interval": [590.0, None],
    "holds": True,
    "needed": 72,
    "verdict": "inconclusive",
    "reason": "limit_few_samples",
}


def test_a_limit_with_everything_it_rests_on() -> None:
    with override("en"):
        line = limits.limit_lines({"limits": [JUDGED]})[0]

    assert (line.label, line.bound, line.value) == ("p95 time to first token (TTFT)", "≤ 800 ms", "612 ms")
    assert line.interval == "590 ms to —"
    assert line.reason == "too few samples: 20, at least 72 are needed"


def test_limits_of_runs_before_verdicts_are_judged_by_their_value() -> None:
    old = {"metric": "tpot_ms", "percentile": "p50", "max": 30, "value": 40.0, "holds": False}

    assert limits.limit_counts({"limits": [old]})["fail"] == 1
    assert limits.limit_lines({"limits": [old]})[0].verdict == "fail"


def test_every_metric_and_reason_has_its_words() -> None:
    assert set(METRICS) == set(limits.METRICS)


@pytest.mark.parametrize(
    ("verdicts", "shown"),
    [([], ""), (["pass", "inconclusive"], "inconclusive"), (["pass", "fail", "inconclusive"], "fail")],
)
def test_the_badge_shows_the_worst(verdicts: list[str], shown: str) -> None:
    assert shown in str(limits_badge({"limits": [JUDGED | {"verdict": verdict} for verdict in verdicts]}))


def test_the_page_of_a_run_shows_its_limits(cast: Any, page_as: Any) -> None:
    run = make_run(cast.project, summary=make_summary(limits=[JUDGED], goodput=0.9))

    response = page_as(cast.viewer).get(f"/runs/{run.pk}/")

    assert "too few samples: 20" in response.content.decode()
    assert "too few" not in page_as(cast.viewer).get(f"/projects/{cast.project.pk}/runs/").content.decode()


def test_a_submitted_result_is_judged_by_its_scenarios_limits(project: Project) -> None:
    limit = {"metric": "error_rate", "max": 0.5}
    version = make_scenario_version(project, "short-request")
    version.spec = version.spec | {"limits": [limit]}
    version.save()
    actor = Actor(
        kind="system", organisation_id=project.organisation_id, label="", user_id=project.created_by_id
    )
    run, _created = services.run_ingest(actor=actor, project=project, payload=poc_run())

    assert run.summary is not None
    assert run.summary["limits"][0]["metric"] == "error_rate"
