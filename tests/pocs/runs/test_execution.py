"""Executing a run: its states, its records, its end, and what it states."""

import itertools
import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from celery import signals
from django.utils import timezone

from pocs.common import audit
from pocs.common.models import AuditEntry, LiveEvent
from pocs.projects.models import ScenarioVersion
from pocs.projects.scenario_spec import Interruption
from pocs.runs import execution, selectors, services
from pocs.runs.choices import RunState, Validity
from pocs.runs.execution import run_execute
from pocs.runs.manifest import manifest_check
from pocs.runs.measurement import Measurement
from pocs.runs.models import Run, Target
from tests.factories import Cast, make_scenario_version
from tests.pocs.runs.fakes import FakeTarget

WAY = ["queued", "preparing", "warming", "measuring", "finalising", "complete"]


@pytest.fixture
def queued(cast: Cast, version: ScenarioVersion, target: Target) -> Run:
    return start(cast, version, target)


def start(cast: Cast, version: ScenarioVersion, target: Target, **fields: Any) -> Run:
    return services.run_start(
        actor=cast.contributor.as_actor(),
        project=cast.project,
        scenario_version=version,
        target=target,
        **fields,
    )


def states_of(run: Run) -> list[str]:
    events = LiveEvent.objects.filter(stream=f"run:{run.pk}", kind="state").order_by("number")
    return [event.data["state"] for event in events]


def test_a_run_ends_complete_valid_and_fully_stated(queued: Run, fake_target: FakeTarget) -> None:
    run_execute(queued.pk, worker="w1")

    run = Run.objects.get(pk=queued.pk)
    assert (run.state, run.validity, run.validity_reasons) == (RunState.COMPLETE, Validity.VALID, [])
    assert run.summary["schema"] == "phasegate-run/1"
    assert run.summary["requests"]["success"] == 4
    assert run.summary["queue_wait_ms"]["p50"] == pytest.approx(0.1)
    assert run.summary["memory"]["kv_used_peak_bytes"] == 40
    assert run.diagnosis["where"] == "decode"
    assert run.configuration["model_digest"] == "d" * 64
    assert run.configuration["environment"]["packages"]["transformers"]
    assert len(run.configuration_digest) == 64
    assert run.summary["configuration_digest"] == run.configuration_digest
    assert run.progress["done"] == run.progress["total"] == 4
    assert (run.attempt, run.lease_owner, run.lease_expires_at) == (1, "", None)
    assert run.started_at < run.finished_at


def test_states_are_announced_and_audited_in_order(queued: Run, fake_target: FakeTarget) -> None:
    run_execute(queued.pk, worker="w1")

    announced = states_of(queued)
    assert announced[0] == "queued"
    assert announced[-2:] == ["finalising", "complete"]
    assert [state for state in WAY if state in announced] == announced
    verbs = AuditEntry.objects.filter(object_type="runs.run", object_id=str(queued.pk)).order_by("sequence")
    assert [entry.verb for entry in verbs] == [f"run.{state}" for state in announced]
    assert audit.verify(queued.project.organisation_id) == []


def test_records_hold_every_request_and_their_intervals_add_up(queued: Run, fake_target: FakeTarget) -> None:
    run_execute(queued.pk, worker="w1")

    rows = list(selectors.requests_of(queued))
    assert [row.index for row in rows] == [0, 1, 2, 3]
    assert queued.requests.filter(warmup=True).count() == 1
    for row in rows:
        parts = ("throttled", "network", "queue_wait", "prefill", "decode", "unexplained")
        assert sum(row.intervals_ms[part] or 0.0 for part in parts) == pytest.approx(row.e2e_ms, abs=1.0)
        assert row.text == "answer\ufffd"
        assert row.started_ms >= 0
    assert manifest_check(Run.objects.get(pk=queued.pk))
    queued.requests.filter(index=0, warmup=False).update(ttft_ms=0.1)
    assert not manifest_check(Run.objects.get(pk=queued.pk))


def test_live_events_carry_progress_samples_slowest_and_summary(queued: Run, fake_target: FakeTarget) -> None:
    run_execute(queued.pk, worker="w1")

    events = LiveEvent.objects.filter(stream=f"run:{queued.pk}").order_by("number")
    by_kind = {event.kind: event.data for event in events}
    assert set(by_kind) == {"state", "progress", "sample", "requests", "slowest", "summary"}
    assert by_kind["sample"]["memory"]["kv_used_bytes"] == 40
    assert by_kind["requests"]["rows"][0]["started_ms"] >= 0
    assert by_kind["slowest"]["rows"][0]["offsets"]["sent_ms"] >= 0
    assert by_kind["summary"]["diagnosis"]["where"] == "decode"
    assert [event.number for event in events] == list(range(1, len(events) + 1))


