"""Figures over many requests: percentiles, the summary of a run, its validity, and live figures."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from inference.criteria import judge_limits, per_request, share_of, value_of, within
from inference.phases import gaps_ms
from inference.recording.ranks import at_ranks, extent, held_if_few
from inference.recording.reads import gaps_ns
from inference.records import OUTCOMES, RequestRecord, Trace
from inference.targets.base import TargetInfo
from inference.telemetry.series import gauges_and_counters, memory_watermark
from inference.validity import validity

SCHEMA = "phasegate-run/1"
PERCENTILES = (50, 90, 95, 99)
THIN_BELOW = 100  # samples; below, p99 rests on fewer than one request

SHOWN_INTERVALS = ("dispatch_delay", "queue_wait", "prefill", "decode", "release", "unexplained")

_NS_PER_S = 1_000_000_000
_NS_PER_MS = 1_000_000
_GAPS_AT_ONCE = 1 << 16


def percentile(ordered: Sequence[float], p: float) -> float:
    """The p-th percentile (0–100) of ascending values, by linear interpolation between ranks."""
    position = (len(ordered) - 1) * p / 100
    low = math.floor(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)


def figures(values: Iterable[float | None]) -> dict[str, Any]:
    """`{n, mean, p50, p90, p95, p99, max, thin}` of the observed values; null where there is none."""
    ordered = sorted(value for value in values if value is not None)
    n = len(ordered)
    out: dict[str, Any] = {"n": n, "mean": math.fsum(ordered) / n if n else None}
    for p in PERCENTILES:
        out[f"p{p}"] = percentile(ordered, p) if n else None
    out["max"] = ordered[-1] if n else None
    out["thin"] = n < THIN_BELOW
    return out


def gap_figures(records: Sequence[RequestRecord]) -> dict[str, Any]:
    """The figures of the gaps between token-bearing reads, pooled over the records, in ms.

    Exact for any number of reads; those of a long run lie on disk and are never held at once.
    """

    def gaps() -> Iterator[np.ndarray]:
        waiting: list[np.ndarray] = []
        held = 0
        for record in records:
            waiting.append(gaps_ns(record.reads))
            held += len(waiting[-1])
            if held >= _GAPS_AT_ONCE:
                yield np.concatenate(waiting)
                waiting, held = [], 0
        if waiting:
            yield np.concatenate(waiting)

    chunks = held_if_few(gaps)
    whole = extent(chunks)
    out: dict[str, Any] = {"n": whole.count}
    positions = {p: (whole.count - 1) * p / 100 for p in PERCENTILES} if whole.count else {}
    ranks = {rank for at in positions.values() for rank in (math.floor(at), math.ceil(at))}
    values = at_ranks(chunks, sorted(ranks), whole) if ranks else {}
    out["mean"] = whole.total / _NS_PER_MS / whole.count if whole.count else None
    for p in PERCENTILES:
        out[f"p{p}"] = _between(values, positions[p]) if positions else None
    out["max"] = whole.greatest / _NS_PER_MS if whole.count else None
    out["thin"] = whole.count < THIN_BELOW
    return out


def _between(values: Mapping[int, int], position: float) -> float:
    """The value at a fractional rank, in ms, by linear interpolation between the ranks around it."""
    low, high = values[math.floor(position)] / _NS_PER_MS, values[math.ceil(position)] / _NS_PER_MS
    return low + (high - low) * (position - math.floor(position))


def summarise(
    records: Sequence[RequestRecord],
    *,
    load: Mapping[str, Any] | None = None,
    self_check: Mapping[str, Any] | None = None,
    target: TargetInfo | None = None,
    telemetry: Sequence[Mapping[str, Any]] = (),
    limits: Sequence[Mapping[str, Any]] = (),
    environment: Mapping[str, Any] | None = None,
    configuration_digest: str | None = None,
    interrupted: bool = False,
    cooldown_from_ns: int | None = None,
    outputs: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The content of summary.json (schema `phasegate-run/1`) from the records of one run.

    `records` may hold warm-up requests (`warmup=True`): they, and every request that overlaps them or
    the cool-down, are left out of the window and counted. `load` is `LoadResult.load`, `self_check`
    `LoadResult.self_check`, `telemetry` samples `{"at_ms", …}` in the order of time, `limits` as
    `inference.criteria` has them. Percentiles are over successes, rates over all attempted.
    """
    window, excluded = measured_window(records, cooldown_from_ns=cooldown_from_ns)
    successes = [record for record in window if record.outcome == "success"]
    window_s = _window_s(window)
    summary: dict[str, Any] = {
        "schema": SCHEMA,
        "requests": {outcome: sum(r.outcome == outcome for r in window) for outcome in OUTCOMES},
        "attempted": len(window),
        "succeeded": len(successes),
        "warmup_requests": sum(record.warmup for record in records),
        "excluded_requests": excluded,
        "error_rate": error_rate(window),
        "interrupted": interrupted,
        "load": dict(load or {}),
        "concurrency": _concurrency(window, window_s, load),
        "window_s": window_s,
        **_throughput(window, successes, window_s),
        "latency_from": "scheduled" if (load or {}).get("open_loop") else "sent",
        **_distributions(successes),
        "cache_hit_rate": cache_hit_rate(window),
        "flags": _flag_counts(successes),
        "memory": memory_watermark(telemetry),
        "engine": gauges_and_counters(telemetry),
        "target": None if target is None else _target_json(target),
        "configuration_digest": configuration_digest,
        "self_check": dict(self_check or {}),
        "environment": dict(environment or {}),
    }
    if outputs is not None:
        summary["outputs"] = dict(outputs)
        summary["checks"] = {"pass_rate": outputs["pass_rate"], "n": outputs["n"]}
    if limits:
        summary["limits"] = judge_limits(limits, window, summary)
        summary["goodput"] = goodput(window, limits)
        summary["goodput_per_second"] = _rate(_met_count(window, limits), window_s)
    summary["validity"] = validity(summary, window, interrupted=interrupted)
    return summary


