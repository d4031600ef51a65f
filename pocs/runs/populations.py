"""What upper apps need to group requests: which outcomes are errors, figures of sorted values, summaries."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from inference.stats import PERCENTILES, percentile
from pocs.runs.choices import Outcome
from pocs.runs.models import Run

#: outcomes that are no errors: it worked, or we asked for its end
ASKED_FOR = (Outcome.SUCCESS, Outcome.CANCELLED)


@dataclass(frozen=True)
class SummaryCounts:
    """The requests of a run that was submitted without its records, as its summary states them."""

    outcomes: dict[str, int]
    ttft_ms: dict[str, Any]
    tpot_ms: dict[str, Any]
    queue_wait_ms: dict[str, Any]


def figures_of_sorted(ordered: Sequence[float]) -> dict[str, Any]:
    """`{n, p50, p90, p95, p99, max}` of ascending values, read at their ranks; null where there is none."""
    n = len(ordered)
    out: dict[str, Any] = {"n": n}
    for p in PERCENTILES:
        out[f"p{p}"] = float(percentile(ordered, p)) if n else None
    return out | {"max": float(ordered[-1]) if n else None}


def counts_of_summary(run: Run) -> SummaryCounts:
    """What the run's summary says of its requests; distributions in ms over the successes."""
    summary: dict[str, Any] = run.summary or {}
    stated = summary.get("requests") or {}
    empty = figures_of_sorted(())
    return SummaryCounts(
        outcomes={outcome.value: stated.get(outcome.value) or 0 for outcome in Outcome},
        ttft_ms=summary.get("ttft_ms") or empty,
        tpot_ms=summary.get("tpot_ms") or empty,
        queue_wait_ms=summary.get("queue_wait_ms") or empty,
    )
