"""Requests with whole timelines for tests: sent one after the other, with intervals in ms."""

from typing import Any

from inference.records import RequestRecord

MS = 1_000_000
START_NS = 5_000 * MS


def timed(index: int, *, sent_ms: float = 0.0, **intervals: float | None) -> RequestRecord:
    """A success sent at `sent_ms`, whose stamps follow from its intervals; other fields by name."""
    fields = {
        name: intervals.pop(name)
        for name in ("input_tokens", "cached_tokens", "output_tokens", "tpot_ms")
        if name in intervals
    }
    sent = START_NS + int(sent_ms * MS)
    before = sum(intervals.get(name) or 0.0 for name in ("throttled", "network"))
    admitted = sent + int((before + (intervals.get("queue_wait") or 0.0)) * MS)
    first = admitted + int(((intervals.get("prefill") or 0.0) + (intervals.get("unexplained") or 0.0)) * MS)
    last = first + int((intervals.get("decode") or 0.0) * MS)
    values: dict[str, Any] = {
        "id": f"r{index}",
        "outcome": "success",
        "finish_reason": "stop",
        "error": None,
        "text": "x",
        "reasoning_text": "",
        "token_ids": None,
        "input_tokens": 100,
        "cached_tokens": 0,
        "output_tokens": 20,
        "output_tokens_source": "engine",
        "ttft_ms": (first - sent) / MS,
        "ttfv_ms": None,
        "ttfot_ms": None,
        "tpot_ms": (intervals.get("decode") or 0.0) / 19,
        "e2e_ms": (last - sent) / MS,
        "max_gap_ms": None,
        "stamps": {
            "sent_ns": sent,
            "admitted_ns": [admitted] if intervals.get("queue_wait") is not None else None,
            "first_ns": first,
            "last_ns": last,
            "finished_ns": last,
        },
        "intervals_ms": dict(intervals),
        "reads": [],
        "index": index,
    }
    return RequestRecord(**(values | fields))
