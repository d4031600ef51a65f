"""Reads a server's `/metrics` along a run: what each sample says, and what grew in the run's own window.

Values since the server's start are never shown: histograms and counters count by their growth between
the first and the last scrape of the window. A counter that falls says that the server was started again;
the window is then split there, and what grew between the last scrape and the restart is not known.
"""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from inference.targets.dialects import Dialect
from inference.targets.dialects.base import Metric
from inference.telemetry.prometheus import Families, Family, parse

#: gauges that say something else than 0 prove nothing once the engine has made no step for so long
STALE_AFTER_S = 1.0
_NS_PER_MS = 1_000_000
#: keys of the dialect that are gauges of the engine's state, not of the machine
_STATE = ("running", "waiting", "kv_usage")
QUERIES, HITS = "prefix_cache_queries_total", "prefix_cache_hits_total"
MAX_PROBLEMS = 5


@dataclass(frozen=True)
class Growth:
    """A growing figure at one scrape: sum and count of a duration, or the count of a counter alone."""

    family: str
    count: float | None
    total: float | None = None  # of a duration, as told (seconds)
    buckets: Mapping[float, float] = field(default_factory=dict)
    by: Mapping[str, float] = field(default_factory=dict)  # a counter by the label that says outcomes

    def fell_below(self, before: "Growth") -> bool:
        return any(
            now is not None and then is not None and now < then
            for now, then in ((self.count, before.count), (self.total, before.total))
        )

    def since(self, before: "Growth | None") -> "Growth":
        """What grew since `before`; everything where nothing was before (a server that has just started)."""
        if before is None:
            return self
        return Growth(
            self.family,
            _minus(self.count, before.count),
            _minus(self.total, before.total),
            {bound: count - before.buckets.get(bound, 0.0) for bound, count in self.buckets.items()},
            {name: count - before.by.get(name, 0.0) for name, count in self.by.items()},
        )

    def plus(self, other: "Growth | None") -> "Growth":
        if other is None:
            return self
        bounds, names = self.buckets.keys() | other.buckets.keys(), self.by.keys() | other.by.keys()
        return Growth(
            self.family,
            _plus(self.count, other.count),
            _plus(self.total, other.total),
            {bound: self.buckets.get(bound, 0.0) + other.buckets.get(bound, 0.0) for bound in bounds},
            {name: self.by.get(name, 0.0) + other.by.get(name, 0.0) for name in names},
        )


@dataclass(frozen=True)
class Scrape:
    """What one reading of `/metrics` says in our keys."""

    at_ns: int
    gauges: Mapping[str, float]
    growths: Mapping[str, Growth]
    constants: Mapping[str, Any]
    families: Mapping[str, str]  # our key → the family that was read

    def progress_of(self, dialect: Dialect) -> tuple[float | None, ...]:
        """What moves with every step of the engine."""
        told = [self.growths.get(key) for key in dialect.progress]
        return tuple(None if growth is None else growth.count for growth in told)


def read(text: str, dialect: Dialect, *, at_ns: int | None = None, whole: bool = True) -> Scrape:
    """One scrape through a dialect. Without `whole`, only what a sample needs is parsed: no buckets."""
    families = parse(text, None if whole else wanted_families(dialect))
    gauges, growths, names = {}, {}, {}
    for key, metric in dialect.gauges.items():
        found = _told(families, metric)
        value = None if found is None else _gauge(found, metric)
        if found is not None and value is not None:
            gauges[key], names[key] = value * metric.scale, found.name
    for key, metric in (*dialect.counters.items(), *dialect.durations.items()):
        found = _told(families, metric)
        growth = None if found is None else _growth(found, metric, dialect.outcome_label, key)
        if found is not None and growth is not None:
            growths[key], names[key] = growth, found.name
    constants = dialect.constants(families) if whole else {}
    return Scrape(time.monotonic_ns() if at_ns is None else at_ns, gauges, growths, constants, names)


def wanted_families(dialect: Dialect) -> frozenset[str]:
    """The names of all families the dialect knows."""
    metrics = (*dialect.gauges.values(), *dialect.counters.values(), *dialect.durations.values())
    return frozenset(name for metric in metrics for name in metric.names)


def _told(families: Families, metric: Metric) -> Family | None:
    """The family of the first name that is told; a counter's may be declared with or without `_total`."""
    for name in metric.names:
        for candidate in (name, f"{name}_total"):
            family = families.get(candidate)
            if family is not None and family.samples:
                return family
    return None


