"""Runs, targets and matrices over REST, with the cast and with CI tokens."""

import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from rest_framework.test import APIClient

from pocs.projects.models import Project, ScenarioVersion
from pocs.runs.choices import RunState, TargetKind, Validity
from pocs.runs.models import Run, Target
from tests.factories import Cast, make_ci_token, make_request_record, make_run, make_scenario_version

As = Callable[..., APIClient]
EXECUTE = {"scenario": "short-request@1", "execute": True}


@pytest.fixture
def ci(cast: Cast, api_as: As) -> APIClient:
    """The project's CI token with the scopes to read and to run."""
    _token, plaintext = make_ci_token(cast.project, sponsor=cast.lead, scopes=("read", "runs:write"))
    return api_as(token=plaintext)


def runs_url(project: Project) -> str:
    return f"/api/v1/projects/{project.pk}/runs/"


def post(client: APIClient, url: str, body: Any, key: str = "") -> Any:
    headers = {"Idempotency-Key": key} if key else {}
    return client.post(url, body, format="json", headers=headers)


class TestExecuting:
    def test_a_token_starts_a_run(
        self, cast: Cast, ci: APIClient, version: ScenarioVersion, target: Target
    ) -> None:
        answer = post(ci, runs_url(cast.project), EXECUTE | {"tenant": "acme"})

        assert answer.status_code == 201
        body = answer.json()
        assert (body["state"], body["scenario"], body["tenant"]) == ("queued", "short-request@1", "acme")
        assert body["progress"]["total"] == 4
        assert answer["Location"] == f"/api/v1/runs/{body['id']}/"
        assert answer["ETag"] == '"1"'
        assert Run.objects.get().token is not None

    def test_a_replay_gets_the_first_answer(
        self, cast: Cast, ci: APIClient, version: ScenarioVersion, target: Target
    ) -> None:
        first = post(ci, runs_url(cast.project), EXECUTE, key="k1")
        again = post(ci, runs_url(cast.project), EXECUTE, key="k1")
        other = post(ci, runs_url(cast.project), EXECUTE | {"tenant": "x"}, key="k1")

        assert again.json()["id"] == first.json()["id"]
        assert again["Idempotent-Replayed"] == "true"
        assert other.status_code == 422
        assert Run.objects.count() == 1

    @pytest.mark.parametrize(
        ("body", "pointer"),
        [
            ({"scenario": "unknown@1", "execute": True}, "/scenario"),
            ({"scenario": "short-request@9", "execute": True}, "/scenario"),
            ({"scenario": "short-request@1", "execute": False}, "/execute"),
            ({"scenario": "short-request@1"}, "/execute"),
            ({"execute": True}, "/scenario"),
            (EXECUTE | {"priority": 1}, "/priority"),
        ],
    )
    def test_a_wrong_request_is_400_with_a_pointer(
        self,
        *,
        cast: Cast,
        ci: APIClient,
        version: ScenarioVersion,
        target: Target,
        body: dict[str, Any],
        pointer: str,
    ) -> None:
        answer = post(ci, runs_url(cast.project), body)

        assert answer.status_code == 400
        assert answer["Content-Type"] == "application/problem+json"
        assert pointer in [error["pointer"] for error in answer.json()["errors"]]
        assert not Run.objects.exists()

    def test_an_unknown_target_is_404(
        self, cast: Cast, ci: APIClient, version: ScenarioVersion, target: Target
    ) -> None:
        answer = post(ci, runs_url(cast.project), EXECUTE | {"target": "other"})

        assert answer.status_code == 404
        assert "other" in answer.json()["detail"]

    def test_an_unapproved_scenario_is_409(self, cast: Cast, ci: APIClient, target: Target) -> None:
        make_scenario_version(cast.project, "short-request", state="draft")

        assert post(ci, runs_url(cast.project), EXECUTE).status_code == 409

    @pytest.mark.parametrize(
        ("who", "status"), [("viewer", 403), ("bystander", 404), ("outsider", 404), ("contributor", 201)]
    )
    def test_who_may_start(
        self, *, cast: Cast, api_as: As, version: ScenarioVersion, target: Target, who: str, status: int
    ) -> None:
        assert post(api_as(getattr(cast, who)), runs_url(cast.project), EXECUTE).status_code == status

    def test_a_token_without_the_scope_or_of_another_project_may_not(
        self, cast: Cast, api_as: As, version: ScenarioVersion, target: Target
    ) -> None:
        foreign = Project.objects.exclude(pk=cast.project.pk).get()
        _token, reading = make_ci_token(cast.project, sponsor=cast.lead)
        _token, other = make_ci_token(foreign, sponsor=cast.outsider, scopes=("read", "runs:write"))

        assert post(api_as(token=reading), runs_url(cast.project), EXECUTE).status_code == 403
        assert post(api_as(token=other), runs_url(cast.project), EXECUTE).status_code == 404
        assert post(api_as(), runs_url(cast.project), EXECUTE).status_code == 401


