"""Results that CI submits: what is refused and where, what is stored once, and when it is complete."""

import copy
import hashlib
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from pocs.common.errors import Conflict, FieldError, InvalidInput, NotFound, NotPermitted
from pocs.common.models import AuditEntry
from pocs.projects.models import Project, ScenarioVersion
from pocs.runs import selectors, services
from pocs.runs.choices import RunOrigin, RunState, Validity
from pocs.runs.manifest import manifest_check
from pocs.runs.models import Run
from pocs.runs.services import ingest
from tests.factories import Cast, make_scenario_version
from tests.pocs.runs.fakes import poc_run


def submit(cast: Cast, payload: dict[str, Any]) -> tuple[Run, bool]:
    return services.run_ingest(actor=cast.contributor.as_actor(), project=cast.project, payload=payload)


def refused(cast: Cast, payload: Any) -> list[FieldError]:
    """The errors of a refused payload, after which nothing was stored."""
    with pytest.raises(InvalidInput) as caught:
        submit(cast, payload)
    assert not Run.objects.exists()
    return caught.value.errors


def changed(path: str, value: Any) -> dict[str, Any]:
    """A good payload with one member replaced, named by JSON pointer."""
    payload = poc_run()
    *parents, last = path.strip("/").split("/")
    place: Any = payload
    for step in parents:
        place = place[int(step)] if isinstance(place, list) else place[step]
    place[last] = value
    return payload


def test_a_good_result_is_complete_valid_and_in_our_units(
    cast: Cast, version: ScenarioVersion, payload: dict[str, Any]
) -> None:
    run, created = submit(cast, payload)

    assert created
    assert (run.state, run.validity, run.origin) == (RunState.COMPLETE, Validity.VALID, RunOrigin.INGESTED)
    assert run.summary["ttft_ms"]["p95"] == pytest.approx(216.0)
    assert run.summary["memory"]["peak_bytes"] == 1.5 * 2**30
    assert run.summary["error_rate"] == pytest.approx(1 / 40)
    assert run.summary["cache_hit_rate"] is None
    assert run.summary["requests"]["timeout"] == 1
    assert run.diagnosis["where"] == "decode"
    assert run.submission["commit"] == payload["commit"]
    assert run.counts_as_evidence


def test_units_are_converted(cast: Cast, version: ScenarioVersion) -> None:
    payload = poc_run()
    payload["metrics"]["ttft"] = {"unit": "s", "n": 40, "p50": 0.12, "p95": 0.3}
    payload["metrics"]["cache_hit_rate"] = {"unit": "percent", "value": 25}

    run, _created = submit(cast, payload)

    assert run.summary["ttft_ms"]["p50"] == pytest.approx(120.0)
    assert run.summary["ttft_ms"]["p99"] is None
    assert run.summary["cache_hit_rate"] == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("path", "value", "pointer", "code"),
    [
        ("/metrics/ttft/unit", "parsec", "/metrics/ttft/unit", "unknown_unit"),
        ("/metrics/output_throughput/unit", "ms", "/metrics/output_throughput/unit", "unknown_unit"),
        ("/metrics/ttft/p50", math.nan, "/metrics/ttft/p50", "not_finite"),
        ("/metrics/e2e/max", math.inf, "/metrics/e2e/max", "not_finite"),
        ("/metrics/tpot/p50", -1, "/metrics/tpot/p50", "negative"),
        ("/metrics/tpot/p50", 10_000.0, "/metrics/tpot/p50", "order"),
        ("/metrics/memory_peak/value", -3, "/metrics/memory_peak/value", "negative"),
        (
            "/metrics/error_rate",
            {"unit": "percent", "value": 101},
            "/metrics/error_rate/value",
            "above_one",
        ),
        ("/metrics/ttft", {"unit": "ms", "n": 40, "mean": 100}, "/metrics/ttft", "mean_alone"),
        ("/metrics/ttft", {"unit": "ms", "n": 0, "p50": 1, "p95": 2}, "/metrics/ttft/n", "n_zero"),
        ("/metrics/speed", {"unit": "ms", "value": 1}, "/metrics/speed", "unknown"),
        ("/scenario", "nothing@1", "/scenario", "unknown"),
        ("/scenario", "short-request", "/scenario", "pattern"),
        ("/attempt", 0, "/attempt", "minimum"),
        ("/schema", "poc-run/2", "/schema", "const"),
        ("/commit", "not hex", "/commit", "pattern"),
        ("/load/requests", 41, "/outcomes", "sum"),
        ("/load/started_at", "yesterday", "/load/started_at", "format"),
        ("/configuration_digest", "0" * 64, "/configuration_digest", "digest_mismatch"),
        ("/surprise", 1, "/surprise", "unknown"),
    ],
)
def test_what_is_wrong_is_named_by_pointer(
    *, cast: Cast, version: ScenarioVersion, path: str, value: Any, pointer: str, code: str
) -> None:
    errors = refused(cast, changed(path, value))

    assert (pointer, code) in [(error.pointer, error.code) for error in errors]
    assert all(str(error.detail) for error in errors)


