"""The engine's resources at one moment, under the names of `inference.telemetry`.

Most is read from the engine while a step may be running. What lies between two samples (release times, the
age of who waits, the peak of the cache) is added up from the events of all requests, as they are sent.
"""

import time
from collections import deque
from collections.abc import Iterable
from typing import Any

from inference.engine.engine import Engine
from inference.engine.events import ENDS, Event
from inference.engine.memory import resident_bytes, restart_resident_peak
from inference.engine.sequence import Sequence
from inference.stats import percentile

RELEASES_KEPT = 1024
RELEASE_WINDOW_NS = 60 * 10**9
#: counters of `Statistics` that an engine has only with speculation, and their names here
SPECULATION = {"drafted": "drafted_tokens_total", "accepted": "accepted_tokens_total"}
OUT_OF_MEMORY = ("MemoryError", "OutOfMemory", "out of memory", "can't allocate memory")


class Watch:
    """What the events add up to. `observe` sees each batch once, in order, under the sender's lock."""

    def __init__(self) -> None:
        self.kv_peak_blocks = 0  # since the last cold start
        self.oom_total = 0  # steps that ended for want of memory
        self._waiting: dict[int, int] = {}  # handle → ns since when it waits for a place in the batch
        self._ended: dict[int, int] = {}  # handle → ns of its end, until its blocks are free
        self._releases: deque[tuple[int, int]] = deque(maxlen=RELEASES_KEPT)  # (ns freed, ns it took)

    def restart(self, held_blocks: int) -> None:
        """Watermarks are of what comes from now on: not of the load, nor of an earlier run."""
        self.kv_peak_blocks = held_blocks
        restart_resident_peak()

    def observe(self, batch: Iterable[Event], held_blocks: int) -> None:
        self.kv_peak_blocks = max(self.kv_peak_blocks, held_blocks)
        starved = False
        for event in batch:
            kind = event[0]
            if kind in ("token", "chunk"):
                continue
            handle, ns = event[1], event[2]
            if kind in ("queued", "preempted"):
                self._waiting[handle] = ns
            elif kind == "admitted":
                self._waiting.pop(handle, None)
            elif kind in ENDS:
                self._waiting.pop(handle, None)
                self._ended[handle] = ns
                starved |= kind == "failed" and is_out_of_memory(event[3])
            elif kind == "freed" and (ended_ns := self._ended.pop(handle, None)) is not None:
                self._releases.append((ns, ns - ended_ns))
        self.oom_total += starved

    def figures(self, now_ns: int) -> dict[str, Any]:
        """Who waits and for how long, and the release times (M18) of the last minute."""
        waiting = list(self._waiting.values())
        found: dict[str, Any] = {"waiting": len(waiting), "oom_total": self.oom_total}
        if waiting:
            found["oldest_waiting_ms"] = max(0, now_ns - min(waiting)) / 1e6
        recent = sorted(took for ns, took in list(self._releases) if now_ns - ns <= RELEASE_WINDOW_NS)
        if recent:
            found |= {
                "release_n": len(recent),
                "release_ms_p50": percentile(recent, 50) / 1e6,
                "release_ms_p95": percentile(recent, 95) / 1e6,
                "release_ms_max": recent[-1] / 1e6,
            }
        return found


def is_out_of_memory(reason: str) -> bool:
    """Whether the words of an exception say that memory ran out."""
    return any(words in reason for words in OUT_OF_MEMORY)


def snapshot(engine: Engine, watch: Watch | None = None) -> dict[str, Any]:
    """One flat mapping; taken while a step may be running."""
    blocks, scheduler, statistics = engine.blocks, engine.scheduler, engine.statistics
    resident, resident_peak = resident_bytes()
    used, block_bytes = blocks.held, engine.pool.size_bytes // blocks.total
    found: dict[str, Any] = {
        "weights_bytes": engine.loaded.weights_bytes,
        "kv_pool_bytes": engine.pool.size_bytes,
        "kv_used_bytes": used * block_bytes,
        "buffers_bytes": engine.runner.buffers_bytes,
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
    if engine.draft is not None:
        found["draft_bytes"] = engine.draft.loaded.weights_bytes + engine.draft.pool.size_bytes
    if (share := fragmentation(list(scheduler.running), blocks.block_tokens, used)) is not None:
        found["kv_fragmentation"] = share
    if watch is not None:
        found |= watch.figures(time.monotonic_ns())
        found["kv_used_peak_bytes"] = max(used, watch.kv_peak_blocks) * block_bytes
    return found | _device(engine) | _batch(engine) | _since_start(statistics)


def fragmentation(sequences: Iterable[Sequence], block_tokens: int, held: int) -> float | None:
    """The share of the slots in held blocks that hold no computed token (M19), 0–1; None while none is held.

    Blocks that several sequences share are full, so each empty slot belongs to one sequence.
    """
    if not held:
        return None
    empty = sum(len(one.blocks) * block_tokens - one.num_computed for one in sequences)
    return min(1.0, max(0, empty) / (held * block_tokens))


def _device(engine: Engine) -> dict[str, Any]:
    """The allocator and the clock of an accelerator; empty where the machine's memory is all there is."""
    memory = engine.device.memory()
    if memory is None:
        return {}
    known = engine.loaded.weights_bytes + engine.pool.size_bytes
    return {
        "buffers_bytes": max(0, memory.reserved - known),
        "device_allocated_bytes": memory.allocated,
        "device_allocated_peak_bytes": memory.peak,
        "device_reserved_bytes": memory.reserved,
        "device_free_bytes": memory.free,
        "device_memory_bytes": memory.total,
    } | engine.device.clock_figures()


def _batch(engine: Engine) -> dict[str, Any]:
    """Composition of the step that is running; empty between steps."""
    step = engine.statistics.current
    if step is None:
        return {}
    prefill = sum(work.count for work in step.work if work.sequence.in_prefill)
    return {
        "batch_phase": step.kind,
        "batch_sequences": len(step.work),
        "batch_tokens": step.tokens,
        "batch_prefill_tokens": min(prefill, step.tokens),
    }


def _since_start(statistics: Any) -> dict[str, Any]:
    """Counters since the start of the process."""
    found: dict[str, Any] = {}
    for kind, steps in statistics.steps.items():
        if kind == "mixed" and not steps:
            continue  # where steps are phase-pure there is no such thing
        found[f"{kind}_steps_total"] = steps
        found[f"{kind}_tokens_total"] = statistics.tokens[kind]
        found[f"{kind}_busy_ms_total"] = statistics.busy_ns[kind] / 1e6
        if statistics.device_ns[kind]:
            found[f"{kind}_device_ms_total"] = statistics.device_ns[kind] / 1e6
    if statistics.steps["mixed"]:
        found |= {f"{kind}_tokens_mixed_total": count for kind, count in statistics.mixed_tokens.items()}
    for theirs, ours in SPECULATION.items():
        if (value := getattr(statistics, theirs, None)) is not None:
            found[ours] = value
    return found
