"""What the page's script draws: the charts' specs with their data, live or from what was stored."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import get_language
from django.utils.translation import gettext as _

from pocs.common.models import LiveEvent
from pocs.runs import charts, selectors
from pocs.runs.models import Run
from pocs.runs.ui import timeline
from pocs.runs.ui.words import script_words

#: more requests than this make the rows of the waterfall thinner than a pixel
WATERFALL_REQUESTS = 300
WATERFALL_COLUMNS = ("index", "request_id", "started_ms", "intervals_ms", "run_id")


def flat(sample: Mapping[str, Any]) -> dict[str, Any]:
    """A sample with the figures of memory beside the others (`memory_rss_bytes`), as the charts read it."""
    row = {key: value for key, value in sample.items() if not isinstance(value, dict | list)}
    memory = {key: value for key, value in row.items() if key.endswith("_bytes")} | (
        sample.get("memory") or {}
    )
    return row | {f"memory_{key}": value for key, value in memory.items()}


def live_drawing(run: Run) -> dict[str, Any]:
    """Empty charts that the run's stream fills."""
    return _drawing([], [], 10.0) | {"live": True, "stream": f"run:{run.pk}"}


def finished_drawing(run: Run) -> dict[str, Any]:
    """The charts of an ended run: its samples and the phases of its requests."""
    rows = [flat(data) for data in stored_samples(run)]
    records = selectors.requests_of(run).filter(started_ms__isnull=False).only(*WATERFALL_COLUMNS)
    segments = timeline.waterfall_rows(records.order_by("started_ms", "index")[:WATERFALL_REQUESTS])
    last_ms = max([row["at_ms"] for row in rows] + [part["to_ms"] for part in segments], default=0.0)
    drawing = _drawing(rows, segments, max(last_ms / 1000, 1.0))
    if not segments and not rows:
        drawing["empty"] = True
    return drawing | {"live": False}


def stored_samples(run: Run) -> list[dict[str, Any]]:
    """The samples that the live page showed; without its events, the resources alone."""
    stream = LiveEvent.objects.filter(stream=f"run:{run.pk}", kind="sample").order_by("number")
    live = list(stream.values_list("data", flat=True))
    if live:
        return live
    return [{**sample.data, "at_ms": sample.at_ms} for sample in selectors.samples_of(run)]


def _drawing(rows: list[dict[str, Any]], segments: list[dict[str, Any]], span_s: float) -> dict[str, Any]:
    """The form that charts.js reads: the shared rows once, each panel's spec without data."""
    panels = [
        panel.as_json() | {"spec": charts.series_spec(panel, span_s=span_s)} for panel in charts.panels()
    ]
    return {
        "locale": get_language(),
        "span_s": span_s,
        "axis_px": charts.AXIS_WIDTH,
        "right_px": charts.RIGHT_PAD,
        "rows": rows,
        "waterfall": {"spec": charts.waterfall_spec(span_s=span_s), "rows": segments},
        "panels": panels,
        "phases": {
            phase: {"css": f"phase-{css}", "label": charts.phase_label(phase)}
            for phase, css in timeline.PHASES.items()
        },
        "words": script_words(),
        "texts": {
            "time": _("time"),
            "request": _("request"),
            "start": _("start"),
            "nothing": _("Nothing observed yet."),
        },
    }
