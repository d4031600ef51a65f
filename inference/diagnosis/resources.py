"""The state of the resources while a run was measured (M25), from its summary; absent is not observed."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

#: use of the KV pool at its peak from which memory is called short (D5)
KV_FULL = 0.95
#: mean use of the computing device from which it is called busy, and below which idle
DEVICE_BUSY = 0.85
DEVICE_IDLE = 0.5


@dataclass(frozen=True, kw_only=True)
class Resources:
    """What was told of memory, batch, cache and device. Shares are 0–1, None was not observed."""

    kv_usage_peak: float | None = None
    kv_fragmentation_peak: float | None = None
    preemptions: float | None = None
    oom_steps: float | None = None
    running_mean: float | None = None
    running_peak: float | None = None
    waiting_mean: float | None = None
    waiting_peak: float | None = None
    device_utilisation: float | None = (
        None  # mean; of the accelerator, else of the engine's own processor use
    )
    device_told_by: str = ""  # gpu or processor
    cache_hit_rate: float | None = None  # of prompt tokens in the run's own window
    cache_queries_tokens: float | None = None
    block_tokens: int | None = None

    @property
    def memory_observed(self) -> bool:
        return self.kv_usage_peak is not None or self.preemptions is not None or bool(self.oom_steps)

    @property
    def memory_short(self) -> bool:
        """Whether memory ran out for somebody (D5): preempted, out of memory, or the pool was full."""
        full = self.kv_usage_peak is not None and self.kv_usage_peak >= KV_FULL
        return full or bool(self.preemptions) or bool(self.oom_steps)

    @property
    def device_busy(self) -> bool | None:
        return None if self.device_utilisation is None else self.device_utilisation >= DEVICE_BUSY

    @property
    def device_idle(self) -> bool | None:
        return None if self.device_utilisation is None else self.device_utilisation < DEVICE_IDLE

    @property
    def observed(self) -> bool:
        """Whether memory and device, which advice rests on, were both told."""
        return self.memory_observed and self.device_utilisation is not None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def resources_of(summary: Mapping[str, Any], *, block_tokens: int | None = None) -> Resources:
    """The resources as the summary states them: `memory`, `engine` and the cache's counters of the window."""
    engine, memory = summary.get("engine") or {}, summary.get("memory") or {}
    utilisation, told_by = engine.get("gpu_utilisation_mean"), "gpu"
    if utilisation is None:  # the embedded engine on a processor is its own device
        utilisation, told_by = engine.get("process_cpu_share_mean"), "processor"
    requests_running = engine.get("running_mean")
    return Resources(
        kv_usage_peak=kv_peak(memory),
        kv_fragmentation_peak=engine.get("kv_fragmentation_peak"),
        preemptions=engine.get("preemptions"),
        oom_steps=engine.get("oom"),
        running_mean=requests_running,
        running_peak=engine.get("running_peak"),
        waiting_mean=engine.get("waiting_mean"),
        waiting_peak=engine.get("waiting_peak"),
        device_utilisation=utilisation,
        device_told_by=told_by if utilisation is not None else "",
        cache_hit_rate=_hit_rate(summary, engine),
        cache_queries_tokens=engine.get("prefix_cache_queries"),
        block_tokens=block_tokens or _block_tokens(summary, engine),
    )


def kv_peak(memory: Mapping[str, Any]) -> float | None:
    """The largest share of the KV pool in use, where the target tells it."""
    if memory.get("kv_usage_peak") is not None:
        return float(memory["kv_usage_peak"])
    if memory.get("kv_used_peak_bytes") is None or not memory.get("kv_pool_bytes"):
        return None
    return float(memory["kv_used_peak_bytes"] / memory["kv_pool_bytes"])


def _hit_rate(summary: Mapping[str, Any], engine: Mapping[str, Any]) -> float | None:
    """In tokens and of the window: from the requests, else from the growth of the server's counters."""
    if summary.get("cache_hit_rate") is not None:
        return float(summary["cache_hit_rate"])
    asked, hits = engine.get("prefix_cache_queries"), engine.get("prefix_cache_hits")
    return hits / asked if asked and hits is not None else None


def _block_tokens(summary: Mapping[str, Any], engine: Mapping[str, Any]) -> int | None:
    """Tokens in one block of the cache, from what the server told or what the engine was set to."""
    configuration = (summary.get("target") or {}).get("configuration") or {}
    told = [
        engine.get("kv_block_tokens_peak"),
        engine.get("kv_block_tokens"),
        configuration.get("block_tokens"),
        (configuration.get("engine") or {}).get("block_tokens"),
        (configuration.get("settings") or {}).get("block_tokens"),
    ]
    return next((int(value) for value in told if isinstance(value, int | float) and value > 0), None)
