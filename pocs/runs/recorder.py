"""Writes a run while it goes: request rows, telemetry, progress, lease and live events, a beat at a time."""

import time
from collections import deque
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from inference.phases import SUMMED
from inference.records import RequestRecord as Record
from inference.stats import live_figures
from pocs.common import events
from pocs.runs.choices import LEASED_STATES, RunState
from pocs.runs.measurement import Measurement, Moment
from pocs.runs.models import RequestRecord, Run, TelemetrySample

#: live figures are of the requests that ended in the last so many seconds
LIVE_WINDOW_S = 5.0
SLOWEST_SHOWN = 8
FLUSH_EVERY_S = 1.0
#: the memory split on the live page
MEMORY_SHOWN = frozenset(
    {"rss_bytes", "weights_bytes", "kv_pool_bytes", "kv_used_bytes", "buffers_bytes", "gpu_memory_used_bytes"}
)


class LeaseLost(Exception):
    """Another has ended this run, or taken it: nothing more may be written of it."""


class Recorder:
    """One run's writer. `beat` is called about twice a second by the thread that owns the lease."""

    def __init__(self, run: Run, owner: str) -> None:
        self.run, self.owner = run, owner
        self.records: list[Record] = []
        self.samples: list[dict[str, Any]] = []
        self.progress: dict[str, Any] = dict(run.progress)
        self._begun = time.monotonic()
        self._unsaved_records: list[Record] = []
        self._unsaved_samples: list[dict[str, Any]] = []
        self._recent: deque[tuple[int, Record]] = deque()
        self._slowest: list[Record] = []
        self._slowest_changed = False
        self._flushed_at = time.monotonic()

    def beat(self, measurement: Measurement, *, last: bool = False) -> bool:
        """Renew the lease and write what has come in; True when someone asked to cancel the run.

        Raises LeaseLost when the lease is no longer this worker's.
        """
        now_ns = time.monotonic_ns()
        records, samples = measurement.take_records(), measurement.take_samples()
        self._collect(records, samples, now_ns)
        due = last or time.monotonic() - self._flushed_at >= FLUSH_EVERY_S
        with transaction.atomic():
            progressed = self._note_progress(measurement.moment)
            cancel = self._renew_lease()
            ended = [record for record in self._unsaved_records if due and not record.warmup]
            if due:
                self._flush(measurement.started_ns)
            if ended and measurement.started_ns is not None:
                rows = [phase_row(record, measurement.started_ns) for record in ended]
                events.emit(f"run:{self.run.pk}", "requests", {"rows": rows})
            if progressed:
                events.emit(f"run:{self.run.pk}", "progress", self.progress)
                if due and self.run.matrix_id is not None:
                    here = {"run": self.run.pk, "number": self.run.number}
                    events.emit(f"matrix:{self.run.matrix_id}", "progress", self.progress | here)
            if samples and measurement.started_ns is not None:
                sample = self._live_sample(measurement.moment, samples[-1], now_ns)
                events.emit(f"run:{self.run.pk}", "sample", sample)
            if due and self._slowest_changed and measurement.started_ns is not None:
                self._slowest_changed = False
                rows = [slow_row(record, measurement.started_ns) for record in self._slowest]
                events.emit(f"run:{self.run.pk}", "slowest", {"rows": rows})
        return cancel

    def _collect(self, records: list[Record], samples: list[dict[str, Any]], now_ns: int) -> None:
        self.records += records
        self.samples += samples
        self._unsaved_records += records
        self._unsaved_samples += samples
        self._recent.extend((now_ns, record) for record in records if not record.warmup)
        while self._recent and self._recent[0][0] < now_ns - int(LIVE_WINDOW_S * 1e9):
            self._recent.popleft()
        candidates = self._slowest + [r for r in records if not r.warmup and r.e2e_ms is not None]
        slowest = sorted(candidates, key=lambda record: -(record.e2e_ms or 0.0))[:SLOWEST_SHOWN]
        self._slowest_changed |= slowest != self._slowest
        self._slowest = slowest

    def _note_progress(self, moment: Moment | None) -> bool:
        """Whether the load has moved since the last beat."""
        if moment is None:
            return False
        before = {name: self.progress.get(name) for name in ("phase", "done", "total", "failed")}
        now = {"phase": moment.phase, "done": moment.done, "total": moment.total, "failed": moment.failed}
        self.progress = now | {"elapsed_ms": round((time.monotonic() - self._begun) * 1000)}
        return now != before

    def _renew_lease(self) -> bool:
        mine = Run.objects.filter(pk=self.run.pk, lease_owner=self.owner, state__in=LEASED_STATES)
        expires_at = timezone.now() + timedelta(seconds=settings.PHASEGATE_RUN_LEASE_S)
        if not mine.update(lease_expires_at=expires_at, progress=self.progress):
            raise LeaseLost(f"run {self.run.pk} is no longer held by {self.owner}")
        return mine.filter(cancel_requested_at__isnull=False).exists()

    def _flush(self, started_ns: int | None) -> None:
        if self._unsaved_records:
            rows = [as_row(self.run, record, started_ns) for record in self._unsaved_records]
            RequestRecord.objects.bulk_create(rows, batch_size=100)
            self._unsaved_records = []
        if self._unsaved_samples:
            TelemetrySample.objects.bulk_create(
                TelemetrySample(
                    run=self.run,
                    at_ms=sample["at_ms"],
                    data={key: value for key, value in sample.items() if key != "at_ms"},
                )
                for sample in self._unsaved_samples
            )
            self._unsaved_samples = []
        self._flushed_at = time.monotonic()

    def _live_sample(self, moment: Moment | None, telemetry: dict[str, Any], now_ns: int) -> dict[str, Any]:
        """The figures of the last seconds beside the newest resources; null where nothing is known."""
        window_s = min(LIVE_WINDOW_S, max(0.5, telemetry["at_ms"] / 1000.0))
        figures = live_figures(
            [record for _at, record in self._recent],
            window_s=window_s,
            now_ns=now_ns,
            in_flight=moment.in_flight if moment else (),
        )
        return {
            "at_ms": telemetry["at_ms"],
            "phase": moment.phase if moment else RunState.PREPARING,
            **figures,
            "running": telemetry.get("running"),
            "waiting": telemetry.get("waiting"),
            "memory": {name: value for name, value in telemetry.items() if name in MEMORY_SHOWN},
            "cpu_share": telemetry.get("cpu_share"),
            "gpu_utilisation": telemetry.get("gpu_utilisation"),
        }


