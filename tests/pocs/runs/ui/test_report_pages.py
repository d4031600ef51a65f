"""The page of what is known of an endpoint, and what a server tells on the page of a run."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from inference.targets.habits import habit
from inference.targets.server_summary import with_server
from pocs.people.models import User
from pocs.projects.models import Project
from pocs.runs.choices import ReportKind, ReportState, TargetKind
from pocs.runs.models import Target, TargetReport
from tests.factories import Cast, make_run, make_scenario_version, make_summary, make_target

PageAs = Callable[[User], Client]


@pytest.fixture
def endpoint(project: Project) -> Target:
    return make_target(
        project, name="vLLM", kind=TargetKind.HTTP, location="http://127.0.0.1:9/v1", model="m"
    )


def reports_url(target: Target) -> str:
    return reverse("runs:target_reports", args=[target.project_id, target.pk])


def add_check(target: Target, **fields: Any) -> TargetReport:
    items = [
        {"code": "reachable", "verdict": "good", "figures": {"took_ms": 12.0}},
        {"code": "usage", "verdict": "lacks", "figures": {"source": "reads", "n": 4}},
        {"code": "answers", "verdict": "bad", "figures": {"outcome": "failed", "text": "<b>boom</b>"}},
    ]
    given = {"state": ReportState.DONE, "ok": False, "report": {"items": items}, "target_version": 1}
    return TargetReport.objects.create(target=target, kind=ReportKind.CHECK, **(given | fields))


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_a_check_is_shown_line_by_line(cast: Cast, endpoint: Target, page_as: PageAs, language: str) -> None:
    add_check(endpoint)
    client = page_as(cast.viewer)
    client.cookies["django_language"] = language
    answer = client.get(reports_url(endpoint))
    html = answer.content.decode()
    assert answer.status_code == 200
    assert "&lt;b&gt;boom&lt;/b&gt;" in html
    assert html.count('class="badge bad"') == html.count('class="badge good"') == 1
    assert "Check now" not in html  # a viewer looks and does not ask the endpoint


def test_a_changed_target_is_to_be_checked_again(cast: Cast, endpoint: Target, page_as: PageAs) -> None:
    client = page_as(cast.lead)
    assert "never been checked" in client.get(reports_url(endpoint)).content.decode()
    add_check(endpoint, target_version=endpoint.version + 1)
    assert "has been changed since" in client.get(reports_url(endpoint)).content.decode()


def test_habits_are_started_followed_and_shown(cast: Cast, endpoint: Target, page_as: PageAs) -> None:
    client = page_as(cast.lead)
    start = reverse("runs:target_conformance", args=[endpoint.project_id, endpoint.pk])
    assert client.post(start).status_code == 302
    running = client.get(reports_url(endpoint))
    assert (running["Refresh"], "<progress" in running.content.decode()) == ("2", True)
    seen = {
        "habits": [habit("no_usage", "none, tokens by reads", "misleads"), habit("comments", 0, "not_seen")]
    }
    TargetReport.objects.update(state=ReportState.DONE, report=seen)
    shown = client.get(reports_url(endpoint))
    html = shown.content.decode()
    assert "Refresh" not in shown
    assert "no usage at the end" in html
    assert "PhaseGate: tokens are counted by tokenizer" in html


def test_who_sees_and_who_asks(cast: Cast, endpoint: Target, page_as: PageAs) -> None:
    start = reverse("runs:target_conformance", args=[endpoint.project_id, endpoint.pk])
    assert page_as(cast.outsider).get(reports_url(endpoint)).status_code == 404
    assert page_as(cast.outsider).post(start).status_code == 404
    assert page_as(cast.viewer).get(reports_url(endpoint)).status_code == 200
    page_as(cast.viewer).post(start)
    assert not TargetReport.objects.exists()


def test_the_run_page_puts_the_server_beside_the_client(
    cast: Cast, project: Project, endpoint: Target, page_as: PageAs
) -> None:
    time = {"n": 8, "sum": 100.0, "mean": 12.5, "p50_above": 0.0, "p50_at_most": 300.0, "family": "vllm:x"}
    time |= {"p95_above": 0.0, "p95_at_most": 300.0, "source": "server aggregate"}
    window = {
        "from_ns": 0,
        "to_ns": 10**9,
        "scrapes": 3,
        "failed": 0,
        "slowest_ms": 3.0,
        "largest_bytes": 9,
        "problems": [],
        "resets": [{"at_ns": 5 * 10**8, "after_ns": 1, "family": "vllm:x_count"}],
        "times": {"queue_wait_ms": time, "prefill_ms": time, "ttft_ms": time},
        "counts": {"finished_requests": {"value": 9.0, "family": "vllm:request_success_total"}},
        "gauges": {},
        "families": {},
        "constants": {},
        "populations": ["ttft_ms", "finished_requests_total"],
        "stale_ms": 2000.0,
    }
    summary = make_summary(queue_wait_ms={"n": 0, "mean": None, "p50": None, "p95": None}, attempted=8)
    label = {"name": "vllm", "title": "vLLM", "version": "0.32", "found_from": ["owned_by vllm"]}
    observation = {"dialect": label, "url": "http://x/metrics", "window": window}
    run = make_run(
        project,
        scenario_version=make_scenario_version(project, "short-request"),
        target=endpoint,
        summary=with_server(summary, observation),
        target_check={"state": "unchecked", "report": None, "at": None},
    )
    html = page_as(cast.viewer).get(reverse("runs:detail", args=[run.pk])).content.decode()
    for text in (
        "What the server tells",
        "vLLM 0.32",
        "p95 ≤ 300 ms",
        "it was started again",
        "count different requests",
        "they prove nothing",
        "somebody else",
        "had not been checked when this run was started",
        "server, all requests together",
    ):
        assert text in html, text
