"""The chart of the sheet: for each run the shares of its request time by phase, as a Vega-Lite spec."""

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from pocs.reviews.sheet.content import Figure
from pocs.runs.charts import PHASE_COLOURS, SCHEMA, phase_label

FONT = "Noto Sans SC"
PHASES = ("queue_wait", "prefill", "decode")
OTHER_COLOUR = "#c3c9d2"


#: CSS class of each part on the page
CSS = {
    "queue_wait": "phase-queue",
    "prefill": "phase-prefill",
    "decode": "phase-decode",
    "": "phase-unexplained",
}


@dataclass(frozen=True)
class Part:
    """One part of a bar on the page, in thousandths of its width."""

    label: str
    css: str
    x: int
    width: int
    percent: int


@dataclass(frozen=True)
class Bar:
    """One run's bar on the page."""

    name: str
    parts: list[Part]


def bars(figures: list[Figure]) -> list[Bar]:
    """The same chart for the page, as parts of drawn bars."""
    drawn = []
    for figure in figures:
        shares = _parts(figure)
        x, parts = 0, []
        for name, label, share in shares:
            width = round(share * 1000)
            parts.append(Part(label, CSS[name], x, width, round(share * 100)))
            x += width
        if parts:
            drawn.append(Bar(f"{figure.run} {figure.scenario}", parts))
    return drawn


def _parts(figure: Figure) -> list[tuple[str, str, float]]:
    """(name, label, share) of the phases and of the rest; empty where nothing was observed."""
    known = [
        (name, phase_label(name), share) for name in PHASES if (share := figure.shares.get(name)) is not None
    ]
    if not known:
        return []
    return [*known, ("", _("other"), max(0.0, 1.0 - sum(share for _n, _l, share in known)))]


def shares_spec(figures: list[Figure], *, width: int = 470) -> dict[str, Any] | None:
    """One stacked bar per run; what the three phases leave is “other”. None without any shares."""
    other = _("other")
    rows = [
        {"run": f"{figure.run} {figure.scenario}", "phase": label, "share": share, "order": place}
        for figure in figures
        for place, (_name, label, share) in enumerate(_parts(figure))
    ]
    if not rows:
        return None
    return {
        "$schema": SCHEMA,
        "width": width,
        "height": {"step": 13},
        "padding": 0,
        "data": {"values": rows},
        "mark": {"type": "bar", "height": 9},
        "encoding": {
            "y": {
                "field": "run",
                "type": "nominal",
                "sort": None,
                "axis": {"title": None, "labelLimit": 190},
            },
            "x": {
                "field": "share",
                "type": "quantitative",
                "stack": "zero",
                "scale": {"domain": [0, 1]},
                "axis": {"format": ".0%", "title": None, "tickCount": 5},
            },
            "order": {"field": "order", "type": "quantitative"},
            "color": {
                "field": "phase",
                "type": "nominal",
                "scale": {
                    "domain": [*(phase_label(name) for name in PHASES), other],
                    "range": [*(PHASE_COLOURS[name] for name in PHASES), OTHER_COLOUR],
                },
                "legend": {"orient": "right", "title": None, "symbolType": "square"},
            },
        },
        "config": {
            "font": FONT,
            "axis": {"labelFont": FONT, "labelFontSize": 8, "grid": False},
            "legend": {"labelFont": FONT, "labelFontSize": 8},
            "view": {"stroke": None},
        },
    }