def test_tenant_and_application_of_the_run_reach_its_requests(
    cast: Cast, version: ScenarioVersion, target: Target, fake_target: FakeTarget
) -> None:
    run = start(cast, version, target, tenant="acme", application="chat")

    run_execute(run.pk, worker="w1")

    assert selectors.requests_of(run, tenant="acme", application="chat").count() == 4
    assert selectors.requests_of(run, tenant="other").count() == 0


def test_a_redelivered_copy_stops_at_the_lease(queued: Run, fake_target: FakeTarget) -> None:
    fake_target.before = lambda request: None
    run_execute(queued.pk, worker="w1")
    sent = len(fake_target.requests)

    for _copy in range(3):
        run_execute(queued.pk, worker="w2")

    assert len(fake_target.requests) == sent
    assert Run.objects.get(pk=queued.pk).attempt == 1


def test_a_copy_that_read_the_run_while_it_was_queued_loses_the_lease(
    queued: Run, fake_target: FakeTarget
) -> None:
    """Both copies saw `queued`; the lease decides under the row's lock."""
    stale = Run.objects.select_related("project").get(pk=queued.pk)
    run_execute(queued.pk, worker="w1")

    assert execution._take_lease(stale, "w2/copy") is False
    assert Run.objects.get(pk=queued.pk).state == RunState.COMPLETE


def test_the_engine_is_opened_once_and_starts_each_run_cold(
    cast: Cast, version: ScenarioVersion, target: Target, fake_target: FakeTarget
) -> None:
    runs = [start(cast, version, target), start(cast, version, target)]

    for run in runs:
        run_execute(run.pk, worker="w1")

    assert fake_target.resets == 2
    digests = {Run.objects.get(pk=run.pk).configuration_digest for run in runs}
    assert len(digests) == 1


def test_an_unreachable_target_fails_the_run_with_one_sentence(queued: Run, fake_target: FakeTarget) -> None:
    fake_target.unavailable = "The folder models/small holds no model."

    run_execute(queued.pk, worker="w1")

    run = Run.objects.get(pk=queued.pk)
    assert (run.state, run.error) == (RunState.FAILED, "The folder models/small holds no model.")
    assert run.validity == Validity.INVALID
    assert not run.counts_as_evidence


def test_a_fault_of_the_platform_shows_no_traceback(
    queued: Run, fake_target: FakeTarget, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*args: Any, **kwargs: Any) -> None:
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr(execution, "summarise", broken)

    run_execute(queued.pk, worker="w1")

    run = Run.objects.get(pk=queued.pk)
    assert run.state == RunState.FAILED
    assert "ZeroDivisionError" in run.error
    assert "secret detail" not in run.error
    assert "secret detail" in caplog.text
    assert run.requests.count() == 5


def test_an_engine_that_dies_fails_the_run_and_keeps_what_was_measured(
    queued: Run, fake_target: FakeTarget
) -> None:
    counted = itertools.count(1)

    def die_at_the_third(request: Any) -> None:
        if next(counted) == 3:
            fake_target.process_id = None

    fake_target.before = die_at_the_third

    run_execute(queued.pk, worker="w1")

    run = Run.objects.get(pk=queued.pk)
    assert (run.state, run.error) == (RunState.FAILED, "The engine process was ended by SIGKILL.")
    assert run.summary["requests"]["success"] >= 1
    assert run.requests.count() == 5


