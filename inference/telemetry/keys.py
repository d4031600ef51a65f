"""The keys of a telemetry sample: what each is, in which unit, and who says so."""

from typing import Literal, NamedTuple

Source = Literal["engine", "kernel", "allocator", "NVML", "server aggregate", "client"]


class Key(NamedTuple):
    """One figure of a sample."""

    unit: str
    source: Source  # of the embedded engine; `source_of` knows the other targets
    meaning: str


KEYS: dict[str, Key] = {
    "at_ms": Key("ms", "client", "since the start of the load"),
    # memory (M6, M17, M19)
    "weights_bytes": Key("bytes", "engine", "the model's weights"),
    "buffers_bytes": Key("bytes", "engine", "workspaces that are kept between steps"),
    "draft_bytes": Key("bytes", "engine", "weights and cache of the model that guesses"),
    "kv_pool_bytes": Key("bytes", "engine", "the cache of keys and values as a whole"),
    "kv_used_bytes": Key("bytes", "engine", "of it, in blocks that requests hold"),
    "kv_used_peak_bytes": Key("bytes", "engine", "the most of that since the last cold start"),
    "kv_usage": Key("share", "engine", "blocks held ÷ all blocks"),
    "kv_blocks_total": Key("blocks", "engine", "blocks of the pool"),
    "kv_blocks_used": Key("blocks", "engine", "of these, held by requests"),
    "kv_block_tokens": Key("tokens", "engine", "in a block"),
    "kv_fragmentation": Key("share", "engine", "slots in held blocks without a computed token ÷ their slots"),
    "rss_bytes": Key("bytes", "kernel", "resident set of the engine process"),
    "rss_peak_bytes": Key("bytes", "kernel", "the most of that since the last cold start"),
    "device_allocated_bytes": Key("bytes", "allocator", "of the accelerator, in tensors of the engine"),
    "device_allocated_peak_bytes": Key("bytes", "allocator", "the most of that"),
    "device_reserved_bytes": Key("bytes", "allocator", "of the accelerator, taken by the engine process"),
    "device_free_bytes": Key("bytes", "allocator", "of the accelerator, free for anybody"),
    "device_memory_bytes": Key("bytes", "allocator", "of the accelerator as a whole"),
    # work (M7, M8, M14, M16, M18)
    "running": Key("requests", "engine", "in the batch"),
    "waiting": Key("requests", "engine", "accepted or preempted, without a place in the batch"),
    "oldest_waiting_ms": Key("ms", "engine", "how long the first of these has waited"),
    "batch_phase": Key("", "engine", "of the step that runs: prefill, decode or mixed"),
    "batch_sequences": Key("sequences", "engine", "in that step"),
    "batch_tokens": Key("tokens", "engine", "in that step"),
    "batch_prefill_tokens": Key("tokens", "engine", "of these, of prompts and of what is computed again"),
    "release_n": Key("requests", "engine", "whose blocks became free within the last minute, 1,024 at most"),
    "release_ms_p50": Key("ms", "engine", "their time from the end to all blocks free, median"),
    "release_ms_p95": Key("ms", "engine", "the same, 95th percentile"),
    "release_ms_max": Key("ms", "engine", "the same, longest"),
    "gauges_stale_ms": Key("ms", "engine", "for so long no step has moved the figures of batch and cache"),
    "preemptions_total": Key("requests", "engine", "put out of the batch for want of blocks"),
    "aborted_total": Key("requests", "engine", "whose client left"),
    "oom_total": Key("steps", "engine", "that ended for want of memory"),
    "prefix_cache_queries_total": Key("tokens", "engine", "of prompts, at their first admission"),
    "prefix_cache_hits_total": Key("tokens", "engine", "of these, found in the cache"),
    "prompt_tokens_total": Key("tokens", "engine", "of prompts, as the server counts them"),
    "generation_tokens_total": Key("tokens", "engine", "of answers, as the server counts them"),
    "finished_requests_total": Key("requests", "engine", "that ended at the server"),
    "refused_requests_total": Key("requests", "engine", "that the server did not take"),
    "accepted_requests_total": Key("requests", "engine", "that the server took"),
    "failed_requests_total": Key("requests", "engine", "that failed at the server"),
    "steps_total": Key("steps", "engine", "of the model"),
    "drafted_tokens_total": Key("tokens", "engine", "guessed by speculation"),
    "accepted_tokens_total": Key("tokens", "engine", "of these, right ones"),
    **{
        f"{kind}_{name}_total": Key(unit, "engine", f"{what} of {kind} steps")
        for kind in ("prefill", "decode", "mixed")
        for name, unit, what in (
            ("steps", "steps", "number"),
            ("tokens", "tokens", "tokens computed"),
            ("busy_ms", "ms", "duration"),
            ("device_ms", "ms", "of that, what the accelerator itself took:"),
        )
    },
    "prefill_tokens_mixed_total": Key("tokens", "engine", "of prompts, computed in mixed steps"),
    "decode_tokens_mixed_total": Key("tokens", "engine", "of answers, computed in mixed steps"),
    "device_clock_error_ns": Key("ns", "engine", "how exactly the accelerator's stamps are known"),
    "device_clock_drift_ns": Key("ns", "engine", "its clock against the host's, over the last second"),
    # the machine (M5, M25)
    "system_memory_bytes": Key("bytes", "kernel", "the machine's memory"),
    "system_memory_available_bytes": Key("bytes", "kernel", "of it, what can still be taken"),
    "cpu_share": Key("share", "kernel", "of all cores, by everybody, since the previous sample"),
    "process_cpu_share": Key("share", "kernel", "of all cores, by the engine process, the same"),
    "cpu_count": Key("cores", "kernel", "cores of the machine"),
    "load_1m": Key("processes", "kernel", "load average over a minute"),
    "gpu_utilisation": Key("share", "NVML", "the busiest device's"),
    "gpu_memory_used_bytes": Key("bytes", "NVML", "of all devices, by everybody"),
    "gpu_memory_bytes": Key("bytes", "NVML", "memory of all devices"),
    "gpu_power_w": Key("W", "NVML", "of all devices"),
    "gpu_xid_error": Key("", "NVML", "number of the driver's last error, 0 for none"),
    "gpu_temperature_c": Key("°C", "NVML", "the hottest device's"),
}


def source_of(key: str, target_kind: str) -> Source:
    """Who says a figure: of an endpoint its own metrics do, but for those of this machine."""
    found = KEYS[key].source
    return "server aggregate" if found == "engine" and target_kind == "http" else found
