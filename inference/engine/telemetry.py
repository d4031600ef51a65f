"""The engine's resources at one moment, as a flat and honest dictionary."""

import time
from typing import Any

from inference.engine.engine import Engine
from inference.engine.memory import resident_bytes


def snapshot(engine: Engine) -> dict[str, Any]:
    """Sizes in bytes, counters since the start; taken while a step may be running."""
    blocks, scheduler, statistics = engine.blocks, engine.scheduler, engine.statistics
    resident, resident_peak = resident_bytes()
    block_bytes = engine.pool.size_bytes // engine.pool.blocks
    return {
        "at_ns": time.monotonic_ns(),
        "running": len(scheduler.running),
        "waiting": len(scheduler.waiting),
        "preemptions": scheduler.preemptions,
        "aborted": statistics.aborted,
        "prefix_cache_queries": blocks.query_tokens,
        "prefix_cache_hits": blocks.hit_tokens,
        "kv_blocks_total": blocks.total,
        "kv_blocks_in_use": blocks.held,
        "kv_block_tokens": blocks.block_tokens,
        "memory": {
            "weights_bytes": engine.loaded.weights_bytes,
            "kv_pool_bytes": engine.pool.size_bytes,
            "kv_in_use_bytes": blocks.held * block_bytes,
            "rss_bytes": resident,
            "rss_peak_bytes": resident_peak,
        },
        "batch": statistics.current if statistics.running_since_ns is not None else None,
        "steps": dict(statistics.steps),
        "step_tokens": dict(statistics.tokens),
        "step_busy_ns": dict(statistics.busy_ns),
    }
