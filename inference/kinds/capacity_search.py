"""M27, capacity search: the highest offered rate at which every limit holds, by bisection.

First the lowest and the highest rate are tried, then the middle (in proportion) of the highest that held and
the lowest that did not, for a bounded number of steps. Every step is an open loop, so a target that falls
behind cannot slow its own load down.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inference.criteria import Verdict
from inference.errors import InputError
from inference.intervals import share_interval
from inference.kinds.base import Conducted, Findings, Kind, Option
from inference.kinds.course import Course
from inference.kinds.figures import error_share
from inference.kinds.steps import Step, between, limits_of, load_at

#: a search is over when the two rates around the capacity are this close to each other
CLOSE_ENOUGH = 1.1


@dataclass(frozen=True)
class Judged:
    """A step with the verdict of each limit; it holds when all do, inconclusive ones by their own value."""

    step: Step
    limits: tuple[Mapping[str, Any], ...]
    errors: Verdict
    holds: bool

    @property
    def verdict(self) -> Verdict:
        verdicts = {self.errors, *(limit["verdict"] for limit in self.limits)}
        return "fail" if "fail" in verdicts else "pass" if verdicts == {"pass"} else "inconclusive"


async def procedure(course: Course) -> Conducted:
    low, high = course.values["rate_low"], course.values["rate_high"]
    if not _upper(course.spec.get("limits") or ()):
        raise InputError("a capacity search needs at least one limit: without it no load is too high")
    if low >= high:
        raise InputError(f"rate_low ({low:g}) must be below rate_high ({high:g})")
    judged: list[Judged] = []

    async def holds(rate: float) -> bool:
        number = len(judged) + 1
        course.enter("step", number, course.values["steps"], offered_requests_per_second=rate)
        judged.append(judge_step(course, await load_at(course, rate, number)))
        return judged[-1].holds

    if await holds(low) and not course.stopped and not await holds(high):
        best, worst = low, high
        while len(judged) < course.values["steps"] and worst / best > CLOSE_ENOUGH and not course.stopped:
            middle = between(best, worst)
            if await holds(middle):
                best = middle
            else:
                worst = middle
    shown = max((one for one in judged if one.holds), key=lambda one: one.step.rate, default=judged[0])
    return Conducted(shown.step.result, judge(judged, course))


def _upper(limits: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The limits that more load can break in each request: upper bounds on a percentile of a time."""
    return [limit for limit in limits if limit.get("percentile") and limit.get("max") is not None]


def judge_step(course: Course, step: Step) -> Judged:
    """Limits and errors of one step; where a limit is inconclusive, its observed value decides the search."""
    records = step.records
    limits = tuple(limits_of(step, _upper(course.spec["limits"])))
    allowed = course.values["error_share_max"]
    failed = sum(record.outcome not in ("success", "cancelled") for record in records)
    found = share_interval(failed, len(records))
    errors: Verdict = "inconclusive"
    if found is not None:
        errors = "pass" if failed == 0 or found[1] <= allowed else "fail" if found[0] > allowed else errors
    share = error_share(records)
    holds = share is not None and share <= allowed and all(limit["holds"] for limit in limits)
    return Judged(step, limits, errors, holds)


def judge(judged: Sequence[Judged], course: Course) -> Findings:
    """The capacity and its interval: highest rate that surely held to lowest that surely did not."""
    holding = [one.step.rate for one in judged if one.holds]
    broken = [one.step.rate for one in judged if not one.holds]
    surely_holding = [one.step.rate for one in judged if one.verdict == "pass"]
    surely_broken = [one.step.rate for one in judged if one.verdict == "fail"]
    capacity = max(holding, default=None)
    low = max((rate for rate in surely_holding if rate < min(surely_broken, default=rate + 1)), default=None)
    high = min((rate for rate in surely_broken if rate > (low or 0)), default=None)
    rows = [
        one.step.row(number) | {"verdict": one.verdict, "holds": one.holds, "limits": list(one.limits)}
        for number, one in enumerate(judged, start=1)
    ]
    found = Findings(
        facts={
            "capacity_requests_per_second": capacity,
            "capacity_low_requests_per_second": low,
            "capacity_high_requests_per_second": high,
            "steps": len(judged),
            "requests_per_step": course.values["step_requests"],
        },
        tables={"steps": rows},
    )
    figures = {
        "capacity_requests_per_second": capacity,
        "low_requests_per_second": low,
        "high_requests_per_second": high,
        "n": course.values["step_requests"],
        "steps": len(judged),
    }
    if capacity is None:
        found.say("capacity_below", rate_requests_per_second=judged[0].step.rate)
    elif not broken:
        found.say("capacity_above", rate_requests_per_second=capacity)
    else:
        found.say("capacity_found" if low is not None and high is not None else "capacity_thin", **figures)
    return found


KIND = Kind(
    name="capacity_search",
    code="M27",
    procedure=procedure,
    options=(
        Option(name="rate_low", default=0.5, low=0.001, high=100_000),
        Option(name="rate_high", default=8, low=0.001, high=100_000),
        Option(name="steps", default=6, low=2, high=30, whole=True),
        Option(name="step_requests", default=40, low=5, high=100_000, whole=True),
        Option(name="error_share_max", default=0.01, low=0, high=0.5),
    ),
)