def _gauge(family: Family, metric: Metric) -> float | None:
    if family.type in ("histogram", "summary", "counter"):
        return None  # the name says gauge, the TYPE line decides
    values = family.values(**dict(metric.labels))
    if not values:
        return None
    return max(values) if metric.combine == "max" else sum(values)


def _growth(family: Family, metric: Metric, outcome_label: str, key: str) -> Growth | None:
    labels = dict(metric.labels)
    if family.type == "gauge":
        return None
    if family.type in ("histogram", "summary") or family.values("_count", **labels):
        count, total = family.total("_count", **labels), family.total("_sum", **labels)
        return None if count is None else Growth(family.name, count, total, family.buckets(**labels))
    told = family.total(family.counts_up, **labels)
    if told is None:
        return None
    if key.endswith("_ms"):  # a counter of seconds: how many requests they belong to is not told
        return Growth(family.name, None, told)
    by = family.by_label(outcome_label, family.counts_up) if outcome_label else {}
    return Growth(family.name, told, by=by)


class ServerWindow:
    """The window of one run: fed with scrapes in the order of time, it says what grew and what is stale."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.problems: dict[str, int] = {}  # sentence → how often
        self.scrapes = self.failed = 0
        self.slowest_ms, self.largest_bytes = 0.0, 0
        self.begin()

    def begin(self) -> None:
        """The window starts now: the next scrape is its base."""
        self._base: Scrape | None = None
        self._last: Scrape | None = None
        self._from_ns: int | None = None
        self._before: dict[str, Growth] = {}  # what grew before each restart of the server
        self.resets: list[dict[str, Any]] = []
        self._moved_ns: int | None = None
        self._constants: dict[str, Any] = {}

    @property
    def last(self) -> Scrape | None:
        return self._last

    def add(self, scrape: Scrape, *, took_ms: float = 0.0, size_bytes: int = 0) -> dict[str, Any]:
        """Take one scrape; the keys of a telemetry sample, with `gauges_stale_ms` where gauges are frozen."""
        self.scrapes += 1
        self.slowest_ms = max(self.slowest_ms, took_ms)
        self.largest_bytes = max(self.largest_bytes, size_bytes)
        self._constants |= scrape.constants
        last = self._last
        if self._base is None:
            self._base, self._from_ns, self._moved_ns = scrape, scrape.at_ns, scrape.at_ns
        elif last is not None:
            self._heed_a_restart(last, scrape)
            if scrape.progress_of(self.dialect) != last.progress_of(self.dialect):
                self._moved_ns = scrape.at_ns
        self._last = scrape
        return self._sample(scrape)

    def failed_once(self, problem: str) -> None:
        """A scrape that gave nothing, and why."""
        self.failed += 1
        if problem in self.problems or len(self.problems) < MAX_PROBLEMS:
            self.problems[problem] = self.problems.get(problem, 0) + 1

    def _heed_a_restart(self, last: Scrape, scrape: Scrape) -> None:
        fallen = [
            growth.family
            for key, growth in scrape.growths.items()
            if key in last.growths and growth.fell_below(last.growths[key])
        ]
        if not fallen or self._base is None:
            return
        for key, growth in last.growths.items():
            self._before[key] = growth.since(self._base.growths.get(key)).plus(self._before.get(key))
        self.resets.append({"at_ns": scrape.at_ns, "after_ns": last.at_ns, "family": fallen[0]})
        self._base = Scrape(scrape.at_ns, {}, {}, {}, {})  # the counters began again at 0

    def _sample(self, scrape: Scrape) -> dict[str, Any]:
        found: dict[str, Any] = dict(scrape.gauges)
        for key, growth in scrape.growths.items():
            if key.endswith("_total") and growth.count is not None:
                found[key] = growth.count
        if self.dialect.queries_exclude_hits and QUERIES in found:
            found[QUERIES] += found.get(HITS, 0.0)
        if (pool := self._constants.get("kv_pool_bytes")) is not None:
            found["kv_pool_bytes"] = pool
            if "kv_usage" in found:
                found["kv_used_bytes"] = round(pool * found["kv_usage"])
        for name in ("kv_block_tokens", "kv_blocks_total"):
            if name in self._constants:
                found[name] = self._constants[name]
        stale_ms = self.stale_ms(scrape)
        if stale_ms is not None:
            found["gauges_stale_ms"] = stale_ms
        return found

    def stale_ms(self, scrape: Scrape | None = None) -> float | None:
        """For how long the gauges have said the same beside an engine that makes no step; None: they live.

        Gauges move only at the end of a step. A value of 0 beside a still engine claims nothing.
        """
        scrape = self._last if scrape is None else scrape
        if scrape is None or self._moved_ns is None or not any(scrape.gauges.get(key) for key in _STATE):
            return None
        if all(value is None for value in scrape.progress_of(self.dialect)):
            return None  # this server tells nothing by which standing still could be seen
        still_ms = (scrape.at_ns - self._moved_ns) / _NS_PER_MS
        return still_ms if still_ms >= STALE_AFTER_S * 1000 else None

    def observed(self) -> dict[str, Any] | None:
        """What the window holds; None where the server's metrics were never read.

        `{"from_ns", "to_ns", "scrapes", "failed", "problems", "resets", "times", "counts", "gauges", …}`;
        `times` are in ms, `mean` × `n` being what the server's sum grew by.
        """
        if self._base is None or self._last is None:
            return None
        growths = {
            key: growth.since(self._base.growths.get(key)).plus(self._before.get(key))
            for key, growth in self._last.growths.items()
        }
        if self.dialect.queries_exclude_hits and QUERIES in growths:
            asked, hits = growths[QUERIES], growths.get(HITS)
            growths[QUERIES] = replace(asked, count=_plus(asked.count, hits.count if hits else None))
        times = {
            key: _time_figures(growths[key], metric.scale, with_buckets=not self.resets)
            for key, metric in self.dialect.durations.items()
            if key in growths and key.endswith("_ms")
        }
        counts = {
            key.removesuffix("_total"): _count_figures(growths[key])
            for key in self.dialect.counters
            if key in growths
        }
        return {
            "from_ns": self._from_ns,
            "to_ns": self._last.at_ns,
            "scrapes": self.scrapes,
            "failed": self.failed,
            "slowest_ms": self.slowest_ms,
            "largest_bytes": self.largest_bytes,
            "problems": [{"text": text, "n": n} for text, n in self.problems.items()],
            "resets": list(self.resets),
            "times": times,
            "counts": counts,
            "gauges": dict(self._last.gauges),
            "families": dict(self._last.families),
            "constants": dict(self._constants),
            "populations": list(self.dialect.populations),
            "stale_ms": self.stale_ms(),
        }


def _time_figures(growth: Growth, scale: float, *, with_buckets: bool) -> dict[str, Any]:
    """Δsum ÷ Δcount, and between which bucket bounds the percentiles lie; all in ms.

    The buckets are read at both ends of the window only, so a restart between them leaves none.
    """
    total = None if growth.total is None else growth.total * scale
    n = None if growth.count is None else round(growth.count)
    found: dict[str, Any] = {"n": n, "sum": total, "mean": total / n if n and total is not None else None}
    for p in (50, 95):
        bounds = _bucket_of(growth.buckets, p, scale) if n and with_buckets else (None, None)
        found[f"p{p}_above"], found[f"p{p}_at_most"] = bounds
    return {**found, "family": growth.family, "source": "server aggregate"}


def _bucket_of(buckets: Mapping[float, float], p: float, scale: float) -> tuple[float | None, float | None]:
    """The bounds of the bucket that holds the p-th percentile; None where it has no bound."""
    bounds = sorted(buckets)
    whole = buckets[bounds[-1]] if bounds else 0.0
    if not whole:
        return None, None
    below = 0.0
    for bound in bounds:
        if buckets[bound] >= whole * p / 100:
            return below * scale, None if math.isinf(bound) else bound * scale
        below = bound
    return None, None


def _count_figures(growth: Growth) -> dict[str, Any]:
    found: dict[str, Any] = {
        "value": None if growth.count is None else growth.count,
        "family": growth.family,
        "source": "server aggregate",
    }
    by = {name: round(value) for name, value in growth.by.items() if value}
    return found | {"by": by} if by else found


def _minus(now: float | None, then: float | None) -> float | None:
    return None if now is None else now - (then or 0.0)


def _plus(one: float | None, other: float | None) -> float | None:
    return None if one is None and other is None else (one or 0.0) + (other or 0.0)
