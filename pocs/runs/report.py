"""A run as one HTML file in both languages: charts as SVG beside their tables, nothing to fetch."""

import re
from dataclasses import dataclass
from typing import Any

import vl_convert
from django.conf import settings
from django.template.loader import render_to_string
from django.utils import timezone, translation
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from pocs.common.canonical import digest
from pocs.runs import charts, selectors
from pocs.runs.definitions import definitions
from pocs.runs.models import Run
from pocs.runs.rescoring import rescored_of
from pocs.runs.ui import drawing, figures, timeline
from pocs.runs.wording import validity_texts, verdict_of

CHART_WIDTH = 640
TABLE_ROWS = 12
SLOWEST = 10
_ID = re.compile(r'(\bid="|url\(#|href="#)([A-Za-z])')


@dataclass(frozen=True)
class Chart:
    """One chart with the figures it is drawn from."""

    title: str
    unit: str
    svg: SafeString
    header: tuple[str, ...]
    rows: tuple[tuple[float | None, ...], ...]
    decimals: int
    first_decimals: int  # of the first column: a number of a request, or seconds


def report_html(run: Run) -> str:
    """The whole report; it holds each language once and shows one of them, without any script."""
    bodies = []
    for code, name in settings.LANGUAGES:
        with translation.override(code):
            body = render_to_string("runs/report_body.html", _context(run, code))
            bodies.append({"code": code, "lang": _html_lang(code), "name": str(name), "body": body})
    asked = translation.get_language()
    return render_to_string("runs/report.html", {"run": run, "bodies": bodies, "asked": asked})


def _html_lang(code: str) -> str:
    return "zh-Hans" if code == "zh-hans" else code


def _context(run: Run, code: str) -> dict[str, Any]:
    summary = run.summary or {}
    verdict = verdict_of(run)
    slowest = selectors.slowest_requests(run, SLOWEST)
    span_ms = max((timeline.total_ms(record.intervals_ms) for record in slowest), default=0.0)
    return {
        "run": run,
        "project": run.project,
        "made_at": timezone.now(),
        "tiles": figures.tiles(summary),
        "percentiles": figures.percentile_rows(summary),
        "outcomes": figures.outcome_rows(summary),
        "reasons": validity_texts(run),
        "verdict": verdict,
        "charts": _charts(run, code),
        "slowest": [(record, timeline.drawn(record.intervals_ms, span_ms)) for record in slowest],
        "legend": timeline.legend(),
        "rescored": rescored_of(run),
        "manifest_digest": "" if run.manifest is None else digest(run.manifest),
        "segments": (run.manifest or {}).get("segments") or [],
        "definitions": definitions(),
        "id_suffix": f"-{code}",  # each language stands in the same document
    }


def _charts(run: Run, code: str) -> list[Chart]:
    """The waterfall and every panel that has something to show, from the specs that the page draws."""
    drawn = drawing.finished_drawing(run)
    found = []
    segments = drawn["waterfall"]["rows"]
    if segments:
        spec = charts.waterfall_spec(segments, span_s=drawn["span_s"], width=CHART_WIDTH, legend=True)
        rows = _phase_rows(segments)
        header = (_("request"), *(charts.phase_label(phase) for phase in charts.PHASE_COLOURS))
        title, unit = _("Phases of each request"), "ms"
        found.append(Chart(title, unit, _svg(spec, f"{code}-waterfall"), header, rows, 1, 0))
    for panel in charts.panels():
        fields = [line.field for line in panel.series]
        if not any(row.get(field) is not None for row in drawn["rows"] for field in fields):
            continue
        spec = charts.series_spec(
            panel, drawn["rows"], span_s=drawn["span_s"], width=CHART_WIDTH, legend=True
        )
        header = (_("time (s)"), *(line.label for line in panel.series))
        rows = tuple(
            (row["at_ms"] / 1000, *(_times(row.get(field), panel.factor) for field in fields))
            for row in _some(drawn["rows"])
        )
        svg = _svg(spec, f"{code}-{panel.key}")
        found.append(Chart(panel.title, panel.unit, svg, header, rows, panel.decimals, 1))
    return found


def _phase_rows(segments: list[dict[str, Any]]) -> tuple[tuple[float | None, ...], ...]:
    by_row: dict[int, dict[str, float]] = {}
    for part in segments:
        phases = by_row.setdefault(part["row"], {})
        phases[part["phase"]] = phases.get(part["phase"], 0.0) + part["to_ms"] - part["from_ms"]
    return tuple(
        (float(row), *(by_row[row].get(phase) for phase in charts.PHASE_COLOURS))
        for row in _some(sorted(by_row))
    )


def _some(rows: list[Any]) -> list[Any]:
    """At most TABLE_ROWS of the rows, evenly over all of them."""
    if len(rows) <= TABLE_ROWS:
        return rows
    return [rows[round(i * (len(rows) - 1) / (TABLE_ROWS - 1))] for i in range(TABLE_ROWS)]


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _svg(spec: dict[str, Any], prefix: str) -> SafeString:
    """The chart as SVG; its ids get a prefix, since many stand in one document."""
    svg: str = vl_convert.vegalite_to_svg(spec)
    return mark_safe(_ID.sub(rf"\g<1>{prefix}-\g<2>", svg))  # noqa: S308 made here; texts are escaped by Vega
