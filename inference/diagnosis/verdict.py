"""From records and summary to the verdict, free of any language: codes with the figures they rest on.

`where` names the stage that holds most of the time. Findings read the time to the first token
together with the queue wait (X8: TTFT is not prefill) and name which of its five causes (D2) it is;
suspects (D1), causes (D2) and tests (D3–D5) are each judged with their figures, and advice follows
the stage, the state of the resources and the goal (D6, D7), and cites its basis.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from inference.diagnosis.advice import Setting, Situation, advise
from inference.diagnosis.confidence import confidence_of
from inference.diagnosis.judgement import CLEAR_SHARE, Judgement
from inference.diagnosis.judgement import NOTABLE_SHARE as NOTABLE_PART
from inference.diagnosis.requests import slowest
from inference.diagnosis.resources import KV_FULL, Resources, resources_of
from inference.diagnosis.shares import TimeSplit, split_time
from inference.diagnosis.stages import short_memory, slow_decode, slow_prefill
from inference.diagnosis.suspects import first_token_causes, suspects
from inference.records import RequestRecord

#: "mixed" is said when the next stage is within this factor of the first
MIXED_FACTOR = 0.8
#: with less of the time explained than this, no stage is named
EXPLAINED_SHARE = 0.5
#: below this many samples p99 is thin (metrics.md)
THIN_SAMPLES = 100

STAGES = {"queue": "queue_wait", "prefill": "prefill", "decode": "decode"}
Finding = dict[str, Any]


def diagnose(
    records: Sequence[RequestRecord],
    summary: Mapping[str, Any],
    *,
    setting: Setting | None = None,
    telemetry: Sequence[Mapping[str, Any]] = (),
    started_ns: int | None = None,
) -> dict[str, Any]:
    """The verdict of a run.

    `where`, `shares` (of the summed time, 0–1, null where not observed), `n`, `source`, `phases` (each
    with n, p50 and p95 in ms), `attribution` (time by place), `suspects` (D1), `causes` (D2), `tests`
    (D3–D5), `resources`, `findings`, `advice`, `confidence`, `settle` (codes of the measurements that
    would answer what stayed open), `goal`, and `slowest` (the diagnoses of the slowest requests, with what
    `telemetry` told meanwhile where `started_ns` is the zero of its axis).
    """
    setting = setting or Setting()
    split = split_time(records, summary)
    where = locate(split)
    resources = resources_of(summary, block_tokens=setting.block_tokens)
    judged = {
        "suspects": suspects(split, summary, resources),
        "causes": first_token_causes(split, summary, resources),
        "tests": [
            *slow_prefill(records, split),
            *slow_decode(records, split),
            *short_memory(resources, summary),
        ],
    }
    findings = [
        *_time_findings(split, where),
        *_first_token_findings(split, summary),
        *_decode_findings(split, summary),
        *_memory_findings(split, resources),
        *_cache_findings(resources, setting),
        *_population_findings(summary),
    ]
    supported = {item.code for item in judged["tests"] if item.verdict == "supported"}
    confidence = confidence_of(split, summary, resources)
    situation = Situation(
        where=where,
        split=split,
        summary=summary,
        resources=resources,
        setting=setting,
        codes=frozenset({finding["code"] for finding in findings} | supported),
        confidence=confidence,
    )
    return {
        "where": where,
        "shares": split.shares,
        "n": split.n,
        "source": split.source,
        "phases": {
            name: _short(summary.get(f"{name}_ms"))
            for name in ("ttft", "queue_wait", "prefill", "tpot", "decode", "e2e")
        },
        "attribution": split.attribution(),
        "resources": resources.as_json(),
        **{name: [item.as_json() for item in items] for name, items in judged.items()},
        "findings": findings,
        "advice": advise(situation),
        "goal": setting.goal,
        "confidence": confidence.as_json(),
        "settle": _settle(judged) if split.source != "none" else [],
        "slowest": slowest(records, started_ns=started_ns, samples=telemetry),
    }


def _settle(judged: Mapping[str, Sequence[Judgement]]) -> list[str]:
    """What to measure for the questions that stayed open, each once, in the order of the questions."""
    return list(dict.fromkeys(item.settle for items in judged.values() for item in items if item.settle))


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


def _memory_findings(split: TimeSplit, resources: Resources) -> list[Finding]:
    """Memory shortage (D5): work pushed out of the batch, or a full KV pool."""
    found = []
    requeue = split.sums_ms.get("requeue_wait")
    if requeue:
        found.append(
            _finding(
                "preempted_for_memory", requeue_wait_ms=requeue, share=split.of("requeue_wait", "decode")
            )
        )
    usage = resources.kv_usage_peak
    if usage is not None and usage >= KV_FULL:
        found.append(_finding("kv_pool_full", kv_usage_peak=usage))
    return found


def _cache_findings(resources: Resources, setting: Setting) -> list[Finding]:
    """A prefix that is shared and still never found: blocks are cached whole, and it fills none (case 10)."""
    shared, block, hits = setting.shared_prefix_tokens, resources.block_tokens, resources.cache_hit_rate
    if not shared or not block or shared >= block or hits is None or hits > 0.01:
        return []
    return [
        _finding(
            "prefix_shorter_than_block",
            shared_prefix_tokens=shared,
            block_tokens=block,
            cache_hit_rate=hits,
            cache_queries_tokens=resources.cache_queries_tokens,
        )
    ]


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


def _short(found: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """n, p50 and p95 of a distribution; None when nothing was observed."""
    if not found or not found.get("n") or found.get("p50") is None:
        return None
    return {"n": found["n"], "p50": found["p50"], "p95": found.get("p95")}


def _attempted(summary: Mapping[str, Any]) -> int:
    return int(summary.get("attempted") or 0)


def _succeeded(summary: Mapping[str, Any]) -> int:
    return int(summary.get("succeeded") or 0)
