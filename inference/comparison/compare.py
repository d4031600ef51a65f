"""The comparison itself: each figure's difference with interval and noise band, and what spoils it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from inference.comparison.bootstrap import Draw, difference_interval, fixed_draw, percentile_draw, share_draw
from inference.comparison.data import RunData
from inference.comparison.load import OfferedLoad, offered_load
from inference.comparison.metrics import PERCENTILES, Compared, compared_metrics, counted, figure_of_run
from inference.comparison.outputs import compare_outputs

#: with fewer values a p99 rests on less than one request
THIN_P99 = 100
#: a difference below this part of the baseline matters to nobody, however sure it is
LEAST_EFFECT = 0.02
#: metrics whose tail is looked at beside their middle (Q7)
TAILED = ("ttft_ms", "tpot_ms", "max_gap_ms", "e2e_ms")


@dataclass(frozen=True)
class Terms:
    """Under which terms every figure is compared."""

    load: OfferedLoad
    seed: int
    assumed_noise: float | None
    confounded: bool


@dataclass(frozen=True)
class Side:
    """One figure over the runs of one side."""

    values: list[float]  # one a run
    draws: list[Draw]
    n: int

    @property
    def value(self) -> float:
        return float(np.mean(self.values))

    @property
    def spread(self) -> float:
        return max(self.values) - min(self.values)


def compare(
    baseline: Sequence[RunData],
    candidate: Sequence[RunData],
    *,
    seed: int = 0,
    assumed_noise: float | None = None,
    price_per_hour: float | None = None,
    confounded: bool = False,
) -> dict[str, Any]:
    """`{"metrics", "tail", "outputs", "load", "runs"}` of candidate against baseline.

    Each metric: `baseline`, `candidate`, `difference`, `ratio`, `interval` (95 %, of the difference),
    `noise` (what repeats of one side differ by), `n`, `runs` (the value of each), `verdict` better, worse
    or inconclusive, and `reason`. `assumed_noise` (a share of the baseline) stands in where nothing was
    repeated; without it one run each is inconclusive. `confounded`: more than the declared change differs,
    so nothing can be attributed to it.
    """
    load = offered_load(baseline, candidate)
    terms = Terms(load, seed, assumed_noise, confounded)
    rows = []
    for compared in compared_metrics():
        one, other = (_side(compared, runs, price_per_hour) for runs in (baseline, candidate))
        if one is None and other is None:
            continue
        rows.append(_row(compared, one, other, terms))
    return {
        "metrics": rows,
        "tail": _tail(rows),
        "outputs": compare_outputs(baseline, candidate),
        "load": load.as_json(),
        "runs": [len(baseline), len(candidate)],
        "seed": seed,
    }


def _side(compared: Compared, runs: Sequence[RunData], price: float | None) -> Side | None:
    """The figure of each run that states it; None where none does."""
    values: list[float] = []
    draws: list[Draw] = []
    n = 0
    for run in runs:
        if compared.percentile:
            found = run.values.get(compared.metric)
            if found is None or not len(found):
                told = (run.summary.get(compared.metric) or {}).get(compared.percentile)
                if told is not None:  # submitted without its requests
                    values.append(float(told))
                    draws.append(fixed_draw(float(told)))
                continue
            share = PERCENTILES[compared.percentile]
            values.append(float(np.quantile(found, share)))
            draws.append(percentile_draw(found, share))
            n += len(found)
            continue
        value = figure_of_run(compared.metric, run.summary, price)
        if value is None:
            continue
        of = counted(compared.metric, run.summary)
        values.append(value)
        draws.append(share_draw(value, of) if of else fixed_draw(value))
        n += of or 0
    return Side(values, draws, n) if values else None


def _row(compared: Compared, one: Side | None, other: Side | None, terms: Terms) -> dict[str, Any]:
    row: dict[str, Any] = {
        "metric": compared.metric,
        "percentile": compared.percentile,
        "unit": compared.unit,
        "better": compared.better,
        "baseline": one.value if one else None,
        "candidate": other.value if other else None,
        "n": [one.n if one else 0, other.n if other else 0],
        "runs": [one.values if one else [], other.values if other else []],
        **dict.fromkeys(("difference", "ratio", "interval", "noise")),
    }
    if one is None or other is None:
        return row | {"verdict": "inconclusive", "reason": "compare_not_observed"}
    difference = other.value - one.value
    repeated = len(one.values) > 1 and len(other.values) > 1
    noise = _noise(one, other, repeated, terms.assumed_noise)
    interval = difference_interval(one.draws, other.draws, seed=terms.seed) if _varies(one, other) else None
    row |= {
        "difference": difference,
        "ratio": difference / one.value if one.value else None,
        "interval": list(interval) if interval else None,
        "noise": noise,
    }
    verdict, reason = _verdict(compared, difference, interval, noise, one.value)
    reason = _spoiled(compared, row, verdict, terms) or reason
    spoiled = reason in ("compare_confounded", "compare_offered_load", "compare_thin")
    return row | {"verdict": "inconclusive" if spoiled else verdict, "reason": reason}


def _varies(one: Side, other: Side) -> bool:
    """Whether there is anything to resample: requests, or several runs."""
    return bool(one.n and other.n) or (len(one.values) > 1 and len(other.values) > 1)


def _noise(one: Side, other: Side, repeated: bool, assumed: float | None) -> float | None:
    """How much runs of the same side differ by themselves: the wider of the two, at least the assumed."""
    spreads = [side.spread for side in (one, other) if len(side.values) > 1]
    if assumed is not None:
        spreads.append(assumed * abs(one.value))
    return max(spreads) if repeated or assumed is not None else None


def _verdict(
    compared: Compared,
    difference: float,
    interval: tuple[float, float] | None,
    noise: float | None,
    baseline: float,
) -> tuple[str, str]:
    if noise is None:
        return "inconclusive", "compare_one_run_each"
    if interval is None and abs(difference) <= noise:
        return "inconclusive", "compare_within_noise"
    if interval is not None and interval[0] <= 0 <= interval[1]:
        return "inconclusive", "compare_interval_holds_zero"
    if abs(difference) <= max(noise, LEAST_EFFECT * abs(baseline)):
        return "inconclusive", "compare_within_noise"
    good = (difference < 0) == (compared.better == "down")
    return ("better" if good else "worse"), "compare_clear"


def _spoiled(compared: Compared, row: dict[str, Any], verdict: str, terms: Terms) -> str | None:
    """Why a clear difference still says nothing of the change."""
    if verdict == "inconclusive":
        return None
    if terms.confounded:
        return "compare_confounded"
    if compared.percentile == "p99" and min(row["n"]) < THIN_P99:
        return "compare_thin"
    return "compare_offered_load" if compared.unit == "ms" and terms.load.explains(verdict) else None


def _tail(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Whether the tail went the other way than the middle, or further (Q7)."""
    by_place = {(row["metric"], row["percentile"]): row for row in rows}
    found = []
    for metric in TAILED:
        middle = by_place.get((metric, "p50"))
        tails = [row for name in ("p95", "p99") if (row := by_place.get((metric, name)))]
        if middle is None or not tails:
            continue
        worse = [row for row in tails if row["verdict"] == "worse"]
        code = "tail_inconclusive"
        if worse:
            code = "tail_paid" if middle["verdict"] == "better" else "tail_worse"
        elif any(row["verdict"] == "better" for row in tails):
            code = "tail_better"
        figures = {"p50_ratio": middle["ratio"]} | {
            f"{row['percentile']}_ratio": row["ratio"] for row in tails
        }
        found.append({"metric": metric, "code": code, "figures": figures})
    return found
