"""Load steps at offered rates: what each offered, what it reached, and whether its limits held."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inference.kinds.course import Course
from inference.kinds.figures import error_share, spread
from inference.load.generator import LoadResult
from inference.records import RequestRecord
from inference.stats import summarise


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


def limits_of(step: Step, limits: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The step's limits as `inference.criteria` judges them: by their interval, with n."""
    found: list[dict[str, Any]] = summarise(step.records, load=step.result.load, limits=limits)["limits"]
    return found


def between(low: float, high: float) -> float:
    """The middle of two rates in proportion: halving a range of factors, not of differences."""
    return math.sqrt(low * high)
