"""From records and summary to the verdict, free of any language: codes with the figures they rest on.

`where` names the stage that holds most of the time. Findings read the time to the first token
together with the queue wait (X8: TTFT is not prefill) and name which of its five causes (D2) it is;
advice follows the stage (D6, D7) and cites its basis.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from inference.diagnosis.shares import TimeSplit, split_time
from inference.records import RequestRecord

#: a stage is the place alone when it holds at least this share of the time …
CLEAR_SHARE = 0.5
#: … and "mixed" is said when the next one is within this factor of it
MIXED_FACTOR = 0.8
#: with less of the time explained than this, no stage is named
EXPLAINED_SHARE = 0.5
#: a part of a phase worth a finding of its own
NOTABLE_PART = 0.2
#: KV use at its peak from which memory is called short (D5)
KV_FULL = 0.95
#: below this many samples p99 is thin (metrics.md)
THIN_SAMPLES = 100

STAGES = {"queue": "queue_wait", "prefill": "prefill", "decode": "decode"}
Finding = dict[str, Any]


def diagnose(records: Sequence[RequestRecord], summary: Mapping[str, Any]) -> dict[str, Any]:
    """The verdict `{"where", "shares", "n", "source", "phases", "findings", "advice"}`.

    `shares` are shares of the summed time (0–1, null where not observed), `phases` each phase's n,
    p50 and p95 in ms. Every finding and advice is `{"code", "figures"}`; advice adds `stage`, `area`.
    """
    split = split_time(records, summary)
    where = locate(split)
    findings = [
        *_time_findings(split, where),
        *_first_token_findings(split, summary),
        *_decode_findings(split, summary),
        *_memory_findings(split, summary),
        *_population_findings(summary),
    ]
    return {
        "where": where,
        "shares": split.shares,
        "n": split.n,
        "source": split.source,
        "phases": {
            name: _short(summary.get(f"{name}_ms"))
            for name in ("ttft", "queue_wait", "prefill", "tpot", "decode", "e2e")
        },
        "findings": findings,
        "advice": _advice(where, split, summary, {finding["code"] for finding in findings}),
    }


def locate(split: TimeSplit) -> str:
    """`queue`, `prefill`, `decode`, `mixed`, or `unknown` when too little of the time is explained."""
    ranked = sorted(((split.share(part), stage) for stage, part in STAGES.items()), reverse=True)
    if sum(share for share, _stage in ranked) < EXPLAINED_SHARE:
        return "unknown"
    (top, stage), (second, _next) = ranked[0], ranked[1]
    if top < CLEAR_SHARE and second >= top * MIXED_FACTOR:
        return "mixed"
    return stage


def _finding(code: str, **figures: Any) -> Finding:
    return {"code": code, "figures": figures}


def _time_findings(split: TimeSplit, where: str) -> list[Finding]:
    if split.source == "none":
        return [_finding("no_time_observed")]
    found = []
    if where == "unknown":
        found.append(
            _finding("time_unexplained", explained_share=sum(split.share(part) for part in STAGES.values()))
        )
    else:
        found.append(
            _finding(
                f"time_in_{where}",
                n=split.n,
                **{f"{stage}_share": split.shares[part] for stage, part in STAGES.items()},
            )
        )
    if split.shares.get("prefill") is None and split.share("unexplained") >= NOTABLE_PART:
        found.append(_finding("before_first_token_not_split", share=split.shares["unexplained"]))
    return found


def _first_token_findings(split: TimeSplit, summary: Mapping[str, Any]) -> list[Finding]:
    """TTFT beside queue wait, and the largest of its five causes (D2)."""
    ttft = _short(summary.get("ttft_ms"))
    if ttft is None:
        return [_finding("first_token_not_observed")] if _succeeded(summary) else []
    load_ms = split.sums_ms.get("model_load")
    queue_ms = split.sums_ms.get("queue_wait")
    causes = {
        "queueing": None if queue_ms is None else queue_ms - (load_ms or 0.0),
        "context_computation": split.sums_ms.get("prefill"),
        "model_load": load_ms,
        "network": split.sums_ms.get("network"),
        "throttling": split.sums_ms.get("throttled"),
    }
    observed = {name: value for name, value in causes.items() if value is not None and value > 0}
    whole = sum(observed.values())
    if not whole or "context_computation" not in observed:
        return []
    cause = max(observed, key=lambda name: observed[name])
    queue, prefill = _short(summary.get("queue_wait_ms")) or {}, _short(summary.get("prefill_ms")) or {}
    found = [
        _finding(
            f"ttft_by_{cause}",
            share=observed[cause] / whole,
            ttft_p50_ms=ttft["p50"],
            ttft_p95_ms=ttft["p95"],
            queue_wait_p50_ms=queue.get("p50"),
            queue_wait_p95_ms=queue.get("p95"),
            prefill_p50_ms=prefill.get("p50"),
            prefill_p95_ms=prefill.get("p95"),
        )
    ]
    waiting = split.of("prefill_wait", "prefill")
    if waiting is not None and waiting >= NOTABLE_PART:
        found.append(_finding("prefill_waits_between_chunks", share=waiting))
    return found


def _decode_findings(split: TimeSplit, summary: Mapping[str, Any]) -> list[Finding]:
    """Generation: stalls, and why throughput and per-request speed do not contradict each other."""
    found = []
    stall = split.of("decode_stall", "decode")
    if stall is not None and stall >= NOTABLE_PART:
        found.append(_finding("decode_stalls", share=stall))
    tpot = _short(summary.get("tpot_ms"))
    rate = summary.get("output_tokens_per_second")
    if tpot is not None and rate:
        found.append(
            _finding(
                "throughput_and_tpot_agree",
                output_tokens_per_second=rate,
                tpot_p50_ms=tpot["p50"],
                decoding_at_once=rate * tpot["p50"] / 1000.0,
            )
        )
    elif tpot is None and _succeeded(summary) and summary.get("ttft_ms", {}):
        found.append(_finding("generation_speed_not_observed"))
    return found


def _memory_findings(split: TimeSplit, summary: Mapping[str, Any]) -> list[Finding]:
    """Memory shortage (D5): work pushed out of the batch, or a full KV pool."""
    found = []
    requeue = split.sums_ms.get("requeue_wait")
    if requeue:
        found.append(
            _finding(
                "preempted_for_memory", requeue_wait_ms=requeue, share=split.of("requeue_wait", "decode")
            )
        )
    usage = _kv_peak(summary)
    if usage is not None and usage >= KV_FULL:
        found.append(_finding("kv_pool_full", kv_usage_peak=usage))
    return found


def _population_findings(summary: Mapping[str, Any]) -> list[Finding]:
    """Who is not in the percentiles: failures, refusals, thin samples."""
    requests = summary.get("requests") or {}
    attempted = _attempted(summary)
    found = []
    if requests.get("rate_limited"):
        found.append(_finding("throttled", n=requests["rate_limited"], attempted=attempted))
    bad = sum(requests.get(name) or 0 for name in ("failed", "incomplete", "timeout", "rejected"))
    if bad:
        found.append(_finding("requests_failed", n=bad, attempted=attempted))
    if requests.get("cancelled"):
        found.append(_finding("cancelled_on_purpose", n=requests["cancelled"], attempted=attempted))
    ttft = _short(summary.get("ttft_ms"))
    if ttft is not None and ttft["n"] < THIN_SAMPLES:
        found.append(_finding("thin_sample", n=ttft["n"]))
    return found


def _advice(
    where: str, split: TimeSplit, summary: Mapping[str, Any], codes: set[str]
) -> list[dict[str, Any]]:
    """Actions that fit the stage, each with the area of D7 it belongs to and the figures it rests on."""
    short_of_memory = bool(codes & {"preempted_for_memory", "kv_pool_full"})
    advice = []

    def add(code: str, stage: str, area: str, **figures: Any) -> None:
        advice.append({"code": code, "stage": stage, "area": area, "figures": figures})

    if "throttled" in codes:
        add(
            "raise_limits_or_slow_down",
            "queue",
            "capacity",
            n=(summary.get("requests") or {})["rate_limited"],
        )
    if short_of_memory:
        add("free_memory_first", "queue", "cache", kv_usage_peak=_kv_peak(summary))
    if where in ("queue", "mixed") and split.share("queue_wait") >= NOTABLE_PART:
        if not short_of_memory:
            add("change_batching", "queue", "capacity", queue_share=split.shares["queue_wait"])
        add("route_or_add_capacity", "queue", "routing", queue_share=split.shares["queue_wait"])
    if where in ("prefill", "mixed") and split.share("prefill") >= NOTABLE_PART:
        add("shorten_prompt", "prefill", "context", prefill_share=split.shares["prefill"])
        hit_rate = summary.get("cache_hit_rate")
        if hit_rate is not None and hit_rate < 0.5:
            add("share_prefixes", "prefill", "cache", cache_hit_rate=hit_rate)
    if where in ("decode", "mixed") and split.share("decode") >= NOTABLE_PART:
        add("give_decode_more", "decode", "capacity", decode_share=split.shares["decode"])
        if "decode_stalls" in codes:
            add(
                "smaller_prefill_chunks", "decode", "capacity", stall_share=split.of("decode_stall", "decode")
            )
    if where == "unknown" and _succeeded(summary):  # a server can tell nothing of what did not succeed
        add("observe_the_server", "unknown", "capacity")
    return advice


def _short(found: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """n, p50 and p95 of a distribution; None when nothing was observed."""
    if not found or not found.get("n") or found.get("p50") is None:
        return None
    return {"n": found["n"], "p50": found["p50"], "p95": found.get("p95")}


def _attempted(summary: Mapping[str, Any]) -> int:
    return int(summary.get("attempted") or 0)


def _succeeded(summary: Mapping[str, Any]) -> int:
    return int(summary.get("succeeded") or 0)


def _kv_peak(summary: Mapping[str, Any]) -> float | None:
    """The largest share of the KV pool in use, where the target tells it."""
    memory = summary.get("memory") or {}
    if memory.get("kv_usage_peak") is not None:
        return float(memory["kv_usage_peak"])
    if memory.get("kv_used_peak_bytes") is None or not memory.get("kv_pool_bytes"):
        return None
    return float(memory["kv_used_peak_bytes"] / memory["kv_pool_bytes"])
