"""The diagnosis of one request: where most of its time went, and what the target held meanwhile."""

from collections.abc import Mapping, Sequence
from typing import Any

from inference.diagnosis.crowd import NS_PER_MS, Crowd, crowd_of
from inference.diagnosis.shares import places
from inference.records import RequestRecord

#: intervals in the order in which they pass; at an endpoint the unexplained part lies before the first token
ORDER = ("throttled", "network", "queue_wait", "prefill", "unexplained", "decode")
#: the interval in which a place lies
INTERVAL_OF = {
    "throttling": "throttled",
    "network": "network",
    "queue": "queue_wait",
    "model_load": "queue_wait",
    "prefill": "prefill",
    "unexplained": "unexplained",
    "decode": "decode",
    "stalls": "decode",
    "preemption": "decode",
}
SLOWEST = 10
#: a second place worth naming beside the first
ALSO_SHARE = 0.25


def diagnose_request(
    intervals_ms: Mapping[str, float | None],
    *,
    e2e_ms: float | None,
    sent_ms: float | None = None,
    crowd: Crowd | None = None,
    samples: Sequence[Mapping[str, Any]] = (),
    facts: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """`{"main", "also", "attribution"}`: the place of most of its time with figures, further ones, and all.

    `sent_ms` is on the axis of `crowd` and of `samples` (telemetry with `at_ms`). `facts` are figures of
    the request for its sentence: `input_tokens`, `cached_tokens`, `output_tokens`, `tpot_ms`,
    `preemptions`, `recomputed_tokens`.
    """
    spent = places(intervals_ms)
    if not _counts_from_scheduled(spent, e2e_ms):
        spent["dispatch"] = None
    observed = {place: ms for place, ms in spent.items() if ms is not None and ms > 0}
    total_ms = e2e_ms if e2e_ms else sum(observed.values())
    attribution = [
        {"place": place, "ms": ms, "share": None if ms is None or not total_ms else max(0.0, ms) / total_ms}
        for place, ms in spent.items()
    ]
    if not observed or not total_ms:
        return {
            "main": {"code": "request_not_observed", "figures": {}},
            "also": [],
            "attribution": attribution,
        }
    ranked = sorted(observed, key=lambda place: -observed[place])
    sentences: list[dict[str, Any]] = []
    for place in ranked:
        share = observed[place] / total_ms
        if sentences and share < ALSO_SHARE and place not in ("preemption", "model_load", "throttling"):
            continue
        figures: dict[str, Any] = {"share": share, "ms": observed[place], "total_ms": total_ms}
        figures |= _meanwhile(INTERVAL_OF.get(place, ""), intervals_ms, sent_ms, crowd, samples)
        sentences.append({"code": f"request_{place}", "figures": figures | dict(facts or {})})
    return {"main": sentences[0], "also": sentences[1:], "attribution": attribution}


def slowest(
    records: Sequence[RequestRecord],
    *,
    started_ns: int | None = None,
    samples: Sequence[Mapping[str, Any]] = (),
) -> list[dict[str, Any]]:
    """The diagnoses of the measured requests that took longest, each with its `id` and `index`.

    `started_ns` is the zero of the samples' axis; without it the samples are left aside.
    """
    measured = [record for record in records if not record.warmup and record.e2e_ms is not None]
    measured.sort(key=lambda record: (-(record.e2e_ms or 0.0), record.index))
    crowd = crowd_of(records)
    found = []
    for record in measured[:SLOWEST]:
        sent = record.stamps.get("sent_ns")
        sent_ms = sent / NS_PER_MS if isinstance(sent, int) else None
        own_axis = [] if started_ns is None else _shifted(samples, started_ns / NS_PER_MS)
        diagnosis = diagnose_request(
            record.intervals_ms,
            e2e_ms=record.e2e_ms,
            sent_ms=sent_ms,
            crowd=crowd,
            samples=own_axis,
            facts=facts_of(record.__dict__, record.detail),
        )
        found.append({"id": record.id, "index": record.index} | diagnosis)
    return found


def facts_of(row: Mapping[str, Any], detail: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of one request that its sentences may name."""
    names = ("input_tokens", "cached_tokens", "output_tokens", "tpot_ms", "ttft_ms")
    return {name: row.get(name) for name in names} | {
        "preemptions": len(detail.get("preempted_ns") or ()),
        "recomputed_tokens": detail.get("recomputed_tokens"),
        "chunks": len(detail.get("prefill_chunks") or ()) or None,
    }


def phase_window_ms(
    interval: str, intervals_ms: Mapping[str, float | None], sent_ms: float
) -> tuple[float, float] | None:
    """(start, end) of one interval on the axis of `sent_ms`; None where it was not observed."""
    at_ms = sent_ms
    for name in ORDER:
        length_ms = max(0.0, intervals_ms.get(name) or 0.0)
        if name == interval:
            return (at_ms, at_ms + length_ms) if length_ms else None
        at_ms += length_ms
    return None


def _meanwhile(
    interval: str,
    intervals_ms: Mapping[str, float | None],
    sent_ms: float | None,
    crowd: Crowd | None,
    samples: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """What the target held while the request was in this interval; None where nothing tells."""
    window = None if sent_ms is None or not interval else phase_window_ms(interval, intervals_ms, sent_ms)
    if window is None:
        return {}
    found: dict[str, Any] = {}
    if crowd is not None:
        others = crowd.running(*window)
        own = 1.0 if interval in {"decode", "prefill"} or not crowd.told_admission else 0.0
        found["running"] = None if others is None else max(0, round(others - own))
        found["admission_told"] = crowd.told_admission
    usage = [
        sample["kv_usage"]
        for sample in samples
        if sample.get("kv_usage") is not None and window[0] <= (sample.get("at_ms") or 0.0) <= window[1]
    ]
    found["kv_usage_peak"] = max(usage, default=None)
    return found


def _counts_from_scheduled(spent: Mapping[str, float | None], e2e_ms: float | None) -> bool:
    """Whether its end-to-end time begins at `scheduled`, so that the client's delay is part of it."""
    delay = spent.get("dispatch") or 0.0
    if e2e_ms is None or not delay:
        return True
    whole = sum(max(0.0, ms or 0.0) for ms in spent.values())
    return abs(whole - e2e_ms) <= abs(whole - delay - e2e_ms)


def _shifted(samples: Sequence[Mapping[str, Any]], by_ms: float) -> list[dict[str, Any]]:
    return [{**sample, "at_ms": sample["at_ms"] + by_ms} for sample in samples if "at_ms" in sample]
