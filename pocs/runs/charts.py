"""Vega-Lite specs of the charts of runs as plain dicts: drawn by the browser, and into the PDF.

Every time series reads the data set `live` (one row a sample, time in `at_ms`) and shares the time
axis `0 … span` (seconds), so that the panels of one run line up and one crosshair fits all.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"

#: Okabe-Ito colours: told apart with any colour vision, on light and dark ground
PHASE_COLOURS = {
    "dispatch_delay": "#8d97a5",
    "throttled": "#b35900",
    "network": "#56b4e9",
    "queue_wait": "#e69f00",
    "prefill": "#0072b2",
    "decode": "#009e73",
    "release": "#cc79a7",
    "unexplained": "#6b7480",
}
SERIES_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00")
SERIES_DASHES = ([1, 0], [5, 3], [2, 2], [8, 3], [1, 3])

#: room for the y axis and at the right, in px: the same in every panel so that times line up
AXIS_WIDTH = 52
RIGHT_PAD = 12


PHASE_LABELS = {
    "dispatch_delay": gettext_lazy("dispatch delay"),
    "throttled": gettext_lazy("throttled"),
    "network": gettext_lazy("network"),
    "queue_wait": gettext_lazy("queue wait"),
    "prefill": gettext_lazy("prefill"),
    "decode": gettext_lazy("decode"),
    "release": gettext_lazy("release"),
    "unexplained": gettext_lazy("unexplained"),
}


def phase_label(phase: str) -> str:
    """The phase's name in the user's language; unknown phases keep their field name."""
    return str(PHASE_LABELS.get(phase, phase))


@dataclass(frozen=True)
class Series:
    """One line of a panel: its field in the samples and its name."""

    field: str
    label: str


@dataclass(frozen=True)
class Panel:
    """One time series chart: what it shows, its unit, its lines, and what values are multiplied by."""

    key: str
    title: str
    unit: str
    series: tuple[Series, ...]
    factor: float = 1.0
    maximum: float | None = None
    area: bool = False
    decimals: int = 0

    def as_json(self) -> dict[str, Any]:
        """What the page's script needs to draw and to read out the panel."""
        return {
            "key": self.key,
            "title": self.title,
            "unit": self.unit,
            "factor": self.factor,
            "decimals": self.decimals,
            "series": [{"field": line.field, "label": line.label} for line in self.series],
        }


def panels() -> list[Panel]:
    """The time series of a run, in page order, in the user's language."""

    def percentiles(field: str) -> tuple[Series, ...]:
        return (Series(f"{field}_p50", "p50"), Series(f"{field}_p95", "p95"))

    return [
        Panel("ttft", _("Time to first token (TTFT)"), "ms", percentiles("ttft_ms")),
        Panel("queue", _("Queue wait"), "ms", percentiles("queue_wait_ms")),
        Panel("tpot", _("Time per output token (TPOT)"), "ms", percentiles("tpot_ms"), decimals=1),
        Panel(
            "throughput",
            _("Output throughput"),
            _("tokens/s"),
            (Series("output_tokens_per_second", _("output tokens/s")),),
            area=True,
            decimals=1,
        ),
        Panel(
            "load",
            _("Requests in the target"),
            _("requests"),
            (Series("running", _("running")), Series("waiting", _("waiting"))),
        ),
        Panel("errors", _("Error rate"), "%", (Series("error_rate", _("error rate")),), 100, 100, decimals=1),
        Panel(
            "memory",
            _("Memory watermark"),
            "MiB",
            (
                Series("memory_rss_bytes", _("resident")),
                Series("memory_weights_bytes", _("weights")),
                Series("memory_kv_pool_bytes", _("KV pool")),
                Series("memory_kv_used_bytes", _("KV in use")),
                Series("memory_gpu_memory_used_bytes", _("GPU memory")),
            ),
            1 / 2**20,
        ),
        Panel(
            "cache",
            _("Prefix-cache hit rate"),
            "%",
            (Series("cache_hit_rate", _("hit rate")),),
            100,
            100,
            decimals=1,
        ),
    ]


def series_spec(
    panel: Panel,
    rows: Iterable[Mapping[str, Any]] = (),
    *,
    span_s: float = 10.0,
    width: int | str = "container",
    height: int = 96,
    legend: bool = False,
) -> dict[str, Any]:
    """The spec of one panel over `rows`; `span_s` is the length of the time axis in seconds.

    `legend` adds the names of the lines inside the chart, for the report; the page has them above it.
    """
    labels = [line.label for line in panel.series]
    names = {line.field: line.label for line in panel.series}
    count = len(labels)
    scale_y: dict[str, Any] = {"zero": True, "nice": True}
    if panel.maximum is not None:
        scale_y = {"domain": [0, panel.maximum]}
    several = count > 1
    # a sample between two absent ones has no line: the point keeps it visible
    point = {"size": 10, "filled": True}
    mark: dict[str, Any] = {"type": "line", "strokeWidth": 1.6, "interpolate": "linear", "point": point}
    if panel.area and not several:
        mark = {"type": "area", "line": {"strokeWidth": 1.6}, "opacity": 0.22, "interpolate": "linear"}
    encoding: dict[str, Any] = {
        "x": time_axis(),
        "y": {"field": "value", "type": "quantitative", "scale": scale_y, "axis": value_axis()},
    }
    if several:
        shown = {"orient": "top", "title": None} if legend else None
        encoding["color"] = {
            "field": "line",
            "type": "nominal",
            "scale": {"domain": labels, "range": list(SERIES_COLOURS[:count])},
            "legend": shown,
        }
        encoding["strokeDash"] = {
            "field": "line",
            "type": "nominal",
            "scale": {"domain": labels, "range": [list(dash) for dash in SERIES_DASHES[:count]]},
            "legend": shown,
        }
    else:
        mark["color"] = SERIES_COLOURS[0]
    return {
        "$schema": SCHEMA,
        "description": f"{panel.title} ({panel.unit})",
        "width": width,
        "height": height,
        **frame(),
        "params": [{"name": "span", "value": span_s}],
        "data": {"name": "live", "values": list(rows)},
        "transform": [
            {"calculate": "datum.at_ms / 1000", "as": "at_s"},
            {"fold": list(names), "as": ["field", "raw"]},
            {"calculate": f"isValid(datum.raw) ? datum.raw * {panel.factor!r} : null", "as": "value"},
            {"lookup": "field", "from": {"data": names_table(names), "key": "field", "fields": ["line"]}},
        ],
        "mark": mark,
        "encoding": encoding,
    }


