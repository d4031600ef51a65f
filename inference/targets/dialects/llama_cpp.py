"""llama.cpp's server (with `--metrics`) and the `timings` of each of its answers."""

from collections.abc import Mapping
from typing import Any

from inference.targets.dialects.base import Dialect, Evidence, Phases, Signs, counter, gauge, number, seconds


def _signs(evidence: Evidence) -> Signs:
    facts = []
    if evidence.server_header.lower().startswith("llama.cpp"):
        facts.append(f"header server: {evidence.server_header}")
    if "llamacpp" in evidence.owners:
        facts.append("the model list says owned_by llamacpp")
    told = evidence.json("/props")
    if "default_generation_settings" in told:
        facts.append("/props tells default_generation_settings")
    family = evidence.with_prefix("llamacpp:")
    if family:
        facts.append(f"/metrics has {family}")
    return Signs(tuple(facts), str(told.get("build_info") or ""), sure=bool(facts))


def _phases(server: Mapping[str, Any]) -> Phases | None:
    """`timings.prompt_ms` is the prefill; what remains of the time to the first token is the queue wait."""
    told = server.get("timings")
    return Phases(prefill_ms=number(told.get("prompt_ms"))) if isinstance(told, dict) else None


LLAMA_CPP = Dialect(
    name="llama_cpp",
    title="llama.cpp",
    probes=("/props",),
    prefixes=("llamacpp:",),
    signs=_signs,
    gauges={
        "running": gauge("llamacpp:requests_processing"),
        "waiting": gauge("llamacpp:requests_deferred"),
        "kv_usage": gauge("llamacpp:kv_cache_usage_ratio", combine="max"),
    },
    counters={
        "prefix_cache_queries_total": counter("llamacpp:prompt_tokens"),
        "prefix_cache_hits_total": counter("llamacpp:prompt_tokens_cached"),
        "prompt_tokens_total": counter("llamacpp:prompt_tokens"),
        "generation_tokens_total": counter("llamacpp:tokens_predicted"),
        "steps_total": counter("llamacpp:n_decode"),
    },
    durations={
        "prefill_ms": seconds("llamacpp:prompt_seconds"),
        "decode_ms": seconds("llamacpp:tokens_predicted_seconds"),
    },
    progress=("steps_total", "generation_tokens_total", "prompt_tokens_total"),
    queries_exclude_hits=True,
    phases=_phases,
    per_request=("timings",),
)
