"""The engine's resources at one moment, under the names of `inference.telemetry` and a few of its own.

Its own: `rss_peak_bytes`, `kv_blocks_total` and `kv_blocks_used`; the composition of the running step
(`batch_phase`, `batch_sequences`, `batch_tokens`, absent between steps); and since the start of the
process `prefill_steps_total`, `prefill_tokens_total`, `prefill_busy_ms_total` and the same for decode.
"""

from typing import Any

from inference.engine.engine import Engine
from inference.engine.memory import resident_bytes


def snapshot(engine: Engine) -> dict[str, Any]:
    """One flat mapping; taken while a step may be running."""
    blocks, scheduler, statistics = engine.blocks, engine.scheduler, engine.statistics
    resident, resident_peak = resident_bytes()
    used = blocks.held
    found: dict[str, Any] = {
        "weights_bytes": engine.loaded.weights_bytes,
        "kv_pool_bytes": engine.pool.size_bytes,
        "kv_used_bytes": used * (engine.pool.size_bytes // blocks.total),
        "buffers_bytes": engine.runner.backend.buffers_bytes,
        "rss_bytes": resident,
        "rss_peak_bytes": resident_peak,
        "kv_usage": used / blocks.total,
        "kv_blocks_total": blocks.total,
        "kv_blocks_used": used,
        "running": len(scheduler.running),
        "waiting": len(scheduler.waiting),
        "preemptions_total": scheduler.preemptions,
        "aborted_total": statistics.aborted,
        "prefix_cache_queries_total": blocks.query_tokens,
        "prefix_cache_hits_total": blocks.hit_tokens,
    }
    step = statistics.current
    if step is not None:
        found |= {"batch_phase": step.kind, "batch_sequences": len(step.work), "batch_tokens": step.tokens}
    for kind in ("prefill", "decode"):
        found[f"{kind}_steps_total"] = statistics.steps[kind]
        found[f"{kind}_tokens_total"] = statistics.tokens[kind]
        found[f"{kind}_busy_ms_total"] = statistics.busy_ns[kind] / 1e6
    return found