def names_table(names: Mapping[str, str]) -> dict[str, Any]:
    """An inline data set that gives each field its name."""
    return {"values": [{"field": field, "line": label} for field, label in names.items()]}


def waterfall_spec(
    rows: Iterable[Mapping[str, Any]] = (),
    *,
    span_s: float = 10.0,
    width: int | str = "container",
    height: int = 220,
    legend: bool = False,
) -> dict[str, Any]:
    """Every request's phases on the time axis of the run.

    `rows`: one a segment, `{"row", "phase", "from_ms", "to_ms"}`, `row` counting requests from 0
    in the order in which they were sent.
    """
    phases = list(PHASE_COLOURS)
    labels = [phase_label(phase) for phase in phases]
    return {
        "$schema": SCHEMA,
        "description": _("Phases of each request over time"),
        "width": width,
        "height": height,
        **frame(),
        "params": [{"name": "span", "value": span_s}],
        "data": {"name": "live", "values": list(rows)},
        "transform": [
            {"calculate": "datum.from_ms / 1000", "as": "from_s"},
            {"calculate": "datum.to_ms / 1000", "as": "to_s"},
            {"calculate": "datum.row + 0.86", "as": "row_end"},
            {
                "lookup": "phase",
                "from": {
                    "data": {
                        "values": [
                            {"phase": phase, "name": name} for phase, name in zip(phases, labels, strict=True)
                        ]
                    },
                    "key": "phase",
                    "fields": ["name"],
                },
            },
        ],
        "mark": {"type": "rect"},
        "encoding": {
            "x": {**time_axis(), "field": "from_s"},
            "x2": {"field": "to_s"},
            "y": {
                "field": "row",
                "type": "quantitative",
                "scale": {"reverse": True, "nice": False, "zero": True},
                "axis": {**value_axis(), "tickMinStep": 1, "grid": False},
            },
            "y2": {"field": "row_end"},
            "color": {
                "field": "name",
                "type": "nominal",
                "scale": {"domain": labels, "range": list(PHASE_COLOURS.values())},
                "legend": {"orient": "top", "title": None, "columns": 6} if legend else None,
            },
        },
    }


def shares_spec(shares: Mapping[str, float], *, width: int = 480, height: int = 26) -> dict[str, Any]:
    """One bar of the shares of phases (0 … 1) in the time of the requests, for the report."""
    rows = [
        {"phase": phase_label(phase), "share": share, "order": place}
        for place, (phase, share) in enumerate(shares.items())
    ]
    return {
        "$schema": SCHEMA,
        "width": width,
        "height": height,
        "data": {"values": rows},
        "mark": {"type": "bar"},
        "encoding": {
            "x": {
                "field": "share",
                "type": "quantitative",
                "stack": "normalize",
                "axis": {"format": ".0%", "title": None, "tickCount": 5},
            },
            "order": {"field": "order", "type": "quantitative"},
            "color": {
                "field": "phase",
                "type": "nominal",
                "scale": {
                    "domain": [phase_label(phase) for phase in shares],
                    "range": [PHASE_COLOURS.get(phase, "#6b7480") for phase in shares],
                },
                "legend": {"orient": "bottom", "title": None, "columns": 4},
            },
        },
    }


def time_axis() -> dict[str, Any]:
    """The shared x axis: seconds since the start of the run, from 0 to the parameter `span`."""
    return {
        "field": "at_s",
        "type": "quantitative",
        "scale": {"domainMin": 0, "domainMax": {"expr": "span"}, "nice": False, "clamp": True},
        "axis": {
            "title": None,
            "grid": True,
            "tickCount": 6,
            "labelExpr": "datum.label + ' s'",
            "labelFlush": True,
        },
    }


def value_axis() -> dict[str, Any]:
    """The y axis of a panel, always of the same width."""
    return {
        "title": None,
        "tickCount": 3,
        "minExtent": AXIS_WIDTH,
        "maxExtent": AXIS_WIDTH,
        "labelLimit": AXIS_WIDTH - 6,
        "format": "~s",
    }


def frame() -> dict[str, Any]:
    """Padding and sizing shared by the panels: the time axes of all of them line up."""
    return {
        "padding": {"left": 0, "right": RIGHT_PAD, "top": 6, "bottom": 2},
        "autosize": {"type": "fit-x", "contains": "padding"},
        "background": None,
    }
