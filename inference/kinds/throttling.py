"""M24, throttling: a rising rate until the target refuses, and whether it keeps the wait that it names.

A refusal is 429 or 503. After the rate is found, refused requests are sent again after the time that the
server's `Retry-After` names (a second where it names none), to see whether they are served then.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from inference.errors import InputError
from inference.kinds.base import Conducted, Findings, Kind, Option
from inference.kinds.course import Course, joined
from inference.kinds.figures import ratio, refused, spread
from inference.kinds.steps import Step, load_at
from inference.load.generator import LoadResult
from inference.records import RequestRecord
from inference.requests import GenerationRequest

SENT_AGAIN = 8
WAIT_UNTOLD_S, WAIT_LONGEST_S = 1.0, 60.0


async def procedure(course: Course) -> Conducted:
    low, high, of = course.values["rate_low"], course.values["rate_high"], course.values["steps"]
    if low >= high:
        raise InputError(f"rate_low ({low:g}) must be below rate_high ({high:g})")
    steps: list[Step] = []
    for number in range(1, of + 1):
        rate = low * (high / low) ** ((number - 1) / max(1, of - 1))
        course.enter("step", number, of + 1, offered_requests_per_second=rate)
        steps.append(await load_at(course, rate, number))
        if course.stopped or any(map(refused, steps[-1].records)):
            break
    again, wait_s = None, None
    turned_away = [record for record in steps[-1].records if refused(record)]
    if turned_away and not course.stopped:
        wait_s = _wait_s(turned_away)
        course.enter("again", of + 1, of + 1, wait_s=wait_s)
        await course.rest(wait_s)
        again = await _send_again(course, min(SENT_AGAIN, len(turned_away)))
    results = [step.result for step in steps] + ([again] if again else [])
    return Conducted(joined(results), judge(steps, again, wait_s))


def _wait_s(records: Sequence[RequestRecord]) -> float:
    told = [wait for record in records if (wait := record.server.get("retry_after_s")) is not None]
    return min(WAIT_LONGEST_S, max(told, default=WAIT_UNTOLD_S))


async def _send_again(course: Course, n: int) -> LoadResult:
    """As many requests as were refused, one after the other: nobody else is there to be in their way."""
    requests, plan = await course.plan(requests=n)
    requests = [replace(request, arrival_s=None) for request in requests]
    return await course.load(list[GenerationRequest](requests), replace(plan, concurrency=1, rate=None))


def judge(steps: Sequence[Step], again: LoadResult | None, wait_s: float | None) -> Findings:
    rows = [_row(number, step) for number, step in enumerate(steps, start=1)]
    turned_away = [record for record in steps[-1].records if refused(record)]
    returned = [record for record in again.records if not record.warmup] if again else []
    served = sum(record.outcome == "success" for record in returned)
    named = sum(record.server.get("retry_after") is not None for record in turned_away)
    found = Findings(
        facts={
            "first_refusal_requests_per_second": steps[-1].rate if turned_away else None,
            "highest_requests_per_second": steps[-1].rate,
            "refused_requests": len(turned_away),
            "refused_share": ratio(len(turned_away), len(steps[-1].records)),
            "retry_after_named_share": ratio(named, len(turned_away)) if turned_away else None,
            "waited_s": wait_s,
            "sent_again": len(returned),
            "served_after_wait": served,
        },
        tables={"steps": rows},
    )
    if not turned_away:
        found.say("nobody_refused", rate_requests_per_second=steps[-1].rate)
        return found
    found.say(
        "refused_from",
        rate_requests_per_second=steps[-1].rate,
        refused_share=found.facts["refused_share"],
        n=len(steps[-1].records),
    )
    code = "retry_after_kept" if named and served == len(returned) else "retry_after_broken"
    found.say(
        code if named else "retry_after_not_named",
        wait_s=wait_s,
        served=served,
        sent_again=len(returned),
    )
    return found


def _row(number: int, step: Step) -> dict[str, Any]:
    turned_away = [record for record in step.records if refused(record)]
    return step.row(number) | {
        "refused_share": ratio(len(turned_away), len(step.records)),
        "retry_after_max_s": max(
            (wait for one in turned_away if (wait := one.server.get("retry_after_s")) is not None),
            default=None,
        ),
        **spread("throttled", (record.intervals_ms.get("throttled") for record in step.records)),
    }


KIND = Kind(
    name="throttling",
    code="M24",
    procedure=procedure,
    options=(
        Option(name="rate_low", default=1, low=0.001, high=100_000),
        Option(name="rate_high", default=32, low=0.001, high=100_000),
        Option(name="steps", default=5, low=2, high=30, whole=True),
        Option(name="step_requests", default=40, low=5, high=100_000, whole=True),
    ),
)
