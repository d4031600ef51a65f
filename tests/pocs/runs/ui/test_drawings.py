"""Charts, timelines and comparisons: the same specs compile for page and report, segments add up."""

import json
from itertools import pairwise

import pytest
import vl_convert
from django.utils import translation

from pocs.runs import charts
from pocs.runs.models import Run
from pocs.runs.ui import comparison, figures, timeline
from pocs.runs.wording import Share

INTERVALS = {
    "dispatch_delay": 2.0,
    "throttled": None,
    "network": 0.01,
    "queue_wait": 6.0,
    "prefill": 36.0,
    "decode": 268.0,
    "release": 1.0,
    "unexplained": 0.0,
}


def test_segments_lie_end_to_end_and_begin_before_sent_by_the_dispatch_delay() -> None:
    parts = timeline.segments(INTERVALS, sent_ms=100.0)
    assert [part.phase for part in parts] == ["dispatch_delay", "queue_wait", "prefill", "decode", "release"]
    assert parts[0].from_ms == pytest.approx(98.0)
    assert parts[-1].to_ms == pytest.approx(100.01 + 6 + 36 + 268 + 1)
    for before, after in pairwise(parts):
        assert after.from_ms - before.to_ms < timeline.SHOWN_FROM_MS


def test_what_was_not_observed_has_no_segment() -> None:
    assert timeline.segments({}) == []
    assert timeline.drawn({}, 0.0) == []


def test_drawn_segments_fit_the_drawing() -> None:
    parts = timeline.drawn(INTERVALS, timeline.total_ms(INTERVALS))
    assert parts[0].x == 0
    assert parts[-1].x + parts[-1].width <= timeline.DRAWN_UNITS + timeline.LEAST_UNITS


def test_shares_lie_end_to_end_and_absent_ones_are_left_out() -> None:
    parts = timeline.drawn_shares(
        [Share("queue_wait", "Q", 0.25), Share("network", "N", None), Share("decode", "D", 0.75)]
    )
    assert [(part.x, part.width) for part in parts] == [(0.0, 250.0), (250.0, 750.0)]


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_every_chart_compiles_into_a_drawing(language: str) -> None:
    with translation.override(language):
        rows = [{"at_ms": 500.0 * i, "ttft_ms_p50": 40.0 + i, "ttft_ms_p95": None} for i in range(4)]
        specs = [
            charts.series_spec(panel, rows, span_s=2.0, width=300, legend=True) for panel in charts.panels()
        ]
        parts = [{"row": 0, "phase": "decode", "from_ms": 0.0, "to_ms": 900.0}]
        specs.append(charts.waterfall_spec(parts, span_s=2.0, width=300, legend=True))
        specs.append(charts.shares_spec({"queue_wait": 0.2, "decode": 0.8}))
    for spec in specs:
        json.dumps(spec)
        assert vl_convert.vegalite_to_svg(spec).startswith("<svg")


def test_a_null_breaks_a_line_and_is_never_drawn_as_zero() -> None:
    panel = next(panel for panel in charts.panels() if panel.key == "ttft")
    rows = [{"at_ms": 0.0, "ttft_ms_p50": None, "ttft_ms_p95": None}]
    scene = vl_convert.vegalite_to_scenegraph(charts.series_spec(panel, rows, width=300))
    assert '"defined": true' not in json.dumps(scene)


def test_phases_have_colours_of_their_own() -> None:
    assert set(timeline.PHASES) == set(charts.PHASE_COLOURS) == set(charts.PHASE_LABELS)
    assert len(set(charts.PHASE_COLOURS.values())) == len(charts.PHASE_COLOURS)


def test_figures_of_a_run_without_summary_are_absent_and_not_zero() -> None:
    for tile in figures.tiles(None):
        assert all(part.value is None for part in tile.parts)
    assert figures.percentile_rows({}) == []
    assert figures.error_rate({}) is None


def test_error_rate_leaves_out_what_was_asked_for() -> None:
    summary = {"attempted": 10, "requests": {"success": 6, "cancelled": 3, "failed": 1}}
    assert figures.error_rate(summary) == pytest.approx(0.1)
    assert [(row.outcome, row.count) for row in figures.outcome_rows(summary)] == [
        ("success", 6),
        ("failed", 1),
        ("cancelled", 3),
    ]


def test_two_runs_are_compared_without_a_verdict(run: Run) -> None:
    other = Run.objects.get(pk=run.pk)
    other.summary = run.summary | {"ttft_ms": run.summary["ttft_ms"] | {"p50": 84.0}}
    other.configuration = run.configuration | {"engine": {"dtype": "int8"}}
    found = comparison.compared_figures(run, other)
    ttft = next(row for row in found if row.percentile == "p50" and "TTFT" in row.label)
    assert ttft.ratio == pytest.approx(1.0)
    differences = comparison.configuration_differences(run, other)
    assert [(row.path, row.a, row.b) for row in differences] == [
        ("configuration.engine.dtype", "float32", "int8")
    ]