def measured_window(
    records: Sequence[RequestRecord], *, cooldown_from_ns: int | None = None
) -> tuple[list[RequestRecord], int]:
    """The records of the window, and how many others were excluded for overlapping its edges."""
    warm_until_ns = max((end for r in records if r.warmup and (end := _last_event_ns(r))), default=None)
    window: list[RequestRecord] = []
    excluded = 0
    for record in records:
        if record.warmup:
            continue
        start_ns, end_ns = _first_event_ns(record), _last_event_ns(record)
        in_warmup = warm_until_ns is not None and start_ns is not None and start_ns < warm_until_ns
        in_cooldown = cooldown_from_ns is not None and end_ns is not None and end_ns > cooldown_from_ns
        if in_warmup or in_cooldown:
            excluded += 1
        else:
            window.append(record)
    return window, excluded


def error_rate(records: Sequence[RequestRecord]) -> float | None:
    """All unsuccessful that were not asked for ÷ all attempted (0–1); null when nothing was attempted."""
    if not records:
        return None
    return sum(r.outcome not in ("success", "cancelled") for r in records) / len(records)


def cache_hit_rate(records: Iterable[RequestRecord]) -> float | None:
    """Prompt tokens served from cache ÷ prompt tokens asked, over requests whose hit was told (0–1)."""
    told = [(r.cached_tokens, r.input_tokens) for r in records if r.cached_tokens is not None]
    asked = sum(asked or 0 for _, asked in told)
    return sum(cached or 0 for cached, _ in told) / asked if asked else None


def goodput(records: Sequence[RequestRecord], limits: Sequence[Mapping[str, Any]]) -> float | None:
    """Requests that met every limit ÷ all attempted (0–1); unsuccessful ones never met it."""
    return _met_count(records, limits) / len(records) if records else None


def live_figures(
    records: Sequence[RequestRecord],
    *,
    window_s: float,
    now_ns: int | None = None,
    in_flight: Iterable[Trace] = (),
) -> dict[str, Any]:
    """The figures of a live sample over the last `window_s` seconds before `now_ns`.

    `records` are the requests that ended in the window. With `now_ns`, tokens per second count every
    token read in the window, of ended and of running requests; without it, the tokens of `records`.
    """
    successes = [record for record in records if record.outcome == "success"]
    out: dict[str, Any] = {"n": len(records)}
    for name, values in (
        ("ttft_ms", [r.ttft_ms for r in successes]),
        ("tpot_ms", [r.tpot_ms for r in successes]),
        ("queue_wait_ms", [r.intervals_ms.get("queue_wait") for r in successes]),
    ):
        summary = figures(values)
        out[f"{name}_p50"], out[f"{name}_p95"] = summary["p50"], summary["p95"]
    if now_ns is None:
        tokens: float | None = _total(record.output_tokens for record in records)
    else:
        since_ns = now_ns - int(window_s * _NS_PER_S)
        tokens = sum(_tokens_since(record.reads, since_ns) for record in records)
        for trace in in_flight:
            own: Iterable[tuple[int, int | None]] = [(ns, 1) for ns in trace.token_ns] or list(trace.reads)
            tokens += _tokens_since(own, since_ns)
    out["output_tokens_per_second"] = _rate(tokens, window_s)
    out["requests_per_second"] = _rate(len(successes), window_s)
    out["error_rate"] = error_rate(records)
    out["cache_hit_rate"] = cache_hit_rate(records)
    return out


def _tokens_since(reads: Iterable[tuple[int, int | None]], since_ns: int) -> int:
    return sum(1 if tokens is None else tokens for ns, tokens in reads if ns >= since_ns)


def _met_count(records: Sequence[RequestRecord], limits: Sequence[Mapping[str, Any]]) -> int:
    asked = per_request(limits)
    return sum(r.outcome == "success" and all(_meets(r, limit) for limit in asked) for r in records)