class TestSubmitting:
    def test_new_then_equal_then_other(
        self, cast: Cast, ci: APIClient, version: ScenarioVersion, payload: dict[str, Any]
    ) -> None:
        new = post(ci, runs_url(cast.project), payload, key="k1")
        replay = post(ci, runs_url(cast.project), payload, key="k1")
        equal = post(ci, runs_url(cast.project), payload)
        other = post(ci, runs_url(cast.project), payload | {"commit": "f" * 40})

        assert (new.status_code, replay.status_code, equal.status_code) == (201, 201, 200)
        assert new.json()["ci"]["commit"] == payload["commit"]
        assert replay["Idempotent-Replayed"] == "true"
        assert equal.json()["id"] == new.json()["id"]
        assert other.status_code == 409
        assert other.json()["stored_commit"] == payload["commit"]
        assert payload["commit"] in other.json()["detail"]

    def test_an_unknown_unit_is_400_with_a_pointer(
        self, cast: Cast, ci: APIClient, version: ScenarioVersion, payload: dict[str, Any]
    ) -> None:
        payload["metrics"]["ttft"]["unit"] = "fortnights"

        answer = post(ci, runs_url(cast.project), payload, key="k1")

        assert answer.status_code == 400
        assert answer.json()["errors"][0]["pointer"] == "/metrics/ttft/unit"
        assert not Run.objects.exists()

    def test_nan_is_400_with_a_pointer(
        self, cast: Cast, ci: APIClient, version: ScenarioVersion, payload: dict[str, Any]
    ) -> None:
        payload["metrics"]["ttft"]["p50"] = float("nan")
        body = json.dumps(payload)

        answer = ci.post(
            runs_url(cast.project), body, content_type="application/json", headers={"Idempotency-Key": "n"}
        )

        assert answer.status_code == 400
        assert answer.json()["errors"][0]["pointer"] == "/metrics/ttft/p50"

    @pytest.mark.parametrize("body", ["[1]", "null", '"text"', "{", ""])
    def test_a_body_that_is_no_object_is_400(self, cast: Cast, ci: APIClient, body: str) -> None:
        answer = ci.post(runs_url(cast.project), body, content_type="application/json")

        assert answer.status_code == 400

    def test_an_artifact_completes_the_run(
        self, cast: Cast, ci: APIClient, version: ScenarioVersion, payload: dict[str, Any]
    ) -> None:
        content = b"log"
        artifact = {"name": "run.log", "sha256": hashlib.sha256(content).hexdigest(), "size_bytes": 3}
        run = post(ci, runs_url(cast.project), payload | {"artifacts": [artifact]}).json()
        assert run["state"] == "finalising"
        url = f"/api/v1/runs/{run['id']}/artifacts/run.log/"

        wrong = ci.post(url, {"file": SimpleUploadedFile("run.log", b"???")}, format="multipart")
        right = ci.post(url, {"file": SimpleUploadedFile("run.log", content)}, format="multipart")

        assert (wrong.status_code, right.status_code) == (400, 200)
        assert ci.get(f"/api/v1/runs/{run['id']}/").json()["state"] == "complete"

    def test_the_schema_can_be_read(self, ci: APIClient) -> None:
        assert ci.get("/api/v1/schemas/poc-run/1/").json()["title"] == "poc-run/1"


