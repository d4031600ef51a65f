"""SGLang: its metrics (with `--enable-metrics`), whose names some builds write with `_` instead of `:`."""

from typing import Any

from inference.targets.dialects.base import Dialect, Evidence, Signs, counter, gauge, seconds
from inference.telemetry.prometheus import Families


def _both(*names: str) -> tuple[str, ...]:
    return tuple(prefix + name for name in names for prefix in ("sglang:", "sglang_"))


def _signs(evidence: Evidence) -> Signs:
    facts = []
    if "sglang" in evidence.owners:
        facts.append("the model list says owned_by sglang")
    family = evidence.with_prefix("sglang:", "sglang_")
    if family:
        facts.append(f"/metrics has {family}")
    version = ""
    for path in ("/get_server_info", "/server_info"):
        told = evidence.json(path)
        if "tp_size" in told or "internal_states" in told or "mem_fraction_static" in told:
            version = str(told.get("version") or "")
            facts.append(f"{path} tells SGLang's server arguments")
            break
    return Signs(tuple(facts), version, sure=bool(facts))


def _constants(families: Families) -> dict[str, Any]:
    for name in _both("max_total_num_tokens"):
        family = families.get(name)
        value = family.total() if family else None
        if value:
            return {"kv_pool_tokens": int(value)}
    return {}


SGLANG = Dialect(
    name="sglang",
    title="SGLang",
    probes=("/get_server_info", "/server_info"),
    prefixes=("sglang:", "sglang_"),
    signs=_signs,
    gauges={
        "running": gauge(*_both("num_running_reqs")),
        "waiting": gauge(*_both("num_queue_reqs")),
        "kv_usage": gauge(*_both("token_usage"), combine="max"),
    },
    counters={
        "preemptions_total": counter(*_both("num_retracted_requests")),
        "aborted_total": counter(*_both("num_aborted_requests")),
        "prefix_cache_queries_total": counter(*_both("prompt_tokens")),
        "prefix_cache_hits_total": counter(*_both("cached_tokens")),
        "prompt_tokens_total": counter(*_both("prompt_tokens")),
        "generation_tokens_total": counter(*_both("generation_tokens")),
        "finished_requests_total": counter(*_both("num_requests")),
    },
    durations={
        "queue_wait_ms": seconds(*_both("queue_time_seconds")),
        "prefill_ms": seconds(*_both("per_stage_req_latency_seconds"), stage="prefill_forward"),
        "ttft_ms": seconds(*_both("time_to_first_token_seconds")),
        "itl_ms": seconds(*_both("inter_token_latency_seconds", "time_per_output_token_seconds")),
        "e2e_ms": seconds(*_both("e2e_request_latency_seconds")),
    },
    progress=("generation_tokens_total", "prompt_tokens_total", "itl_ms"),
    populations=("ttft_ms", "queue_wait_ms", "e2e_ms", "finished_requests_total"),
    constants=_constants,
    per_request=("usage.prompt_tokens_details.cached_tokens (--enable-cache-report)",),
    running_usage=True,
)