def _meets(record: RequestRecord, limit: Mapping[str, Any]) -> bool:
    """Whether one request's own figure is within a limit; a figure that was not observed is not."""
    metric = limit["metric"]
    if metric == "itl_ms":
        gaps = sorted(gaps_ms(record.reads))
        value = percentile(gaps, 100 * share_of(limit["percentile"])) if gaps else None
    else:
        value = value_of(record, metric)
    if value is None:  # one token has no TPOT and no gap: neither good nor bad
        return metric in ("tpot_ms", "itl_ms", "max_gap_ms") and record.output_tokens == 1
    return within(value, limit)


def _first_event_ns(record: RequestRecord) -> int | None:
    stamps = record.stamps
    return _stamp(stamps.get("sent_ns")) or _stamp(stamps.get("dispatched_ns"))


def _last_event_ns(record: RequestRecord) -> int | None:
    names = ("last_ns", "finished_ns", "aborted_ns", "failed_ns")
    return max((ns for name in names if (ns := _stamp(record.stamps.get(name)))), default=None)


def _stamp(value: int | list[int] | None) -> int | None:
    return value if isinstance(value, int) else None


def _window_s(records: Sequence[RequestRecord]) -> float | None:
    """Last event − first `sent`, in seconds; null when nothing was sent."""
    starts = [ns for record in records if (ns := _first_event_ns(record))]
    ends = [ns for record in records if (ns := _last_event_ns(record))]
    if not starts or not ends or max(ends) <= min(starts):
        return None
    return (max(ends) - min(starts)) / _NS_PER_S


def _concurrency(
    records: Sequence[RequestRecord], window_s: float | None, load: Mapping[str, Any] | None
) -> dict[str, Any]:
    """How many requests were under way: asked for, mean and peak, from sent to the end."""
    events: list[tuple[int, int]] = []
    busy_ns = 0
    for record in records:
        start_ns, end_ns = _first_event_ns(record), _last_event_ns(record)
        if start_ns is not None and end_ns is not None and end_ns >= start_ns:
            events += [(start_ns, 1), (end_ns, -1)]
            busy_ns += end_ns - start_ns
    running = peak = 0
    for _, step in sorted(events):
        running += step
        peak = max(peak, running)
    return {
        "asked": (load or {}).get("concurrency"),
        "mean": busy_ns / _NS_PER_S / window_s if window_s else None,
        "peak": peak if events else None,
    }


def _throughput(
    window: Sequence[RequestRecord], successes: Sequence[RequestRecord], window_s: float | None
) -> dict[str, Any]:
    """Tokens and requests of the successes, in all and a second; other requests' tokens stay apart."""
    output_tokens = _total(record.output_tokens for record in successes)
    input_tokens = _total(record.input_tokens for record in successes)
    return {
        "input_tokens": input_tokens,
        "output_tokens": output_tokens,
        "output_tokens_source": sorted({r.output_tokens_source for r in successes if r.output_tokens_source}),
        "partial_output_tokens": _total(r.output_tokens for r in window if r.outcome != "success"),
        "output_tokens_per_second": _rate(output_tokens, window_s),
        "total_tokens_per_second": _rate(_sum_known(input_tokens, output_tokens), window_s),
        "requests_per_second": _rate(len(successes), window_s),
    }


def _distributions(successes: Sequence[RequestRecord]) -> dict[str, Any]:
    """The figures of every latency, interval and length, over successes."""
    streamed = [record for record in successes if record.streamed]
    return {
        "ttft_ms": figures(r.ttft_ms for r in successes),
        "ttfv_ms": figures(r.ttfv_ms for r in successes),
        "ttfot_ms": figures(r.ttfot_ms for r in successes),
        "tpot_ms": figures(r.tpot_ms for r in successes),
        "itl_ms": gap_figures(streamed),
        "max_gap_ms": figures(r.max_gap_ms for r in streamed),
        "e2e_ms": figures(r.e2e_ms for r in successes),
        **{f"{name}_ms": figures(r.intervals_ms.get(name) for r in successes) for name in SHOWN_INTERVALS},
        "input_tokens_per_request": figures(r.input_tokens for r in successes),
        "output_tokens_per_request": figures(r.output_tokens for r in successes),
    }


def _flag_counts(records: Sequence[RequestRecord]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for record in records:
        for flag in record.flags:
            counts[flag] = counts.get(flag, 0) + 1
    return counts


def _target_json(target: TargetInfo) -> dict[str, Any]:
    return {
        "kind": target.kind,
        "model": target.model,
        "max_model_tokens": target.max_model_tokens,
        "load_ms": target.load_ms,
        "configuration": target.configuration,
    }


def _total(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _sum_known(*values: int | None) -> int | None:
    return None if any(value is None for value in values) else sum(value or 0 for value in values)


def _rate(amount: float | None, window_s: float | None) -> float | None:
    return None if amount is None or not window_s else amount / window_s
