"""What CI does with its token on the running site: execute a scenario, read it, submit results of its own."""

import json
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.running_site import Site
from tests.pocs.runs.fakes import poc_run

pytestmark = pytest.mark.browser

RUN_WITHIN_S = 180
SUMMARY = (
    "schema",
    "ttft_ms",
    "tpot_ms",
    "queue_wait_ms",
    "prefill_ms",
    "e2e_ms",
    "output_tokens_per_second",
)


def runs_path(site: Site) -> str:
    return f"/api/v1/projects/{site.demo['project']}/runs/"


def test_a_scenario_is_found_executed_and_read(site: Site) -> None:
    project = site.demo["project"]
    status, _headers, listed = site.api("/api/v1/projects/")
    assert (status, listed["next"]) == (200, None)
    assert [row["id"] for row in listed["results"]] == [project]
    scenarios = {
        f"{row['slug']}@{row['version']}" for row in site.rows(f"/api/v1/projects/{project}/scenarios/")
    }
    assert {"short-request@1", "long-context@1", "interruption@1"} <= scenarios

    status, headers, run = site.api(runs_path(site), {"scenario": "short-request@1", "execute": True})
    assert (status, run["state"]) == (201, "queued")
    assert headers["location"].endswith(f"/api/v1/runs/{run['id']}/")
    ended = site.run_ended(run["id"], within_s=RUN_WITHIN_S)
    assert (ended["state"], ended["error"]) == ("complete", "")
    assert ended["progress"]["done"] == ended["progress"]["total"] == 16
    assert all(ended["summary"][name] is not None for name in SUMMARY)
    assert ended["summary"]["ttft_ms"]["n"] == 16
    assert ended["diagnosis"]["text"]
    requests = site.rows(f"/api/v1/runs/{run['id']}/requests/")
    measured = [row for row in requests if not row["warmup"]]
    assert len(measured) == 16
    assert {row["outcome"] for row in measured} == {"success"}
    assert {row["tenant"] for row in measured} == {"retail", "insurance"}


def test_a_result_is_submitted_once_however_often_it_is_sent(site: Site) -> None:
    payload = poc_run(run="e2e-1")
    first = site.api(runs_path(site), payload, Idempotency_Key="e2e-1")
    assert first[0] == 201
    assert (first[2]["state"], first[2]["validity"]) == ("complete", "valid")
    again = site.api(runs_path(site), payload, Idempotency_Key="e2e-1")
    assert again[0] == 201
    assert again[1]["idempotent-replayed"] == "true"
    assert again[2]["id"] == first[2]["id"]
    other = site.api(runs_path(site), payload | {"tenant": "other"}, Idempotency_Key="e2e-1")
    assert other[0] == 422
    assert other[1]["content-type"] == "application/problem+json"
    changed = site.api(runs_path(site), payload | {"tenant": "other"})
    assert changed[0] == 409
    assert payload["commit"] in changed[2]["detail"]


@pytest.mark.parametrize(
    ("body", "status", "names"),
    [
        ({"scenario": "no-such@1", "execute": True}, (400, 404), "no-such"),
        ({"scenario": "short-request@9", "execute": True}, (400, 404), "short-request@9"),
        (poc_run(run="e2e-2", load={"model": "closed", "requests": -1}), (400,), "/load/requests"),
    ],
)
def test_wrong_input_is_named(site: Site, body: Any, status: tuple[int, ...], names: str) -> None:
    answered, headers, problem = site.api(runs_path(site), body)
    assert answered in status
    assert headers["content-type"] == "application/problem+json"
    assert names in json.dumps(problem)


def test_a_wrong_token_reads_nothing(site: Site) -> None:
    status, _headers, problem = site.api("/api/v1/projects/", token="wrong")
    assert status == 401
    assert problem["request_id"]


def test_schema_and_reference_answer(site: Site, page: Page) -> None:
    status, _headers, schema = site.api("/api/v1/schema/?format=json")
    assert status == 200
    assert "/api/v1/runs/{id}/" in str(schema)
    page.goto(f"{site.url}/api/docs/")
    page.get_by_placeholder("Filter by tag").fill("projects", timeout=20_000)
    page.get_by_role("button", name="Expand operation").first.click()
    expect(page.get_by_text("/api/v1/projects/", exact=True).first).to_be_visible()
