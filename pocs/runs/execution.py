"""Executing one run on this worker: lease, states, measurement, and what is stated at the end."""

import logging
import threading
import time
from datetime import timedelta
from typing import Any
from uuid import uuid4

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from inference.configuration import VOLATILE, environment
from inference.diagnosis import diagnose
from inference.errors import InferenceError
from inference.outputs import evaluate
from inference.stats import measured_window, summarise
from inference.targets.base import TargetInfo
from inference.targets.server_summary import with_server
from pocs.common import events
from pocs.common.actors import system_actor
from pocs.common.canonical import digest
from pocs.common.errors import DomainError
from pocs.common.storing import storable
from pocs.runs.choices import LEASED_STATES, RunState, Validity
from pocs.runs.diagnosing import setting_of
from pocs.runs.judgement import judge
from pocs.runs.lifecycle import TransitionRefused, run_move
from pocs.runs.measurement import Measurement
from pocs.runs.models import Run
from pocs.runs.recorder import LeaseLost, Recorder
from pocs.runs.recovery import records_recover
from pocs.runs.rescoring import run_rescore
from pocs.runs.services.scenario_kinds import spec_of
from pocs.runs.targets import measurable

logger = logging.getLogger(__name__)

BEAT_S = 0.5
#: a mute target is given so long to let go of its requests once a run is to stop
STOP_GRACE_S = 30.0
#: a measurement that does not let go while the worker ends is left behind after so long
SHUTDOWN_PATIENCE_S = 2.0

#: set when this worker is asked to end: what it measures is interrupted and stays so, with what was recorded
worker_ends = threading.Event()


class _LeftBehind(Exception):
    """The worker ends and the measurement has not let go in time."""


def run_execute(run_id: int, worker: str) -> None:
    """Execute a queued run to its end; returns at once when it is not queued (a redelivered copy).

    Whatever goes wrong ends as the run's state with one sentence, never as an exception; what was
    recorded until then is kept.
    """
    run = (
        Run.objects.filter(pk=run_id, state=RunState.QUEUED)
        .select_related("target", "scenario_version__scenario", "project")
        .first()
    )
    if run is None or run.target is None:
        return
    with measurable(run.target, run_id=run.pk) as target:
        owner = f"{worker}/{uuid4().hex[:12]}"
        if not _take_lease(run, owner):
            return
        recorder = Recorder(run, owner)
        measurement = Measurement(
            target,
            spec_of(run),
            recorder.spool,
            kind=run.scenario_version.scenario.kind,
            tenant=run.tenant,
            application=run.application,
        )
        _Execution(run, owner, measurement, recorder).carry_out()


def _take_lease(run: Run, owner: str) -> bool:
    """Move queued → preparing under this owner; False when another was first."""
    now = timezone.now()
    try:
        run_move(
            run_id=run.pk,
            actor=system_actor(run.project.organisation_id),
            to=RunState.PREPARING,
            expect=[RunState.QUEUED],
            lease_owner=owner,
            lease_expires_at=now + timedelta(seconds=settings.PHASEGATE_RUN_LEASE_S),
            attempt=run.attempt + 1,
            started_at=now,
        )
    except TransitionRefused:
        return False
    return True


