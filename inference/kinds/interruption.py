"""S5, interruption: requests are left in queue, prefill and decode; then everything must come back (M18).

After the load, a wave of requests is left on purpose and the target's gauges are watched until each is back
at its level before. The embedded engine also stamps for each request when its blocks were free.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from inference.errors import InputError
from inference.kinds.base import Conducted, Findings, Kind, Option
from inference.kinds.course import Course, joined
from inference.kinds.figures import spread
from inference.kinds.levels import Watch, level_of, told
from inference.load.generator import LoadResult
from inference.records import RequestRecord
from inference.requests import CancelRule

PHASES = ("queue", "prefill", "decode")
PEAK_EVERY_S = 0.02


async def procedure(course: Course) -> Conducted:
    if not course.spec.get("interruptions"):
        raise InputError("an interruption scenario needs at least one interruption")
    course.enter("rest", 1, 3)
    watch = Watch(before=level_of(await told(course)))
    course.enter("load", 2, 3)
    requests, plan = await course.plan()
    results = [await course.load(requests, plan)]
    if not course.stopped:
        course.enter("wave", 3, 3)
        results.append(await _wave(course, watch))
    result = joined(results)
    return Conducted(result, judge(course, result.records, watch))


async def _wave(course: Course, watch: Watch) -> LoadResult:
    """As many requests as run at once, each left in one of the scenario's phases; then the watch."""
    rules = [
        CancelRule(
            phase=one["phase"],
            after_tokens=int(one.get("after_tokens") or 1) if one["phase"] == "decode" else 0,
        )
        for one in course.spec["interruptions"]
    ]
    size = max(len(rules), int(course.spec.get("concurrency") or 1))
    requests, plan = await course.plan(requests=size, interruptions=())
    left = [
        replace(request, cancel=rules[number % len(rules)], arrival_s=None)
        for number, request in enumerate(requests)
    ]
    at_once = replace(plan, concurrency=size, rate=None, warmup=0)
    load = asyncio.create_task(course.load(left, at_once))
    while not load.done():
        watch.see_peak(await told(course))
        await asyncio.wait({load}, timeout=PEAK_EVERY_S)
    result = load.result()
    ends = [ns for record in result.records if isinstance(ns := record.stamps.get("aborted_ns"), int)]
    await watch.follow(course, max(ends, default=time.monotonic_ns()), course.values["release_limit_s"])
    return result


def judge(course: Course, records: Sequence[RequestRecord], watch: Watch) -> Findings:
    left = [record for record in records if record.id in course.rules and not record.warmup]
    rows = [_phase_row(phase, course, left) for phase in PHASES]
    gauges = watch.rows()
    found = Findings(
        facts={
            "asked_to_leave": len(left),
            "left": sum(record.outcome == "cancelled" for record in left),
            "ended_before": sum(record.outcome == "success" for record in left),
            **spread("release", (_release_ms(record) for record in left)),
            "level_back_ms": _level_back_ms(gauges),
        },
        tables={"phases": [row for row in rows if row["asked"]], "gauges": gauges},
    )
    facts = found.facts
    if facts["release_n"]:
        found.say(
            "blocks_released",
            n=facts["release_n"],
            release_p95_ms=facts["release_p95_ms"],
            release_max_ms=facts["release_max_ms"],
        )
    states = {row["state"] for row in gauges}
    if "held" in states:
        names = ", ".join(row["gauge"] for row in gauges if row["state"] == "held")
        found.say("level_not_back", gauges=names, limit_s=course.values["release_limit_s"])
    elif "frozen" in states:
        found.say("gauges_frozen")
    elif facts["level_back_ms"] is not None:
        found.say("level_back", level_back_ms=facts["level_back_ms"])
    else:
        found.say("level_not_told")
    return found


def _phase_row(phase: str, course: Course, left: Sequence[RequestRecord]) -> dict[str, Any]:
    asked = [record for record in left if course.rules[record.id] == phase]
    gone = [record for record in asked if record.outcome == "cancelled"]
    return {
        "phase": phase,
        "asked": len(asked),
        "left_there": sum(phase_left(record) == phase for record in gone),
        "left_elsewhere": sum(phase_left(record) != phase for record in gone),
        "ended_before": len(asked) - len(gone),
        **spread("release", (_release_ms(record) for record in gone)),
    }


def phase_left(record: RequestRecord) -> str:
    """Where a cancelled request was when it was left, by what was observed of it.

    Of an endpoint only the reads are seen: what was left before the first is put down as prefill.
    """
    if record.output_tokens or record.reads:
        return "decode"
    admitted = record.stamps.get("admitted_ns")
    if admitted is None:
        return "queue" if record.stamps.get("queued_ns") is None and not record.status else "prefill"
    return "prefill" if admitted else "queue"


def _release_ms(record: RequestRecord) -> float | None:
    """From the moment at which the request was left to all its blocks being free."""
    aborted, freed = record.stamps.get("aborted_ns"), record.stamps.get("freed_ns")
    if not isinstance(aborted, int) or not isinstance(freed, int):
        return None
    return max(0, freed - aborted) / 1e6


def _level_back_ms(gauges: Sequence[dict[str, Any]]) -> float | None:
    """When the last gauge that had risen was back; None where one is not, or none had risen."""
    risen = [row for row in gauges if row["state"] in ("back", "back_by_probe", "held", "frozen")]
    if not risen or any(row["back_ms"] is None for row in risen):
        return None
    return max(row["back_ms"] for row in risen)


KIND = Kind(
    name="interruption",
    code="S5",
    procedure=procedure,
    options=(Option(name="release_limit_s", default=30, low=1, high=3_600),),
)