class TestReading:
    def test_a_run_states_everything(self, cast: Cast, ci: APIClient, version: ScenarioVersion) -> None:
        diagnosis = {
            "where": "queue",
            "shares": {"queue_wait": 0.7},
            "findings": [{"code": "thin_sample", "figures": {"n": 4}}],
            "advice": [
                {
                    "code": "change_batching",
                    "stage": "queue",
                    "area": "capacity",
                    "figures": {"queue_share": 0.7},
                }
            ],
        }
        reasons = [{"code": "loop_lagged", "figures": {"p99_ms": 80.2, "limit_ms": 50.0}}]
        run = make_run(
            cast.project,
            scenario_version=version,
            diagnosis=diagnosis,
            validity=Validity.INVALID,
            validity_reasons=reasons,
        )

        body = ci.get(f"/api/v1/runs/{run.pk}/").json()

        assert (body["state"], body["validity"]) == ("complete", "invalid")
        assert body["summary"]["ttft_ms"]["p50"] == 42.0
        assert body["diagnosis"]["where"] == "queue"
        assert "queue" in body["diagnosis"]["text"]
        assert body["diagnosis"]["advice"][0]["area"] == "GPU capacity"
        assert "80.2 ms" in body["validity_reasons"][0]["text"]
        assert body["configuration_digest"] == run.configuration_digest

    def test_lists_are_pages_without_the_heavy_parts(
        self, cast: Cast, ci: APIClient, version: ScenarioVersion
    ) -> None:
        for _ in range(3):
            make_run(cast.project, scenario_version=version, records=False)

        first = ci.get(runs_url(cast.project), {"page_size": 2}).json()
        second = ci.get(first["next"]).json()

        assert [row["number"] for row in first["results"] + second["results"]] == [3, 2, 1]
        assert second["next"] is None
        assert "summary" not in first["results"][0]

    def test_lists_are_filtered(self, cast: Cast, ci: APIClient, version: ScenarioVersion) -> None:
        make_run(cast.project, scenario_version=version, records=False)
        make_run(cast.project, state=RunState.FAILED, records=False)

        def numbers(**query: str) -> list[int]:
            return [row["number"] for row in ci.get(runs_url(cast.project), query).json()["results"]]

        assert numbers(scenario="short-request") == numbers(scenario="short-request@1") == [1]
        assert numbers(state="failed") == [2]

    @pytest.mark.parametrize(
        ("query", "status"),
        [({"scenario": "nothing"}, 404), ({"scenario": "nothing@1"}, 400), ({"state": "asleep"}, 400)],
    )
    def test_an_unknown_filter_is_refused_clearly(
        self, cast: Cast, ci: APIClient, query: dict[str, str], status: int
    ) -> None:
        answer = ci.get(runs_url(cast.project), query)

        assert answer.status_code == status
        assert next(iter(query.values())) in answer.json()["detail"]

    def test_requests_have_the_fields_of_requests_jsonl(
        self, cast: Cast, ci: APIClient, version: ScenarioVersion
    ) -> None:
        run = make_run(cast.project, scenario_version=version)
        make_request_record(run, 0, warmup=True, request_id="warmup-1")

        body = ci.get(f"/api/v1/runs/{run.pk}/requests/").json()

        assert [row["id"] for row in body["results"]] == ["r0", "r1", "r2", "r3"]
        row = body["results"][0]
        assert row["intervals_ms"]["queue_wait"] == 6.0
        assert row["stamps"]["sent_ns"] == 1_000_000_000
        assert {"finish_reason", "token_ids", "ttfv_ms", "ttfot_ms", "max_gap_ms", "reads"} <= set(row)
        warm = ci.get(f"/api/v1/runs/{run.pk}/requests/", {"warmup": "true"}).json()
        assert [row["id"] for row in warm["results"]] == ["warmup-1"]

    def test_requests_are_paged_and_filtered(
        self, cast: Cast, ci: APIClient, version: ScenarioVersion
    ) -> None:
        run = make_run(cast.project, scenario_version=version)
        run.requests.filter(index=2).update(tenant="tenant-b", outcome="timeout")
        url = f"/api/v1/runs/{run.pk}/requests/"

        def ids(**query: Any) -> list[str]:
            found, page = [], ci.get(url, query).json()
            while True:
                found += [row["id"] for row in page["results"]]
                if page["next"] is None:
                    return found
                page = ci.get(page["next"]).json()

        assert ids(page_size=2) == ["r0", "r1", "r2", "r3"]
        assert ids(tenant="tenant-b") == ids(outcome="timeout") == ["r2"]
        assert ids(application="help-desk", tenant="tenant-a") == ["r0", "r1", "r3"]
        assert ci.get(url, {"outcome": "great"}).status_code == 400

    @pytest.mark.parametrize(
        ("who", "status"), [("viewer", 200), ("auditor", 200), ("bystander", 404), ("outsider", 404)]
    )
    @pytest.mark.parametrize("part", ["", "requests/"])
    def test_who_may_read(
        self, *, cast: Cast, api_as: As, version: ScenarioVersion, who: str, status: int, part: str
    ) -> None:
        run = make_run(cast.project, scenario_version=version)

        answer = api_as(getattr(cast, who)).get(f"/api/v1/runs/{run.pk}/{part}")

        assert answer.status_code == status


