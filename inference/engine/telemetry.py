"""The engine's resources at one moment, as a flat and honest dictionary."""

import time
from typing import Any

from inference.engine.engine import Engine
from inference.engine.memory import resident_bytes


def snapshot(engine: Engine) -> dict[str, Any]:
    """Keys as in `inference.telemetry`, counters since the start; taken while a step may be running."""
    blocks, scheduler, statistics = engine.blocks, engine.scheduler, engine.statistics
    resident, resident_peak = resident_bytes()
    block_bytes = engine.pool.size_bytes // engine.pool.blocks
    return {
        "at_ns": time.monotonic_ns(),
        "running": len(scheduler.running),
        "waiting": len(scheduler.waiting),
        "preemptions_total": scheduler.preemptions,
        "aborted_total": statistics.aborted,
        "prefix_cache_queries_total": blocks.query_tokens,
        "prefix_cache_hits_total": blocks.hit_tokens,
        "kv_blocks": blocks.total,
        "kv_blocks_used": blocks.held,
        "kv_block_tokens": blocks.block_tokens,
        "kv_usage": blocks.held / blocks.total,
        "weights_bytes": engine.loaded.weights_bytes,
        "kv_pool_bytes": engine.pool.size_bytes,
        "kv_used_bytes": blocks.held * block_bytes,
        "rss_bytes": resident,
        "rss_peak_bytes": resident_peak,
        "batch": statistics.current if statistics.running_since_ns is not None else None,
        "steps": dict(statistics.steps),
        "step_tokens": dict(statistics.tokens),
        "step_busy_ns": dict(statistics.busy_ns),
    }
