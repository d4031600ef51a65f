"""Writes what a load observes to segments at once, in a thread of its own: a crash loses nothing finished.

Each ended request is written as soon as the thread gets to it (milliseconds) and is then safe from a crash of
the process; at least every `SYNC_EVERY_S` everything is made safe from a crash of the machine, and what
unfinished requests have shown since is written as well.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inference.recording.ledger import SUFFIX as LEDGER_SUFFIX
from inference.recording.ledger import SentLedger
from inference.recording.packing import BEGIN, partial_item, reads_of, record_item
from inference.recording.segments import SUFFIX, Place, SegmentFacts, SegmentWriter
from inference.records import RequestRecord, Trace

SCHEMA = "phasegate-records/1"
SYNC_EVERY_S = 1.0
#: a request that is shorter is written when it ends; a longer one also while it runs
PARTIAL_AFTER_S = 1.0
LONGEST_BATCH = 256


@dataclass(frozen=True)
class Written:
    """A record that is in a segment, and where."""

    record: RequestRecord
    place: Place


class Spool(threading.Thread):
    """One run's segments in `folder`; `put` never waits for the disk.

    `error` is what ended the writing, if anything did: whoever owns the run must look at it.
    """

    def __init__(
        self,
        folder: Path,
        *,
        about: dict[str, Any] | None = None,
        in_flight: Callable[[], Iterable[Trace]] = tuple,
    ) -> None:
        super().__init__(name="records", daemon=True)
        self.folder = folder
        self.closed: list[SegmentFacts] = []
        self.error: OSError | None = None
        self._about = {"kind": BEGIN, "schema": SCHEMA} | (about or {})
        self.in_flight = in_flight
        self._waiting: deque[RequestRecord] = deque()
        self._notes: deque[dict[str, Any]] = deque()
        self._written: deque[Written] = deque()
        self._wake = threading.Event()
        self._ends = False
        self._writer: SegmentWriter | None = None
        self._ledger: SentLedger | None = None
        self._ledger_from = 0
        self._shown: dict[int, int] = {}  # reads already written, by the identity of the trace

    def put(self, record: RequestRecord) -> None:
        """Have a record written; returns at once."""
        self._waiting.append(record)
        self._wake.set()

    def note(self, kind: str, **facts: Any) -> None:
        """Have an item written that is no record; returns at once."""
        self._notes.append({"kind": kind} | facts)
        self._wake.set()

    def plan(self, first: int, planned: int) -> None:
        """A load of so many requests begins, the first of them at this place of the run."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._ledger = SentLedger(self.folder / f"{first:09d}{LEDGER_SUFFIX}", planned)
            self._ledger_from = first
        except OSError as error:
            self.error = error

    def leaves(self, place: int, ns: int) -> None:
        """The request at this place of the run is about to be sent: noted before this returns."""
        if self._ledger is not None:
            self._ledger.mark(place - self._ledger_from, ns)

    def forget_plans(self) -> None:
        """Every request that was sent has its record: who has left need not be told any more."""
        for path in self.folder.glob(f"*{LEDGER_SUFFIX}"):
            path.unlink(missing_ok=True)

    def take(self) -> list[Written]:
        """The records that have been written since the last call."""
        found = []
        while self._written:
            found.append(self._written.popleft())
        return found

    def close(self) -> list[SegmentFacts]:
        """Write what waits, close the last segment, and say what all of them are; raises its OSError."""
        self._ends = True
        self._wake.set()
        if self.ident is not None:
            self.join()
        if self.error is not None:
            raise self.error
        return self.closed

    # -- the thread itself -----------------------------------------------------------------------------

    def run(self) -> None:
        try:
            self._open()
            self._work()
            self._close_segment()
        except OSError as error:
            self.error = error

    def _work(self) -> None:
        synced = time.monotonic()
        while True:
            self._wake.wait(max(0.0, synced + SYNC_EVERY_S - time.monotonic()))
            self._wake.clear()
            last = self._ends
            while self._notes:
                self._append([self._notes.popleft()])
            while self._waiting:
                self._write_some()
            if last:
                return
            if time.monotonic() - synced >= SYNC_EVERY_S:
                self._write_partials()
                assert self._writer is not None
                self._writer.sync()
                synced = time.monotonic()

    def _write_some(self) -> None:
        records: list[RequestRecord] = []
        while self._waiting and len(records) < LONGEST_BATCH:
            records.append(self._waiting.popleft())
        places = self._append([record_item(record) for record in records])
        self._written.extend(Written(*pair) for pair in zip(records, places, strict=True))

    def _write_partials(self) -> None:
        """The new reads of requests that have been under way for a while."""
        began_before_ns = time.monotonic_ns() - int(PARTIAL_AFTER_S * 1e9)
        shown: dict[int, int] = {}
        items = []
        for trace in self.in_flight():
            if trace.dispatched_ns is None or trace.dispatched_ns > began_before_ns:
                continue
            before, now = self._shown.get(id(trace)), len(reads_of(trace))
            shown[id(trace)] = now
            if before is None or now > before:
                items.append(partial_item(trace, from_read=before or 0))
        self._shown = shown
        if items:
            self._append(items)

    def _append(self, items: list[dict[str, Any]]) -> list[Place]:
        assert self._writer is not None
        if self._writer.full:
            self._close_segment()
            self._open()
        return self._writer.append(items)

    def _open(self) -> None:
        number = len(self.closed) + 1
        self.folder.mkdir(parents=True, exist_ok=True)
        self._writer = SegmentWriter(self.folder / f"{number:06d}{SUFFIX}", number)
        self._writer.append([self._about])

    def _close_segment(self) -> None:
        if self._writer is not None:
            self.closed.append(self._writer.close())
            self._writer = None
