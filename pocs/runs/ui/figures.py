"""The figures of a run as its page shows them: tiles, percentiles by phase, outcomes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from pocs.runs.choices import Outcome
from pocs.runs.endpoint_wording import bounds_text, source_name

#: below this many samples a p99 is the largest value under another name
THIN_P99_BELOW = 100


@dataclass(frozen=True)
class PercentileRow:
    """One line of the table of percentiles; times in ms, None where nothing was observed."""

    field: str
    label: str
    n: int
    mean: float | None
    p50: float | None
    p90: float | None
    p95: float | None
    p99: float | None
    max: float | None

    @property
    def thin(self) -> bool:
        """Whether there are too few samples for a p99."""
        return self.n < THIN_P99_BELOW


def phase_names() -> dict[str, str]:
    """Summary field -> name of the distribution, in the order of the chain a request passes."""
    return {
        "queue_wait_ms": _("Queue wait"),
        "prefill_ms": _("Prefill"),
        "ttft_ms": _("Time to first token (TTFT)"),
        "ttfv_ms": _("First visible output (TTFV)"),
        "decode_ms": _("Decode"),
        "tpot_ms": _("Time per output token (TPOT)"),
        "itl_ms": _("Gap between reads (ITL)"),
        "e2e_ms": _("End to end"),
        "dispatch_delay_ms": _("Dispatch delay of the client"),
        "release_ms": _("Release of the cache blocks"),
    }


def percentile_rows(summary: Mapping[str, Any]) -> list[PercentileRow]:
    """The distributions that the summary holds; one that was never observed is a row without figures."""
    rows = []
    for field, label in phase_names().items():
        found = summary.get(field)
        if found is None and field not in summary:
            continue
        found = found or {}
        rows.append(
            PercentileRow(
                field=field,
                label=label,
                n=int(found.get("n") or 0),
                **{name: found.get(name) for name in ("mean", "p50", "p90", "p95", "p99", "max")},
            )
        )
    return rows


@dataclass(frozen=True)
class OutcomeRow:
    """How many requests ended in one way, and their share of all attempted."""

    outcome: str
    label: str
    count: int
    share: float | None


def outcome_rows(summary: Mapping[str, Any]) -> list[OutcomeRow]:
    """Every outcome that occurred, successes first, with its share of all attempted."""
    requests = summary.get("requests") or {}
    attempted = attempted_of(summary)
    rows = []
    for outcome in Outcome:
        count = requests.get(outcome.value) or 0
        if count or outcome == Outcome.SUCCESS:
            share = count / attempted if attempted else None
            rows.append(OutcomeRow(outcome.value, str(outcome.label), count, share))
    return rows


@dataclass(frozen=True)
class TilePart:
    """One number of a tile: its key in the live samples and what the stored summary says."""

    key: str
    value: float | None


@dataclass(frozen=True)
class Tile:
    """One figure with its unit and its n; `kind` says how numbers are written (as in figures.js)."""

    label: str
    unit: str
    kind: str
    parts: tuple[TilePart, ...]
    note: str = ""
    n: int | None = None
    counted: bool = True


def tiles(summary: Mapping[str, Any] | None) -> list[Tile]:
    """The figures of a run from its summary; without one they are empty and filled live."""
    summary = summary or {}
    requests = summary.get("requests") or {}

    def times(field: str, label: str) -> Tile:
        found = summary.get(field) or {}
        parts = tuple(TilePart(f"{field}_{p}", found.get(p)) for p in ("p50", "p95"))
        return Tile(label, "ms", "ms", parts, note="p50 / p95", n=found.get("n"))

    memory = summary.get("memory") or {}
    return [
        times("ttft_ms", _("TTFT")),
        times("tpot_ms", _("TPOT")),
        _aggregate_queue(summary) or times("queue_wait_ms", _("Queue wait")),
        Tile(
            _("Output throughput"),
            _("tokens/s"),
            "rate",
            (TilePart("output_tokens_per_second", summary.get("output_tokens_per_second")),),
            n=summary.get("succeeded", requests.get("success")),
        ),
        Tile(
            _("Error rate"),
            "%",
            "percent",
            (TilePart("error_rate", error_rate(summary)),),
            n=attempted_of(summary),
        ),
        Tile(
            _("Memory watermark"),
            "MiB",
            "mib",
            (TilePart("memory_watermark_bytes", memory_watermark(memory)),),
            note=_("peak"),
            counted=False,
        ),
        Tile(
            _("Cache hit rate"),
            "%",
            "percent",
            (TilePart("cache_hit_rate", summary.get("cache_hit_rate")),),
            note=_("of prompt tokens"),
            counted=False,
        ),
    ]


def _aggregate_queue(summary: Mapping[str, Any]) -> Tile | None:
    """The queue wait as the server tells it for all requests at once, where no request was told its own.

    Its mean stands beside the bounds of its percentiles (M32) and names who says it.
    """
    if (summary.get("queue_wait_ms") or {}).get("n"):
        return None
    told = ((summary.get("server") or {}).get("times") or {}).get("queue_wait_ms") or {}
    bounds = bounds_text(told)
    if not told.get("n") or not bounds:
        return None
    note = _("mean; %(bounds)s (%(source)s)") % {"bounds": bounds, "source": source_name(told.get("source"))}
    parts = (TilePart("queue_wait_ms_mean", told.get("mean")),)
    return Tile(_("Queue wait"), "ms", "ms", parts, note=note, n=told["n"])


def attempted_of(summary: Mapping[str, Any]) -> int | None:
    """How many requests were attempted in the measured window; None without a summary."""
    if summary.get("attempted") is not None:
        return int(summary["attempted"])
    requests = summary.get("requests")
    if not requests:
        return None
    return requests.get("attempted") or sum(requests.get(value) or 0 for value in Outcome.values)


def error_rate(summary: Mapping[str, Any]) -> float | None:
    """All unsuccessful requests that were not cancelled on purpose ÷ all attempted."""
    if summary.get("error_rate") is not None:
        return float(summary["error_rate"])
    attempted = attempted_of(summary)
    if not attempted:
        return None
    requests = summary["requests"]
    return (attempted - (requests.get("success") or 0) - (requests.get("cancelled") or 0)) / attempted


#: figures of memory that say how much is taken as a whole, the best one first
WATERMARKS = ("gpu_memory_used_peak_bytes", "rss_peak_bytes", "peak_bytes", "kv_used_peak_bytes")


def memory_watermark(memory: Mapping[str, Any]) -> float | None:
    """The highest use of memory that was seen, in bytes: of the device where there is one."""
    return next((float(memory[key]) for key in WATERMARKS if memory.get(key) is not None), None)