def test_missing_fields_are_all_named_at_once(cast: Cast, version: ScenarioVersion) -> None:
    payload = poc_run()
    del payload["load"]["model"], payload["metrics"]["ttft"]["unit"]

    assert {error.pointer for error in refused(cast, payload)} == {"/load/model", "/metrics/ttft/unit"}


def test_a_body_that_is_no_object_is_refused(cast: Cast, version: ScenarioVersion) -> None:
    assert refused(cast, ["poc-run/1"])[0].code == "type"


def test_equal_content_gives_the_same_run_and_changes_nothing(
    cast: Cast, version: ScenarioVersion, payload: dict[str, Any]
) -> None:
    first, _created = submit(cast, payload)
    entries = AuditEntry.objects.count()

    again, created = submit(cast, copy.deepcopy(payload))

    assert (again.pk, created) == (first.pk, False)
    assert AuditEntry.objects.count() == entries
    assert Run.objects.count() == 1


def test_other_content_for_the_same_ci_run_names_the_stored_commit(
    cast: Cast, version: ScenarioVersion, payload: dict[str, Any]
) -> None:
    submit(cast, payload)

    with pytest.raises(Conflict) as caught:
        submit(cast, payload | {"commit": "f" * 40})

    assert payload["commit"] in str(caught.value)
    assert caught.value.extra["stored_commit"] == payload["commit"]
    assert Run.objects.count() == 1


def test_a_new_attempt_and_another_scenario_are_runs_of_their_own(
    cast: Cast, version: ScenarioVersion, payload: dict[str, Any]
) -> None:
    make_scenario_version(cast.project, "long-context")

    runs = [
        submit(cast, payload)[0],
        submit(cast, payload | {"attempt": 2})[0],
        submit(cast, payload | {"scenario": "long-context@1"})[0],
    ]

    assert [run.number for run in runs] == [1, 2, 3]


