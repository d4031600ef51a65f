"""Load steps at offered rates: what each offered, what it reached, and whether its limits held."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from inference.intervals import share_interval
from inference.kinds.course import Course
from inference.kinds.figures import error_share, spread
from inference.load.generator import LoadResult
from inference.phases import gaps_ms
from inference.records import RequestRecord

Verdict = Literal["pass", "fail", "inconclusive"]


@dataclass(frozen=True)
class Step:
    """One load at one offered rate."""

    rate: float  # requests a second that were offered
    result: LoadResult

    @property
    def records(self) -> list[RequestRecord]:
        """The measured ones; a step's own warm-up is over before its first request."""
        return [record for record in self.result.records if not record.warmup]

    @property
    def reached_per_second(self) -> float | None:
        """Requests a second that ended in success, from the first sent to the last end."""
        starts = [ns for one in self.records if isinstance(ns := one.stamps.get("sent_ns"), int)]
        ends = [ns for one in self.records if isinstance(ns := one.stamps.get("closed_ns"), int)]
        if not starts or not ends or max(ends) <= min(starts):
            return None
        good = sum(record.outcome == "success" for record in self.records)
        return good / ((max(ends) - min(starts)) / 1e9)

    def row(self, number: int) -> dict[str, Any]:
        good = [record for record in self.records if record.outcome == "success"]
        return {
            "step": number,
            "offered_requests_per_second": self.rate,
            "reached_requests_per_second": self.reached_per_second,
            "requests": len(self.records),
            "error_share": error_share(self.records),
            **spread("ttft", (record.ttft_ms for record in good)),
            **spread("tpot", (record.tpot_ms for record in good)),
        }


async def load_at(course: Course, rate: float, seed: int) -> Step:
    """One open-loop step: the scenario's requests at this rate, whatever the target does."""
    requests, plan = await course.plan(
        rate=rate, requests=course.values["step_requests"], seed=int(course.spec.get("seed") or 0) + seed
    )
    return Step(rate, await course.load(requests, plan))


def limit_verdict(limit: Mapping[str, Any], records: Sequence[RequestRecord]) -> dict[str, Any]:
    """One limit over the successes of a step, by the share of them that lies above it.

    A percentile p ≤ max means: at most 1 − p of the requests are above max. The share's 95 % interval
    decides: all below that → pass, all above → fail, else inconclusive. `max` allows none above it.
    """
    good = [record for record in records if record.outcome == "success"]
    observed = [value for record in good if (value := _value(record, limit["metric"])) is not None]
    above = sum(value > limit["max"] for value in observed)
    allowed = _allowed(limit)
    found = share_interval(above, len(observed))
    verdict: Verdict = "inconclusive"
    if found is not None:
        low, high = found
        if allowed == 0:
            verdict = "fail" if above else "pass"
        elif high <= allowed:
            verdict = "pass"
        elif low > allowed:
            verdict = "fail"
    return {
        "metric": limit["metric"],
        "percentile": limit.get("percentile", "max"),
        "max": limit["max"],
        "n": len(observed),
        "above": above,
        "above_share_low": found[0] if found else None,
        "above_share_high": found[1] if found else None,
        "holds": None if not observed else above <= allowed * len(observed),
        "verdict": verdict,
    }


def _allowed(limit: Mapping[str, Any]) -> float:
    name = str(limit.get("percentile", "max"))
    return 0.0 if name == "max" else 1 - float(name.removeprefix("p")) / 100


def _value(record: RequestRecord, metric: str) -> float | None:
    """A request's own figure; of its gaps the longest, so that a limit on gaps holds for all of them."""
    if metric == "itl_ms":
        return max(gaps_ms(record.reads), default=None)
    if hasattr(record, metric):
        value = getattr(record, metric)
        return None if value is None else float(value)
    return record.intervals_ms.get(metric.removesuffix("_ms"))


def between(low: float, high: float) -> float:
    """The middle of two rates in proportion: halving a range of factors, not of differences."""
    return math.sqrt(low * high)