def test_cancelling_mid_run_aborts_the_requests_and_keeps_the_records(
    cast: Cast, target: Target, fake_target: FakeTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = start(cast, make_scenario_version(cast.project, "long", requests=6, concurrency=2), target)
    fake_target.hold = lambda request: request.id == "r0003"
    recorder_beat = execution.Recorder.beat

    def cancel_once_held(self: Any, measurement: Any, **kwargs: Any) -> bool:
        if fake_target.held.is_set():
            services.run_cancel(actor=cast.contributor.as_actor(), run=Run.objects.get(pk=run.pk))
            fake_target.held.clear()
        return recorder_beat(self, measurement, **kwargs)

    monkeypatch.setattr(execution.Recorder, "beat", cancel_once_held)

    run_execute(run.pk, worker="w1")

    run.refresh_from_db()
    assert (run.state, run.validity) == (RunState.CANCELLED, Validity.INVALID)
    outcomes = {row.request_id: row.outcome for row in selectors.requests_of(run)}
    assert outcomes["r0003"] == "cancelled"
    assert "success" in outcomes.values()
    assert run.summary["interrupted"] is True
    assert not run.counts_as_evidence


def test_a_run_whose_lease_was_taken_away_writes_nothing_more(
    cast: Cast, queued: Run, fake_target: FakeTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_target.hold = lambda request: request.id == "r0002"
    recorder_beat = execution.Recorder.beat

    def lose_the_lease(self: Any, measurement: Any, **kwargs: Any) -> bool:
        if fake_target.held.is_set():
            services.reap_expired_leases(now=timezone.now() + timedelta(hours=1))
        return recorder_beat(self, measurement, **kwargs)

    monkeypatch.setattr(execution.Recorder, "beat", lose_the_lease)

    run_execute(queued.pk, worker="w1")

    run = Run.objects.get(pk=queued.pk)
    assert run.state == RunState.INTERRUPTED
    assert run.summary is None
    assert states_of(run)[-1] == "interrupted"


def test_an_incomplete_metric_set_makes_a_complete_run_invalid(
    cast: Cast, version: ScenarioVersion, target: Target, fake_target: FakeTarget
) -> None:
    run = start(cast, version, target, metric_set="minimum_eight")

    run_execute(run.pk, worker="w1")

    run.refresh_from_db()
    assert (run.state, run.validity) == (RunState.COMPLETE, Validity.INVALID)
    assert run.validity_reasons == [
        {
            "code": "metric_set_incomplete",
            "figures": {"metric_set": "minimum_eight", "missing": ["M5"]},
        }
    ]


def test_interrupted_requests_are_cancelled_not_failed(
    cast: Cast, target: Target, fake_target: FakeTarget
) -> None:
    interruptions = (Interruption(phase="decode", every=2, after_tokens=3),)
    version = make_scenario_version(cast.project, "interruption", interruptions=interruptions)
    run = start(cast, version, target)

    run_execute(run.pk, worker="w1")

    run.refresh_from_db()
    assert run.summary["requests"]["cancelled"] == 2
    assert run.summary["error_rate"] == 0
    assert selectors.coverage(cast.project).interruptions == (run,)


def test_a_prompt_longer_than_its_shared_prefix_allows_is_one_clear_sentence(
    cast: Cast, target: Target, fake_target: FakeTarget
) -> None:
    version = make_scenario_version(cast.project, "odd", shared_prefix_tokens=64)
    run = start(cast, version, target)

    run_execute(run.pk, worker="w1")

    run.refresh_from_db()
    assert run.state == RunState.FAILED
    assert "shared prefix" in run.error


@pytest.fixture
def ending_worker(fake_target: FakeTarget) -> Iterator[FakeTarget]:
    """The worker is asked to end once the third request is being served."""
    fake_target.hold = lambda request: len(fake_target.requests) > 2
    ending = threading.Thread(
        target=lambda: fake_target.held.wait(10) and execution.worker_ends.set(), daemon=True
    )
    ending.start()
    yield fake_target
    ending.join()
    execution.worker_ends.clear()


def test_a_worker_that_ends_leaves_its_run_interrupted(queued: Run, ending_worker: FakeTarget) -> None:
    run_execute(queued.pk, worker="w1")

    run = Run.objects.get(pk=queued.pk)
    assert (run.state, run.validity, run.lease_owner) == (RunState.INTERRUPTED, Validity.INVALID, "")
    assert run.requests.count() > 0
    assert run.error.startswith("The worker was stopped during the run; ")
    assert run.summary["interrupted"] is True


def test_a_load_that_does_not_let_go_is_left_behind(
    queued: Run, ending_worker: FakeTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execution, "SHUTDOWN_PATIENCE_S", 0.0)
    monkeypatch.setattr(execution, "STOP_GRACE_S", 0.0)
    monkeypatch.setattr(Measurement, "stop", lambda self: None)
    run_execute(queued.pk, worker="w1")

    run = Run.objects.get(pk=queued.pk)
    assert (run.state, run.validity) == (RunState.INTERRUPTED, Validity.INVALID)
    assert "requests that it had recorded are kept" in run.error


def test_celery_tells_the_run_that_its_worker_ends() -> None:
    try:
        signals.worker_shutting_down.send(sender="w1", sig="TERM", how="Warm", exitcode=0)
        assert execution.worker_ends.is_set()
    finally:
        execution.worker_ends.clear()
