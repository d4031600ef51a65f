"""What is known of one generator from outside: which requests left, which ended, what is missing."""

from collections.abc import Iterable
from typing import Any

from inference.load.division import Part
from inference.phases import derive
from inference.recording.packing import PARTIAL, RECORD, record_of, unpacked_reads
from inference.records import RequestRecord, Trace

SENT = "sent"
#: flags of requests of which the generator that had them left no record
UNDER_WAY, NOT_SENT, SENDING_UNKNOWN = "generator_lost_under_way", "never_sent", "sending_unknown"


class Following:
    """Of one part of a load: fed with items of its segments and ledger, in the order in which they came."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self._requests = dict(zip(part.indices, part.requests, strict=True))
        self._ended: set[int] = set()
        self.under_way: dict[int, Trace] = {}
        self.records: list[RequestRecord] = []
        self.failed = 0  # measured requests that ended neither in success nor cancelled on purpose

    @property
    def measured(self) -> int:
        """Measured requests that have ended."""
        return len(self._ended)

    def take(self, items: Iterable[dict[str, Any]]) -> list[RequestRecord]:
        """Note the items; returns the records among them."""
        found = []
        for item in items:
            kind = item.get("kind")
            if kind == RECORD:
                record = record_of(item)
                found.append(record)
                if not record.warmup:
                    self._ended.add(record.index)
                    self.failed += record.outcome not in ("success", "cancelled")
                    self.under_way.pop(record.index, None)
            elif kind == SENT:
                self._trace(item["index"]).dispatched_ns = item["ns"]
            elif kind == PARTIAL and not item["warmup"]:
                trace = self._trace(item["index"])
                trace.scheduled_ns, trace.dispatched_ns = item["scheduled_ns"], item["dispatched_ns"]
                trace.sent_ns = item["sent_ns"]
                trace.reads = trace.reads[: item["from_read"]] + unpacked_reads(item["reads"])
        self.records += found
        return found

    def _trace(self, index: int) -> Trace:
        if index in self._ended:
            return Trace("")  # a late word of a request that has ended
        if index not in self.under_way:
            self.under_way[index] = Trace(self._requests[index].id, index)
        return self.under_way[index]

    def unaccounted(self, reason: str, *, ledger_whole: bool) -> list[RequestRecord]:
        """A record for each planned request that has none: `incomplete`, with what it had shown.

        `reason` says what became of the generator. Where the ledger is not known to its end, whether the
        others were sent is not known either.
        """
        found = []
        for index, request in self._requests.items():
            if index in self._ended:
                continue
            trace = self.under_way.get(index)
            sent = trace is not None
            trace = trace or Trace(request.id, index)
            trace.ended = "cut"
            flag = UNDER_WAY if sent else NOT_SENT if ledger_whole else SENDING_UNKNOWN
            record = derive(trace, request, open_loop=self.part.plan.open_loop, index=index)
            record.outcome = "incomplete"
            record.error = f"{self.part.name} {reason}: {_SAID[flag]}"
            record.flags.append(flag)
            found.append(record)
        self._ended.update(self._requests)
        self.failed += len(found)
        self.under_way.clear()
        self.records += found
        return found


_SAID = {
    UNDER_WAY: "this request was under way",
    NOT_SENT: "this request was never sent",
    SENDING_UNKNOWN: "whether this request was sent is not known",
}