def test_a_lost_race_gives_the_run_of_the_winner(
    cast: Cast, version: ScenarioVersion, payload: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other's run became visible after we had looked for it: the constraint decides."""
    first, _created = submit(cast, payload)
    real, answers = ingest._stored, [None]
    monkeypatch.setattr(ingest, "_stored", lambda *args: answers.pop() if answers else real(*args))

    again, created = submit(cast, payload)

    assert (again.pk, created, answers) == (first.pk, False, [])


FIFTY_POSTS = """
import threading, django
django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0)
from django.db import connection
from pocs.runs import services
from pocs.runs.models import Run
from tests.factories import make_cast, make_scenario_version
from tests.pocs.runs.fakes import poc_run
cast = make_cast()
make_scenario_version(cast.project, "short-request")
start, found, failed = threading.Barrier(50), [], []
def post():
    start.wait()
    try:
        run, created = services.run_ingest(
            actor=cast.contributor.as_actor(), project=cast.project, payload=poc_run()
        )
        found.append((run.pk, created))
    except Exception as error:
        failed.append(repr(error))
    finally:
        connection.close()
threads = [threading.Thread(target=post) for _ in range(50)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(len({pk for pk, _ in found}), sum(new for _, new in found), len(found), failed, Run.objects.count())
"""


def test_fifty_equal_posts_at_once_make_one_run(tmp_path: Path) -> None:
    options = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 60,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    }
    database = {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(tmp_path / "db.sqlite3"),
        "OPTIONS": options,
    }
    (tmp_path / "fifty_settings.py").write_text(
        f"from phasegate.settings.test import *\nDATABASES = {{'default': {database!r}}}\n"
    )
    root = Path(__file__).parents[3]
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "fifty_settings",
        "PYTHONPATH": os.pathsep.join([str(tmp_path), str(root / "platform"), str(root)]),
    }
    done = subprocess.run(
        [sys.executable, "-P", "-c", FIFTY_POSTS],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout.strip().splitlines()[-1:] == ["1 1 50 [] 1"], done.stdout + done.stderr


def test_requests_are_stored_and_can_be_queried(
    cast: Cast, version: ScenarioVersion, payload: dict[str, Any]
) -> None:
    del payload["outcomes"]
    payload["load"]["requests"] = 2
    payload["requests"] = [
        {
            "id": "a",
            "outcome": "success",
            "tenant": "beta",
            "ttft_ms": 100.0,
            "intervals_ms": {"queue_wait": 5.0, "prefill": None},
        },
        {"id": "b", "outcome": "failed", "error": "boom"},
    ]

    run, _created = submit(cast, payload)

    assert [row.request_id for row in selectors.requests_of(run)] == ["a", "b"]
    assert [row.request_id for row in selectors.requests_of(run, tenant="acme")] == ["b"]
    row = run.requests.get(request_id="a")
    assert (row.queue_wait_ms, row.prefill_ms, row.tpot_ms) == (5.0, None, None)
    assert run.summary["requests"]["failed"] == 1
    assert run.summary["error_rate"] == 0.5
    assert manifest_check(run)


def test_a_result_without_its_metric_set_is_stored_and_does_not_count(
    cast: Cast, version: ScenarioVersion, payload: dict[str, Any]
) -> None:
    del payload["metrics"]["queue_wait"], payload["metrics"]["memory_peak"]

    run, _created = submit(cast, payload)

    assert (run.state, run.validity) == (RunState.COMPLETE, Validity.INVALID)
    assert run.validity_reasons[0]["figures"]["missing"] == ["M6", "M7"]


def test_a_run_completes_when_every_artifact_is_verified(
    cast: Cast, version: ScenarioVersion, payload: dict[str, Any]
) -> None:
    content = b"log of the run\n"
    named = {"name": "run.log", "sha256": hashlib.sha256(content).hexdigest(), "size_bytes": len(content)}
    run, _created = submit(cast, payload | {"artifacts": [named]})
    actor = cast.contributor.as_actor()
    assert run.state == RunState.FINALISING
    assert not run.counts_as_evidence
    assert services.reap_expired_leases() == []

    def upload(name: str, body: bytes) -> None:
        services.artifact_add(actor=actor, run=run, name=name, upload=SimpleUploadedFile(name, body))

    with pytest.raises(InvalidInput):
        upload("run.log", b"something else\n")
    with pytest.raises(NotFound):
        upload("other.log", content)
    upload("run.log", content)
    run.refresh_from_db()
    assert run.state == RunState.COMPLETE
    assert run.counts_as_evidence
    upload("run.log", content)
    assert AuditEntry.objects.filter(verb="run.artifact_verified").count() == 1


def test_who_may_submit(cast: Cast, version: ScenarioVersion, payload: dict[str, Any]) -> None:
    for user, error in ((cast.viewer, NotPermitted), (cast.bystander, NotFound), (cast.outsider, NotFound)):
        with pytest.raises(error):
            services.run_ingest(actor=user.as_actor(), project=cast.project, payload=payload)


def test_a_closed_project_takes_no_result(
    cast: Cast, project: Project, version: ScenarioVersion, payload: dict[str, Any]
) -> None:
    project.state = "closed"
    project.save()

    with pytest.raises(Conflict):
        submit(cast, payload)


def test_the_schema_is_valid_json_schema(payload: dict[str, Any]) -> None:
    from pocs.runs.poc_run import SCHEMA_PATH, validator

    type(validator()).check_schema(json.loads(SCHEMA_PATH.read_text()))
    assert list(validator().iter_errors(payload)) == []


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        ("/load/started_at", "0001-01-01T00:00:00+14:00", ("/load/started_at", "format")),
        ("/load/finished_at", "9999-12-31T23:59:59-14:00", ("/load/finished_at", "format")),
        ("/metrics/ttft", {"unit": "s", "n": 1, "p50": 1, "p95": 1e308}, ("/metrics/ttft/p95", "too_large")),
        (
            "/metrics/memory_peak",
            {"unit": "GiB", "value": 1e305},
            ("/metrics/memory_peak/value", "too_large"),
        ),
    ],
)
def test_figures_beyond_every_clock_and_float_are_refused(
    cast: Cast, version: ScenarioVersion, path: str, value: Any, named: tuple[str, str]
) -> None:
    assert [(error.pointer, error.code) for error in refused(cast, changed(path, value))] == [named]
