"""What the samples of a run say in sum: the memory split with its watermark, gauges and counters."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

#: telemetry keys of sizes that stand still, and of those whose peak matters
FIXED_MEMORY = ("weights_bytes", "draft_bytes", "kv_pool_bytes", "gpu_memory_bytes", "system_memory_bytes")
MOVING_MEMORY = {
    "kv_used_bytes": "kv_used_peak_bytes",
    "kv_usage": "kv_usage_peak",
    "buffers_bytes": "buffers_peak_bytes",
    "rss_bytes": "rss_peak_bytes",
    "gpu_memory_used_bytes": "gpu_memory_used_peak_bytes",
}

#: telemetry keys that go up and down
GAUGES = (
    "running",
    "waiting",
    "oldest_waiting_ms",
    "kv_fragmentation",
    "gpu_utilisation",
    "gpu_power_w",
    "gpu_temperature_c",
    "cpu_share",
    "process_cpu_share",
    "load_1m",
)


def memory_watermark(telemetry: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """The memory split (M17) and its watermark (M6) from the samples' flat keys; null without any.

    Sizes that stand still keep their name and last value; what moves becomes `…_peak_bytes`, and the
    pool's use `kv_usage_peak` (0–1). A peak that the target itself has seen between two samples counts.
    """
    out: dict[str, Any] = {}
    for name in FIXED_MEMORY:
        values = [sample[name] for sample in telemetry if sample.get(name) is not None]
        if values:
            out[name] = values[-1]
    for name, peak_name in MOVING_MEMORY.items():
        seen = [sample.get(key) for sample in telemetry for key in (name, peak_name)]
        values = [value for value in seen if value is not None]
        if values:
            out[peak_name] = max(values)
    return {**out, "samples": len(telemetry)} if out else None


def gauges_and_counters(telemetry: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """What the target told beside memory: peak and mean of each gauge, and the machine's load at both ends.

    Growing counters (`…_total`) become their growth between the first and the last sample.
    """
    if not telemetry:
        return None
    out: dict[str, Any] = {}
    for name in GAUGES:
        values = [sample[name] for sample in telemetry if sample.get(name) is not None]
        if values:
            out[f"{name}_peak"] = max(values)
            out[f"{name}_mean"] = math.fsum(values) / len(values)
    load = [sample["load_1m"] for sample in telemetry if sample.get("load_1m") is not None]
    if load:
        out["load_1m_before"], out["load_1m_after"] = load[0], load[-1]
    for name in sorted({name for sample in telemetry for name in sample if name.endswith("_total")}):
        values = [sample[name] for sample in telemetry if sample.get(name) is not None]
        if values[-1] >= values[0]:  # else the server was started again, and nothing can be said
            out[name.removesuffix("_total")] = values[-1] - values[0]
    return out or None