class TestEnding:
    def test_cancelling(self, cast: Cast, ci: APIClient, api_as: As, version: ScenarioVersion) -> None:
        run = make_run(cast.project, scenario_version=version, state=RunState.QUEUED)
        url = f"/api/v1/runs/{run.pk}/cancel/"

        assert api_as(cast.viewer).post(url).status_code == 403
        assert api_as(cast.outsider).post(url).status_code == 404
        assert ci.post(url).json()["state"] == "cancelled"
        assert ci.post(url).status_code == 409

    def test_superseding(self, cast: Cast, api_as: As, version: ScenarioVersion) -> None:
        old, new = (make_run(cast.project, scenario_version=version, records=False) for _ in range(2))
        url = f"/api/v1/runs/{old.pk}/supersede/"

        answer = post(api_as(cast.lead), url, {"by": new.pk})

        assert (answer.status_code, answer.json()["superseded_by"]) == (200, new.pk)
        assert post(api_as(cast.lead), url, {"by": 0}).status_code == 404
        assert post(api_as(cast.viewer), url, {"by": new.pk}).status_code == 403


class TestTargetsAndMatrices:
    BODY = {
        "name": "vLLM",
        "kind": TargetKind.HTTP,
        "location": "http://gpu-1:8000/v1",
        "model": "qwen",
        "credential": "s3cret",
    }

    def test_a_target_never_shows_its_credential(self, cast: Cast, api_as: As) -> None:
        lead = api_as(cast.lead)

        made = post(lead, f"/api/v1/projects/{cast.project.pk}/targets/", self.BODY)

        assert made.status_code == 201
        assert made.json()["has_credential"] is True
        listed = lead.get(f"/api/v1/projects/{cast.project.pk}/targets/")
        assert "s3cret" not in made.content.decode() + listed.content.decode()

    def test_changing_needs_the_version_and_keeps_what_is_not_named(self, cast: Cast, api_as: As) -> None:
        lead = api_as(cast.lead)
        made = post(lead, f"/api/v1/projects/{cast.project.pk}/targets/", self.BODY)
        url = made["Location"]

        assert lead.patch(url, {"model": "q2"}, format="json").status_code == 428
        changed = lead.patch(url, {"model": "q2"}, format="json", headers={"If-Match": '"1"'})
        assert (changed.json()["model"], changed.json()["location"]) == ("q2", self.BODY["location"])
        assert changed.json()["has_credential"] is True
        stale = lead.patch(url, {"model": "q3"}, format="json", headers={"If-Match": '"1"'})
        assert stale.status_code == 412
        unknown = lead.patch(url, {"kind": "engine"}, format="json", headers={"If-Match": '"2"'})
        assert unknown.status_code == 400

    def test_tokens_and_viewers_add_no_targets(self, cast: Cast, ci: APIClient, api_as: As) -> None:
        url = f"/api/v1/projects/{cast.project.pk}/targets/"

        assert post(ci, url, self.BODY).status_code == 403
        assert post(api_as(cast.viewer), url, self.BODY).status_code == 403
        assert post(api_as(cast.outsider), url, self.BODY).status_code == 404

    def test_a_matrix_starts_reads_and_is_cancelled(
        self, cast: Cast, ci: APIClient, version: ScenarioVersion, target: Target
    ) -> None:
        started = post(ci, f"/api/v1/projects/{cast.project.pk}/matrices/", {"target": "engine"})

        assert started.status_code == 201
        url = started["Location"]
        assert [run["scenario"] for run in ci.get(url).json()["runs"]] == ["short-request@1"]
        assert ci.post(f"{url}cancel/").json()["runs"][0]["state"] == "cancelled"

    def test_a_matrix_of_nothing_is_409(self, cast: Cast, ci: APIClient, target: Target) -> None:
        assert post(ci, f"/api/v1/projects/{cast.project.pk}/matrices/", {}).status_code == 409
