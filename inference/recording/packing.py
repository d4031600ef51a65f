"""The form of a record in a segment: short, with the reads as differences."""

from itertools import pairwise
from typing import Any

from inference.records import RequestRecord, Trace

RECORD, PARTIAL, BEGIN, STARTED = "record", "partial", "begin", "started"
UNKNOWN_TOKENS = -1


def record_item(record: RequestRecord) -> dict[str, Any]:
    """A whole record, as `{"kind": "record", …}`; `record_of` is its inverse."""
    fields = {name: getattr(record, name) for name in record.__dataclass_fields__}
    fields["reads"] = packed_reads(record.reads)
    return {"kind": RECORD} | fields


def record_of(item: dict[str, Any]) -> RequestRecord:
    """The record of an item of a segment."""
    return RequestRecord.from_json(item | {"reads": unpacked_reads(item["reads"])})


def partial_item(trace: Trace, *, from_read: int) -> dict[str, Any]:
    """What an unfinished request has shown since its last item of this kind."""
    reads = reads_of(trace)
    return {
        "kind": PARTIAL,
        "id": trace.request_id,
        "index": trace.index,
        "warmup": trace.warmup,
        "scheduled_ns": trace.scheduled_ns,
        "dispatched_ns": trace.dispatched_ns,
        "sent_ns": trace.sent_ns,
        "from_read": from_read,
        "reads": packed_reads(reads[from_read:]),
    }


def reads_of(trace: Trace) -> list[tuple[int, int | None]]:
    """The token-bearing reads of a trace so far: the engine's own token stamps where it has them."""
    return [(ns, 1) for ns in list(trace.token_ns)] or list(trace.reads)


def packed_reads(reads: Any) -> dict[str, Any]:
    """`{"from": ns, "after": [ns since the read before, …], "tokens": [n or -1, …] or n of all}`."""
    if not reads:
        return {"from": 0, "after": [], "tokens": 1}
    stamps = [ns for ns, _tokens in reads]
    tokens = [UNKNOWN_TOKENS if n is None else n for _ns, n in reads]
    same = all(n == tokens[0] for n in tokens)
    after = [0] + [later - earlier for earlier, later in pairwise(stamps)]
    return {"from": stamps[0], "after": after, "tokens": tokens[0] if same else tokens}


def unpacked_reads(packed: dict[str, Any]) -> list[tuple[int, int | None]]:
    """The reads as `(ns, tokens)`, tokens None where unknown."""
    after, tokens = packed["after"], packed["tokens"]
    of_each = tokens if isinstance(tokens, list) else [tokens] * len(after)
    reads: list[tuple[int, int | None]] = []
    ns = packed["from"]
    for step, n in zip(after, of_each, strict=True):
        ns += step
        reads.append((ns, None if n == UNKNOWN_TOKENS else n))
    return reads