class _Execution:
    """The way of one leased run from preparing to its end."""

    def __init__(self, run: Run, owner: str, measurement: Measurement, recorder: Recorder) -> None:
        self.run, self.owner, self.measurement, self.recorder = run, owner, measurement, recorder
        self.actor = system_actor(run.project.organisation_id)
        self.state = RunState.PREPARING
        self.cancelled = False
        self.asked_to_end: float | None = None

    def carry_out(self) -> None:
        try:
            self._follow()
            self._finish()
            if self.measurement.result is not None:
                run_rescore(run=self.run, records=self.measurement.result.records)
        except _LeftBehind:
            self._interrupt()
        except (LeaseLost, TransitionRefused) as error:
            logger.warning("run %s was taken away from this worker: %s", self.run.pk, error)
        except (InferenceError, DomainError) as error:
            self._fail(str(error))
        except Exception as error:
            logger.exception("run %s failed", self.run.pk)
            self._fail(
                _("The run failed inside the platform (%(kind)s); the worker's log has the details.")
                % {"kind": type(error).__name__}
            )
        finally:
            self.measurement.stop()
            if self.measurement.ident is not None:
                self.measurement.join(STOP_GRACE_S)
            self.recorder.close()

    def _follow(self) -> None:
        """Start the load and write what it observes until it ends."""
        self.recorder.open()
        self.measurement.start()
        while self.measurement.is_alive():
            self.measurement.join(BEAT_S)
            self._follow_phase()
            if self.recorder.beat(self.measurement) and not self.cancelled:
                self.cancelled = True
                self.measurement.stop()
            self._heed_the_worker()
        self.recorder.beat(self.measurement, last=True)
        if self.measurement.error is not None:
            raise self.measurement.error

    def _heed_the_worker(self) -> None:
        """Stop the load when the worker is asked to end; _LeftBehind when that takes too long."""
        if not worker_ends.is_set():
            return
        if self.asked_to_end is None:
            self.asked_to_end = time.monotonic()
            self.measurement.stop()
        elif time.monotonic() - self.asked_to_end > SHUTDOWN_PATIENCE_S:
            raise _LeftBehind

    def _follow_phase(self) -> None:
        """Move the run's state along with the load's phase."""
        if self.measurement.started_ns is not None and self.state == RunState.PREPARING:
            self._move(RunState.WARMING)
        moment = self.measurement.moment
        if moment is not None and moment.phase == "measuring" and self.state == RunState.WARMING:
            self._move(RunState.MEASURING)

    def _move(self, to: RunState, **changes: Any) -> None:
        run_move(
            run_id=self.run.pk, actor=self.actor, to=to, expect=[self.state], owner=self.owner, **changes
        )
        self.state = to

    def _finish(self) -> None:
        """State what was measured and end the run."""
        if self.measurement.result is None:  # stopped before the load had begun
            if self.cancelled:
                self._move(RunState.CANCELLED)
            else:
                self._interrupt()
            return
        self._move(RunState.FINALISING)
        outcome = self._statement()
        if self.measurement.target_died:
            error = self.recorder.last_error or _("The engine process ended during the run.")
            self._move(RunState.FAILED, **outcome, error=error)
        elif self.cancelled:
            self._move(RunState.CANCELLED, **outcome)
        elif self.measurement.result.interrupted:
            self._interrupt(**outcome)
        else:
            validity, reasons = judge(self.run.metric_set, outcome["summary"])
            self._move(RunState.COMPLETE, **outcome, validity=validity, validity_reasons=reasons)

    def _interrupt(self, **outcome: Any) -> None:
        """End the run because its worker ends; what it recorded until now is kept."""
        if outcome:
            kept = self.run.requests.count()
        else:  # what was under way has no record yet
            self.recorder.close()
            kept = records_recover(self.run).kept
        error = _("The worker was stopped during the run; %(kept)s requests that it had recorded are kept.")
        self._move(RunState.INTERRUPTED, **outcome, error=error % {"kept": kept})

    def _statement(self) -> dict[str, Any]:
        """The run's summary, diagnosis, configuration and manifest, announced as the event `summary`."""
        result, info = self.measurement.result, self.measurement.info
        course = self.measurement.course
        assert result is not None
        assert info is not None
        assert course is not None
        configuration = storable(configuration_of(self.run, info))
        records = result.records
        summary = summarise(
            records,
            load=result.load,
            self_check=result.self_check,
            target=info,
            telemetry=self.recorder.samples,
            limits=self.run.scenario_version.spec.get("limits") or (),
            environment=environment(),
            configuration_digest=digest(configuration),
            interrupted=result.interrupted,
            outputs=evaluate(self.measurement.spec, records, self.measurement.quality),
        )
        summary["kind"] = self.measurement.found
        summary = with_server(summary, self.measurement.server)
        diagnosis = diagnose(
            measured_window(records)[0],
            summary,
            setting=setting_of(self.run),
            telemetry=self.recorder.samples,
            started_ns=self.measurement.started_ns,
        )
        summary, diagnosis = storable(summary), storable(diagnosis)
        progress = self.recorder.progress | {
            "phase": "finalising",
            "done": course.ended,
            "total": course.planned,
            "failed": course.failed,
        }
        with transaction.atomic():
            events.emit(f"run:{self.run.pk}", "progress", progress)
            events.emit(f"run:{self.run.pk}", "summary", summary | {"diagnosis": diagnosis})
        return {
            "summary": summary,
            "diagnosis": diagnosis,
            "configuration": configuration,
            "configuration_digest": digest(configuration),
            "manifest": self.recorder.manifest(),
            "progress": progress,
        }

    def _fail(self, sentence: str) -> None:
        """End the run as failed, unless it was to stop anyway or is no longer ours to end."""
        try:
            if self.asked_to_end is not None:
                self._interrupt()
                return
            changes: dict[str, Any] = {"error": sentence, "validity": Validity.INVALID}
            run_move(
                run_id=self.run.pk,
                actor=self.actor,
                to=RunState.CANCELLED if self.cancelled else RunState.FAILED,
                expect=LEASED_STATES,
                owner=self.owner,
                **({} if self.cancelled else changes),
            )
        except TransitionRefused as error:
            logger.warning("run %s could not be ended here: %s", self.run.pk, error)


def configuration_of(run: Run, info: TargetInfo) -> dict[str, Any]:
    """What was in force when the run was measured (E1): target, model, engine settings, versions, machine.

    The same target on the same machine gives the same content, whatever was run on it.
    """
    assert run.target is not None
    return info.configuration | {
        "target": {
            "kind": info.kind,
            "name": run.target.name,
            "location": run.target.location,
            "model": info.model,
            "settings": run.target.engine_settings,
            "max_model_tokens": info.max_model_tokens,
        },
        "environment": {name: value for name, value in environment().items() if name not in VOLATILE},
    }
