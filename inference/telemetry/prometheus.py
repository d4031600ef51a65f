"""What servers say on `/metrics`: the text format, and vLLM's, SGLang's, TGI's and llama.cpp's names.

Names change between versions: the current name is preferred, the old one accepted. The TYPE line
decides what a family is, not its name.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

_SAMPLE = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{.*\})?\s+(\S+)")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"')
_ESCAPES = {"\\n": "\n", '\\"': '"', "\\\\": "\\"}
Labels = tuple[tuple[str, str], ...]


@dataclass
class Family:
    """One metric family: `samples` are (name with suffix, labels, value) in the order told."""

    name: str
    type: str = "untyped"
    samples: list[tuple[str, Labels, float]] = field(default_factory=list)

    def total(self, suffix: str = "", **labels: str) -> float | None:
        """Sum over all label sets that match `labels`, of the samples `name + suffix`; None if absent."""
        wanted = set(labels.items())
        values = [
            value for name, has, value in self.samples if name == self.name + suffix and wanted <= set(has)
        ]
        return sum(values) if values else None


def parse(text: str) -> dict[str, Family]:
    """Families by name; lines that are no samples and values that are not finite are passed over."""
    families: dict[str, Family] = {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            parts = line.split()
            if len(parts) >= 4:
                families.setdefault(parts[2], Family(parts[2])).type = parts[3]
            continue
        match = _SAMPLE.match(line)
        if line.startswith("#") or match is None:
            continue
        name, labels, raw = match.groups()
        try:
            value = float(raw)
        except ValueError:
            continue
        if not math.isfinite(value):
            continue
        family = families.get(name) or families.get(_family_name(name, families)) or Family(name)
        families.setdefault(family.name, family).samples.append((name, _labels(labels), value))
    return families


def _family_name(name: str, families: dict[str, Family]) -> str:
    """The declared family that a sample with a suffix belongs to."""
    for suffix in ("_bucket", "_sum", "_count", "_total", "_created"):
        if name.endswith(suffix) and name.removesuffix(suffix) in families:
            return name.removesuffix(suffix)
    return name


def _labels(text: str | None) -> Labels:
    found = _LABEL.findall(text or "")
    return tuple((key, re.sub(r'\\[n"\\]', lambda m: _ESCAPES[m.group()], value)) for key, value in found)


#: our key -> (names in order of preference, kind): gauges are read, counters differ over a window
_GAUGES: dict[str, tuple[str, ...]] = {
    "running": (
        "vllm:num_requests_running",
        "sglang:num_running_reqs",
        "sglang_num_running_reqs",
        "tgi_batch_current_size",
        "llamacpp:requests_processing",
    ),
    "waiting": (
        "vllm:num_requests_waiting",
        "sglang:num_queue_reqs",
        "sglang_num_queue_reqs",
        "tgi_queue_size",
        "llamacpp:requests_deferred",
    ),
    "kv_usage": (
        "vllm:kv_cache_usage_perc",
        "vllm:gpu_cache_usage_perc",
        "sglang:token_usage",
        "sglang_token_usage",
        "llamacpp:kv_cache_usage_ratio",
    ),
}
_COUNTERS: dict[str, tuple[str, ...]] = {
    "preemptions_total": (
        "vllm:num_preemptions",
        "sglang:num_retracted_requests",
        "sglang_num_retracted_requests",
    ),
    "aborted_total": ("sglang:num_aborted_requests", "sglang_num_aborted_requests"),
    "prefix_cache_queries_total": ("vllm:prefix_cache_queries", "vllm:gpu_prefix_cache_queries"),
    "prefix_cache_hits_total": (
        "vllm:prefix_cache_hits",
        "vllm:gpu_prefix_cache_hits",
        "sglang:cached_tokens",
        "sglang_cached_tokens",
    ),
}


def server_metrics(families: dict[str, Family]) -> dict[str, Any]:
    """The target keys of `inference.telemetry` that this server tells; absent where it does not."""
    found: dict[str, Any] = {}
    for key, names in (_GAUGES | _COUNTERS).items():
        value = _first(families, names)
        if value is not None:
            found[key] = value
    return found


def _first(families: dict[str, Family], names: Iterable[str]) -> float | None:
    """The first of the names that is told; a counter's family may be declared with or without `_total`."""
    for name in names:
        for family in (families.get(name), families.get(f"{name}_total")):
            if family is None:
                continue
            for suffix in ("", "_total"):
                if (value := family.total(suffix)) is not None:
                    return value
    return None


def counter_delta(before: float | None, after: float | None) -> float | None:
    """Growth of a counter over a window; None when it was not told at both ends or the server restarted."""
    if before is None or after is None or after < before:
        return None
    return after - before


def histogram_mean(before: Family | None, after: Family | None, **labels: str) -> tuple[float, float] | None:
    """(mean, n) of a histogram over a window as Δsum ÷ Δcount: default buckets are too coarse for phases.

    None when it is no histogram or summary, was restarted, or nothing was counted in the window.
    """
    if before is None or after is None or after.type not in ("histogram", "summary"):
        return None
    total = counter_delta(before.total("_sum", **labels), after.total("_sum", **labels))
    count = counter_delta(before.total("_count", **labels), after.total("_count", **labels))
    if total is None or not count:
        return None
    return total / count, count