def as_row(run: Run, record: Record, started_ns: int | None) -> RequestRecord:
    """The stored form of one record; NUL characters, which databases refuse, become U+FFFD."""
    sent_ns = record.stamps.get("sent_ns")
    started_ms = (sent_ns - started_ns) / 1e6 if isinstance(sent_ns, int) and started_ns is not None else None
    detail = dict(record.detail) | {"status": record.status, "streamed": record.streamed}
    if record.server:
        detail["server"] = record.server
    if record.tool_call_text:
        detail["tool_call_text"] = record.tool_call_text
    return RequestRecord(
        run=run,
        index=record.index,
        request_id=record.id,
        outcome=record.outcome,
        finish_reason=record.finish_reason,
        error=_storable(record.error),
        tenant=record.tenant,
        application=record.application,
        started_ms=started_ms,
        input_tokens=record.input_tokens,
        cached_tokens=record.cached_tokens,
        output_tokens=record.output_tokens,
        output_tokens_source=record.output_tokens_source or "",
        ttft_ms=record.ttft_ms,
        ttfv_ms=record.ttfv_ms,
        ttfot_ms=record.ttfot_ms,
        tpot_ms=record.tpot_ms,
        e2e_ms=record.e2e_ms,
        max_gap_ms=record.max_gap_ms,
        queue_wait_ms=record.intervals_ms.get("queue_wait"),
        prefill_ms=record.intervals_ms.get("prefill"),
        decode_ms=record.intervals_ms.get("decode"),
        stamps=record.stamps,
        intervals_ms=record.intervals_ms,
        reads=[list(read) for read in record.reads],
        text=_storable(record.text) or "",
        reasoning_text=_storable(record.reasoning_text) or "",
        token_ids=record.token_ids,
        warmup=record.warmup,
        flags=record.flags,
        detail={key: value for key, value in detail.items() if value is not None},
    )


def phase_row(record: Record, started_ns: int) -> dict[str, Any]:
    """One ended request for the live waterfall: when it was sent and how long each phase took, in ms."""
    sent_ns = record.stamps.get("sent_ns")
    return {
        "index": record.index,
        "id": record.id,
        "outcome": record.outcome,
        "started_ms": (sent_ns - started_ns) / 1e6 if isinstance(sent_ns, int) else None,
        "intervals_ms": {
            name: round(record.intervals_ms[name] or 0.0, 3)
            for name in (*SUMMED, "release")
            if record.intervals_ms.get(name)
        },
    }


def slow_row(record: Record, started_ns: int) -> dict[str, Any]:
    """One of the slowest requests for the live page; offsets in ms on the run's time axis."""
    offsets = {
        name: (value - started_ns) / 1e6
        for name, value in record.stamps.items()
        if isinstance(value, int) and value > 0
    }
    return {
        "index": record.index,
        "id": record.id,
        "outcome": record.outcome,
        "e2e_ms": record.e2e_ms,
        "intervals_ms": record.intervals_ms,
        "offsets": {name.removesuffix("_ns") + "_ms": value for name, value in offsets.items()},
    }


def _storable(text: str | None) -> str | None:
    return None if text is None else text.replace("\x00", "\ufffd")
