"""From a record of the measuring core to what is stored and shown of it."""

from typing import Any

from inference.phases import SUMMED
from inference.recording.segments import Place
from inference.records import RequestRecord as Record
from pocs.common.storing import storable_text
from pocs.runs.models import RequestRecord, Run


def as_row(run: Run, record: Record, started_ns: int | None, place: Place | None = None) -> RequestRecord:
    """The stored form of one record; NUL characters, which databases refuse, become U+FFFD.

    With a place, the reads stay in the segment, and the row says where.
    """
    sent_ns = record.stamps.get("sent_ns")
    started_ms = (sent_ns - started_ns) / 1e6 if isinstance(sent_ns, int) and started_ns is not None else None
    detail = dict(record.detail) | {"status": record.status, "streamed": record.streamed}
    if record.server:
        detail["server"] = _storable_json(record.server)
    if record.tool_call_text:
        detail["tool_call_text"] = _storable(record.tool_call_text)
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
        reads=[list(read) for read in record.reads] if place is None else [],
        segment=None if place is None else place.segment,
        segment_block=None if place is None else place.block,
        segment_item=None if place is None else place.item,
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
    return None if text is None else storable_text(text)


def _storable_json(value: Any) -> Any:
    """What a server told, without what databases and digests refuse: NUL, NaN and infinities."""
    if isinstance(value, str):
        return _storable(value)
    if isinstance(value, float):
        return value if value - value == 0.0 else None
    if isinstance(value, dict):
        return {str(_storable(str(name))): _storable_json(inner) for name, inner in value.items()}
    return [_storable_json(inner) for inner in value] if isinstance(value, list | tuple) else value
