"""Resources around a measurement: memory, processors, accelerators, and what servers tell of themselves.

A sample is one flat mapping; what is not known is absent, never 0. `*_total` only ever grow. Keys:

| key | unit | from |
|---|---|---|
| `at_ms` | since the start of the load | whoever samples |
| `weights_bytes` `kv_pool_bytes` `kv_used_bytes` `buffers_bytes` | bytes (M17) | target |
| `rss_bytes` | bytes resident, the engine's process tree | target or host |
| `kv_usage` | share of the KV pool, 0–1 | target |
| `running` `waiting` | requests | target |
| `preemptions_total` `aborted_total` | requests | target |
| `prefix_cache_queries_total` `prefix_cache_hits_total` | tokens | target |
| `system_memory_bytes` `system_memory_available_bytes` | bytes | host |
| `cpu_share` `cpu_count` `load_1m` | share of all cores 0–1; cores; runnable processes | host |
| `gpu_utilisation` | share 0–1, the busiest device | NVML |
| `gpu_memory_used_bytes` `gpu_memory_bytes` `gpu_power_w` | bytes; W | NVML |
"""

from inference.telemetry.gpu import GpuSampler
from inference.telemetry.host import HostSampler
from inference.telemetry.prometheus import Family, counter_delta, histogram_mean, parse, server_metrics

__all__ = [
    "Family",
    "GpuSampler",
    "HostSampler",
    "counter_delta",
    "histogram_mean",
    "parse",
    "server_metrics",
]
