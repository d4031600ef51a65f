"""Writes a run while it goes: request rows, telemetry, progress, lease and live events, a beat at a time.

Raw records are in the run's segments before they come here (`inference.recording.spool`). What stays in
memory of each is what the summary needs; its reads move to a file on disk.
"""

import contextlib
import time
from array import array
from collections import deque
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from inference.recording.reads import ReadStore
from inference.recording.segments import SegmentFacts
from inference.recording.spool import Spool, Written
from inference.records import RequestRecord as Record
from inference.stats import live_figures
from pocs.common import events
from pocs.common.errors import DomainError
from pocs.runs.choices import LEASED_STATES, RunState
from pocs.runs.manifest import RowDigests, run_manifest
from pocs.runs.measurement import Measurement, Moment
from pocs.runs.models import RecordSegment, RequestRecord, Run, TelemetrySample
from pocs.runs.raw_reads import new_folder_name, records_root, segment_name
from pocs.runs.rows import as_row, phase_row, slow_row

#: live figures are of the requests that ended in the last so many seconds
LIVE_WINDOW_S = 5.0
SLOWEST_SHOWN = 8
FLUSH_EVERY_S = 1.0
#: of a flush, so many ended requests go to the live waterfall, which draws no more
WATERFALL_ROWS = 200
#: of a moment, what is progress
MOVING = ("phase", "done", "total", "failed", "stage", "stage_number", "stages")
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
        self.folder = new_folder_name(run.pk)
        self.spool = Spool(records_root() / self.folder, about={"run": run.pk})
        self.last_error: str | None = None  # of the request that ended last with one
        self.samples: list[dict[str, Any]] = []
        self.progress: dict[str, Any] = dict(run.progress)
        self._begun = time.monotonic()
        self._unsaved_records: list[Written] = []
        self._saved: deque[tuple[int, Record]] = deque()
        self._store = ReadStore()
        self._digests = RowDigests()
        self._unsaved_samples: list[dict[str, Any]] = []
        self._recent: deque[tuple[int, Record]] = deque()
        self._slowest: list[Record] = []
        self._slowest_changed = False
        self._flushed_at = time.monotonic()

    def open(self) -> None:
        """Begin the segments, and say in the database where they are, for whoever finds a dead run."""
        place = {"name": segment_name(self.folder, 1), "records": 0, "size_bytes": 0, "sha256": ""}
        RecordSegment.objects.update_or_create(run=self.run, number=1, defaults=place)
        self.spool.start()

    def beat(self, measurement: Measurement, *, last: bool = False) -> bool:
        """Renew the lease and write what has come in; True when someone asked to cancel the run.

        The last beat closes the segments first, so that everything observed is written. Raises LeaseLost
        when the lease is no longer this worker's, and RecordsUnwritable when the disk refuses the records.
        """
        now_ns = time.monotonic_ns()
        if last:
            self._close_segments()
        elif self.spool.error is not None:
            raise _unwritable(self.spool.error)
        written, samples = self.spool.take(), measurement.take_samples()
        self._collect(written, samples, now_ns)
        due = last or time.monotonic() - self._flushed_at >= FLUSH_EVERY_S
        with transaction.atomic():
            progressed = self._note_progress(measurement.moment)
            cancel = self._renew_lease()
            ended = [one.record for one in self._unsaved_records if due and not one.record.warmup]
            if due:
                self._flush(measurement.started_ns)
            if ended and measurement.started_ns is not None:
                rows = [phase_row(record, measurement.started_ns) for record in ended[:WATERFALL_ROWS]]
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
        if due:
            self._lighten(now_ns)
        return cancel

    def close(self) -> None:
        """Let go of the segments; safe to call again, and quiet where the disk refused."""
        with contextlib.suppress(OSError):
            self.spool.close()

    def manifest(self) -> dict[str, Any]:
        """The digests of everything that was written; after the last beat."""
        return run_manifest(self._digests, self._segments())

    def _segments(self) -> list[SegmentFacts]:
        return self.spool.closed

    def _close_segments(self) -> None:
        try:
            closed = self.spool.close()
        except OSError as error:
            raise _unwritable(error) from error
        segments_store(self.run, closed)
        self.spool.forget_plans()

    def _lighten(self, now_ns: int) -> None:
        """Move the reads that no live figure needs any more to disk, and drop what was not observed."""
        while self._saved and self._saved[0][0] < now_ns - int(LIVE_WINDOW_S * 1e9):
            _at, record = self._saved.popleft()
            record.reads = self._store.add(record.reads)  # type: ignore[assignment]  # a sequence of the same
            record.detail.pop("logprobs", None)
            record.stamps = {name: at for name, at in record.stamps.items() if at is not None}
            record.intervals_ms = {name: ms for name, ms in record.intervals_ms.items() if ms is not None}
            if record.token_ids is not None:
                record.token_ids = array("q", record.token_ids)  # type: ignore[assignment]

    def _collect(self, written: list[Written], samples: list[dict[str, Any]], now_ns: int) -> None:
        records = [one.record for one in written]
        self.last_error = next(
            (record.error for record in reversed(records) if record.error), self.last_error
        )
        self.samples += samples
        self._unsaved_records += written
        self._saved.extend((now_ns, record) for record in records)
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
        before = {name: self.progress.get(name) for name in MOVING}
        now = {name: getattr(moment, name) for name in MOVING}
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
            rows = [as_row(self.run, one.record, started_ns, one.place) for one in self._unsaved_records]
            RequestRecord.objects.bulk_create(rows, batch_size=100)
            self._digests.add(rows)
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


class RecordsUnwritable(DomainError):
    """The disk refuses the run's records."""


def _unwritable(error: OSError) -> RecordsUnwritable:
    return RecordsUnwritable(
        _("The records of the run could not be written: %(reason)s.") % {"reason": error.strerror or error}
    )


def segments_store(run: Run, closed: list[SegmentFacts]) -> None:
    """Say in the database what the closed segments of a run are."""
    for facts in closed:
        RecordSegment.objects.update_or_create(
            run=run,
            number=facts.number,
            defaults={
                "name": facts.name,
                "records": facts.items,
                "size_bytes": facts.size_bytes,
                "sha256": facts.sha256,
            },
        )
