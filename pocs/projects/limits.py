"""Limits of a scenario as data: one figure, its percentile where it is a time, and its bound.

Stored as `{"metric", "percentile", "max"}`, or with `min` for figures that must not fall below; `bound` with
`unit` and `direction` is accepted and means the same. `inference.criteria` judges them.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from pocs.projects.scenario_fields import Reader

PERCENTILES = ("p50", "p90", "p95", "p99", "max")
#: times a limit may be put on: each belongs to one phase or names the boundary between two
LIMIT_METRICS = (
    "ttft_ms",
    "ttfv_ms",
    "tpot_ms",
    "itl_ms",
    "max_gap_ms",
    "queue_wait_ms",
    "prefill_ms",
    "decode_ms",
    "e2e_ms",
)
#: figures of the whole run -> (unit, whether it is to stay below its bound): they have no percentile
RATE_METRICS = {
    "error_rate": ("share", "max"),
    "kv_usage_peak": ("share", "max"),
    "cache_hit_rate": ("share", "min"),
    "checks_pass_rate": ("share", "min"),
    "output_tokens_per_second": ("tokens/s", "min"),
    "requests_per_second": ("requests/s", "min"),
}
KNOWN = (*LIMIT_METRICS, *RATE_METRICS)
#: unit as written -> (the unit it is kept in, factor)
UNITS = {
    "ms": ("ms", 1.0),
    "s": ("ms", 1000.0),
    "share": ("share", 1.0),
    "%": ("share", 0.01),
    "tokens/s": ("tokens/s", 1.0),
    "requests/s": ("requests/s", 1.0),
}
BOUND_MAX = 1e9
_LINE = re.compile(
    r"(?:(?P<percentile>\w+)\s+)?(?P<metric>\w+)\s*(?P<sign><=|≤|<|>=|≥|>)\s*"
    r"(?P<bound>[\d.]+)\s*(?P<unit>%|\w+(?:/s)?)?"
)


@dataclass(frozen=True, kw_only=True)
class Limit:
    """A bound on one figure: p95 of ttft_ms ≤ 800 (`max`), or output_tokens_per_second ≥ 100 (`min`)."""

    metric: str
    percentile: str | None = None
    max: float | None = None
    min: float | None = None

    def as_json(self) -> dict[str, Any]:
        """What is given of it: the form in which limits have always been stored."""
        found = {"metric": self.metric, "percentile": self.percentile, "max": self.max, "min": self.min}
        return {name: value for name, value in found.items() if value is not None}

    def __str__(self) -> str:
        """The line in which it is typed."""
        bound = f">= {self.min:g}" if self.min is not None else f"<= {self.max:g}"
        return f"{self.percentile} {self.metric} {bound}" if self.percentile else f"{self.metric} {bound}"


def read_limit(read: Reader) -> Limit:
    """A limit from its object; refused without percentile (case 14), phase or bound."""
    metric, percentile = read.taken("metric"), read.taken("percentile", None)
    if metric not in KNOWN:
        read.limit_without_phase(metric, KNOWN)
    elif metric in RATE_METRICS and percentile is not None:
        read.wrong("percentile", "no_percentile", _("This figure is of the whole run and has no percentile."))
    if metric not in RATE_METRICS and percentile not in PERCENTILES:
        read.limit_without_percentile(percentile, PERCENTILES)
    name = "bound" if "bound" in read.data else "min" if "min" in read.data else "max"
    direction, factor = _direction(read, metric, name), _factor(read, metric)
    bound = read.number(name, 0, BOUND_MAX, above=name != "min" and metric not in RATE_METRICS)
    value = None if bound is None else bound * factor
    return Limit(
        metric=str(metric),
        percentile=percentile,
        max=value if direction == "max" else None,
        min=value if direction == "min" else None,
    )


def _direction(read: Reader, metric: Any, name: str) -> str:
    usual = RATE_METRICS.get(metric, ("ms", "max"))[1]
    if name != "bound":
        return name
    return str(read.choice("direction", ("max", "min"), default=usual))


def _factor(read: Reader, metric: Any) -> float:
    """What turns the given unit into the one that the figure is kept in."""
    unit = read.choice("unit", tuple(UNITS), default=None)
    own = RATE_METRICS.get(metric, ("ms", "max"))[0]
    if unit is None or unit not in UNITS:
        return 1.0
    if UNITS[unit][0] != own:
        text = _("This figure is measured in %(own)s, not in %(unit)s.")
        read.wrong("unit", "unit", text % {"own": own, "unit": unit})
    return UNITS[unit][1]


def limit_of_line(line: str) -> Any:
    """A line like `p95 ttft_ms <= 800` or `error_rate <= 1 %` as an object; any other line as it is.

    A unit may follow the bound; what the line names is judged by `read_limit`.
    """
    match = _LINE.fullmatch(line)
    if match is None or match["metric"] not in KNOWN or match["unit"] not in (None, *UNITS):
        return line
    try:
        bound = float(match["bound"])
    except ValueError:
        return line
    name = "max" if match["sign"] in ("<=", "≤", "<") else "min"
    found = {"metric": match["metric"], "percentile": match["percentile"], name: bound, "unit": match["unit"]}
    return {name: value for name, value in found.items() if value is not None}


def only_total(limits: Sequence[Limit]) -> bool:
    """Whether the only times that are bound are end to end: they guide no phase (M32)."""
    times = [limit for limit in limits if limit.metric in LIMIT_METRICS]
    return bool(times) and all(limit.metric == "e2e_ms" for limit in times)
