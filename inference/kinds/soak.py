"""M28, soak: hours of even load, cut into windows of time, and what drifts from one to the next."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from inference.intervals import slope
from inference.kinds.base import Conducted, Findings, Kind, Option
from inference.kinds.course import Course, joined
from inference.kinds.figures import error_share, window
from inference.load.generator import LoadResult
from inference.records import RequestRecord
from inference.stats import figures

#: figures whose drift is stated, with the unit of their slope an hour
DRIFTS = ("ttft_p95_ms", "tpot_p95_ms", "rss_bytes", "kv_used_bytes", "error_share")
S_PER_HOUR = 3600.0
#: a closed loop is sent in pieces of so many requests, so that nobody must know how many it gets through
CHUNK_REQUESTS = 2_000
STOPPED = "the load was stopped"


async def procedure(course: Course) -> Conducted:
    seconds = course.values["duration_s"]
    course.enter("load", 1, 1, duration_s=seconds)
    rate = course.spec.get("rate")
    if rate:
        requests, plan = await course.plan(requests=max(1, round(float(rate) * seconds)))
        result = await course.load(requests, plan)
    else:
        result = await _closed_loop(course, seconds)
    return Conducted(result, judge(course, result.records, course.samples))


async def _closed_loop(course: Course, seconds: float) -> LoadResult:
    """The scenario's requests in turn until the time is over; those under way then are no part of it."""
    requests, plan = await course.plan()
    size = max(CHUNK_REQUESTS, len(requests))
    chunk = [replace(requests[i % len(requests)], id=f"r{i + 1:05d}") for i in range(size)]
    over = asyncio.Event()
    clock = asyncio.create_task(_set_after(course, over, seconds))
    results = []
    try:
        while not over.is_set():
            results.append(await course.load(chunk, plan, until=over))
    finally:
        clock.cancel()
    result = joined(results)
    whole = [record for record in result.records if record.error != STOPPED]
    return replace(result, records=whole, interrupted=course.stopped)


async def _set_after(course: Course, over: asyncio.Event, seconds: float) -> None:
    """The end: after so long, or when the run is stopped."""
    await course.rest(seconds)
    over.set()


def judge(course: Course, records: Sequence[RequestRecord], samples: Sequence[Mapping[str, Any]]) -> Findings:
    measured = [one for one in window(records) if isinstance(one.stamps.get("closed_ns"), int)]
    rows = _windows(course, measured, samples)
    found = Findings(facts={"windows": len(rows), "requests": len(measured)}, tables={"windows": rows})
    for name in DRIFTS:
        points = [
            (row["middle_s"] / S_PER_HOUR, value) for row in rows if (value := row.get(name)) is not None
        ]
        line = slope(points)
        if line is None:
            continue
        base, _, unit = name.rpartition("_")
        found.facts |= {
            f"{base}_per_hour_{unit}": line.per_step,
            f"{base}_per_hour_low_{unit}": line.low,
            f"{base}_per_hour_high_{unit}": line.high,
        }
        found.say(
            f"drift_{line.direction}",
            figure=name,
            windows=len(points),
            **{f"per_hour_{unit}": line.per_step, "first": points[0][1], "last": points[-1][1]},
        )
    return found


def _windows(
    course: Course, records: Sequence[RequestRecord], samples: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """The load cut into equal windows by the ends of its requests; a window without any is left empty."""
    ends = [int(record.stamps["closed_ns"]) for record in records]  # type: ignore[arg-type]
    if not ends:
        return []
    starts = [ns for record in records if isinstance(ns := record.stamps.get("sent_ns"), int)]
    first, last = min(starts, default=min(ends)), max(ends)
    count = course.values["windows"]
    width = max(1, (last - first + 1) / count)
    rows = []
    for number in range(count):
        low, high = first + number * width, first + (number + 1) * width
        ended = [record for record, ns in zip(records, ends, strict=True) if low <= ns < high]
        seen = [one for one in samples if low <= course.zero_ns + one["at_ms"] * 1e6 < high]
        rows.append(_row(number + 1, (low - first) / 1e9, width / 1e9, ended, seen))
    return rows


def _row(
    number: int,
    from_s: float,
    width_s: float,
    records: Sequence[RequestRecord],
    samples: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    good = [record for record in records if record.outcome == "success"]
    ttft, tpot = figures(one.ttft_ms for one in good), figures(one.tpot_ms for one in good)
    return {
        "window": number,
        "from_s": from_s,
        "middle_s": from_s + width_s / 2,
        "requests": len(records),
        "requests_per_second": len(good) / width_s,
        "error_share": error_share(records),
        "ttft_p50_ms": ttft["p50"],
        "ttft_p95_ms": ttft["p95"],
        "tpot_p50_ms": tpot["p50"],
        "tpot_p95_ms": tpot["p95"],
        "rss_bytes": max(
            (one["rss_bytes"] for one in samples if one.get("rss_bytes") is not None), default=None
        ),
        "kv_used_bytes": max(
            (one["kv_used_bytes"] for one in samples if one.get("kv_used_bytes") is not None), default=None
        ),
    }


KIND = Kind(
    name="soak",
    code="M28",
    procedure=procedure,
    options=(
        Option(name="duration_s", default=1800, low=1, high=7 * 86_400),
        Option(name="windows", default=6, low=3, high=200, whole=True),
    ),
)
