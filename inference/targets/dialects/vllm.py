"""vLLM: names of its metrics since version 0.4, and the `metrics` object it can send with an answer."""

from collections.abc import Mapping
from typing import Any

from inference.targets.dialects.base import (
    Dialect,
    Evidence,
    Phases,
    Signs,
    counter,
    gauge,
    label_number,
    number,
    seconds,
)
from inference.telemetry.prometheus import Families


def _signs(evidence: Evidence) -> Signs:
    facts = []
    if "vllm" in evidence.owners:
        facts.append("the model list says owned_by vllm")
    family = evidence.with_prefix("vllm:")
    if family:
        facts.append(f"/metrics has {family}")
    version = evidence.json("/version").get("version")
    if isinstance(version, str) and facts:
        facts.append(f"/version says {version}")
    return Signs(tuple(facts), version if isinstance(version, str) else "", sure=bool(facts))


def _constants(families: Families) -> dict[str, Any]:
    """Of `cache_config_info`: the pool's bytes and tokens in a block, told as labels."""
    family = families.get("vllm:cache_config_info")
    labels = dict(family.samples[0][1]) if family and family.samples else {}
    found = {
        "kv_pool_bytes": label_number(labels.get("kv_cache_memory_bytes")),
        "kv_block_tokens": label_number(labels.get("block_size")),
        "kv_blocks_total": label_number(labels.get("num_gpu_blocks")),
    }
    return {name: int(value) for name, value in found.items() if value is not None}


def _phases(server: Mapping[str, Any]) -> Phases | None:
    """`time_to_first_token_ms` counts from *scheduled*, so it is the prefill."""
    told = server.get("metrics")
    if not isinstance(told, dict):
        return None
    return Phases(number(told.get("queue_time_ms")), number(told.get("time_to_first_token_ms")))


VLLM = Dialect(
    name="vllm",
    title="vLLM",
    probes=("/version",),
    prefixes=("vllm:",),
    signs=_signs,
    gauges={
        "running": gauge("vllm:num_requests_running"),
        "waiting": gauge("vllm:num_requests_waiting"),
        "kv_usage": gauge("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", combine="max"),
    },
    counters={
        "preemptions_total": counter("vllm:num_preemptions"),
        "prefix_cache_queries_total": counter("vllm:prefix_cache_queries", "vllm:gpu_prefix_cache_queries"),
        "prefix_cache_hits_total": counter("vllm:prefix_cache_hits", "vllm:gpu_prefix_cache_hits"),
        "prompt_tokens_total": counter("vllm:prompt_tokens"),
        "generation_tokens_total": counter("vllm:generation_tokens"),
        "finished_requests_total": counter("vllm:request_success"),
        "refused_requests_total": counter("vllm:admission_rejections"),
    },
    durations={
        "queue_wait_ms": seconds("vllm:request_queue_time_seconds"),
        "prefill_ms": seconds("vllm:request_prefill_time_seconds"),
        "decode_ms": seconds("vllm:request_decode_time_seconds"),
        "inference_ms": seconds("vllm:request_inference_time_seconds"),
        "ttft_ms": seconds("vllm:time_to_first_token_seconds"),
        "itl_ms": seconds("vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds"),
        "e2e_ms": seconds("vllm:e2e_request_latency_seconds"),
        "step_tokens": counter("vllm:iteration_tokens_total"),
    },
    outcome_label="finished_reason",
    progress=("step_tokens", "generation_tokens_total", "prompt_tokens_total"),
    populations=("ttft_ms", "queue_wait_ms", "e2e_ms", "finished_requests_total"),
    constants=_constants,
    phases=_phases,
    per_request=("metrics", "usage.prompt_tokens_details.cached_tokens"),
    running_usage=True,
)
