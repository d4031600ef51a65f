"""S13, production replay: several classes of requests mixed as in production, and which of them suffers.

Classes are written one a line, `name share input output`; without them the scenario's own requests (real
prompts, or a trace) are replayed as they are and grouped by application, or else by length.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from inference.errors import InputError
from inference.kinds.base import Conducted, Findings, Kind, TextOption
from inference.kinds.course import Course
from inference.kinds.figures import error_share, ratio, spread, window
from inference.load.generator import LoadPlan
from inference.records import RequestRecord
from inference.requests import GenerationRequest

CLASSES_MAX = 12


@dataclass(frozen=True)
class RequestClass:
    """A class of requests: its share of the mix, and its lengths in tokens."""

    name: str
    share: float
    input_tokens: int
    output_tokens: int


def read_classes(text: str) -> list[RequestClass]:
    """The classes in `text`; raises InputError with the line that is none."""
    found = []
    for line in filter(None, map(str.strip, text.splitlines())):
        try:
            name, share, input_tokens, output_tokens = line.split()
            one = RequestClass(name, float(share.rstrip("%")), int(input_tokens), int(output_tokens))
        except ValueError:
            one = None
        if one is None or not one.share > 0 or one.input_tokens < 1 or one.output_tokens < 1:
            raise InputError(f"{line!r} is no request class: write name, share, input and output tokens")
        found.append(one)
    if len(found) > CLASSES_MAX:
        raise InputError(f"at most {CLASSES_MAX} request classes, not {len(found)}")
    return found


async def procedure(course: Course) -> Conducted:
    classes = read_classes(course.values["classes"])
    course.enter("load", 1, 1)
    if classes:
        requests, plan = await _mix(course, classes)
    else:
        requests, plan = await course.plan()
    result = await course.load(requests, plan)
    return Conducted(result, judge(course, result.records))


async def _mix(course: Course, classes: Sequence[RequestClass]) -> tuple[list[GenerationRequest], LoadPlan]:
    """The requests of all classes in one order, drawn by the scenario's seed; each names its class."""
    n, whole = int(course.spec["requests"]), sum(one.share for one in classes)
    mixed: list[GenerationRequest] = []
    plan: LoadPlan | None = None
    for one in classes:
        count = max(1, round(n * one.share / whole))
        requests, plan = await course.plan(
            requests=count,
            input_tokens=one.input_tokens,
            output_tokens=one.output_tokens,
            shared_prefix_tokens=min(
                int(course.spec.get("shared_prefix_tokens") or 0), max(0, one.input_tokens - 1)
            ),
        )
        mixed += [
            replace(request, id=f"{one.name}-{request.id}", application=request.application or one.name)
            for request in requests
        ]
    random.Random(int(course.spec.get("seed") or 0)).shuffle(mixed)  # noqa: S311 a reproducible order
    assert plan is not None
    return mixed, plan


def judge(course: Course, records: Sequence[RequestRecord]) -> Findings:
    measured = window(records)
    groups = grouped(measured)
    rows = [_row(name, group) for name, group in groups.items()]
    found = Findings(facts={"classes": len(rows), "requests": len(measured)}, tables={"classes": rows})
    told = [row for row in rows if row["ttft_p95_ms"] is not None]
    if len(told) > 1:
        worst = max(told, key=lambda row: row["ttft_p95_ms"])
        best = min(told, key=lambda row: row["ttft_p95_ms"])
        found.facts["ttft_p95_worst_to_best"] = ratio(worst["ttft_p95_ms"], best["ttft_p95_ms"])
        found.say(
            "class_that_waits",
            worst=worst["class"],
            worst_n=worst["ttft_n"],
            worst_ttft_p95_ms=worst["ttft_p95_ms"],
            best=best["class"],
            best_n=best["ttft_n"],
            best_ttft_p95_ms=best["ttft_p95_ms"],
        )
    elif told:
        found.say("one_class_only", name=told[0]["class"])
    return found


def grouped(records: Sequence[RequestRecord]) -> dict[str, list[RequestRecord]]:
    """By application where there are several, else by input length, in thirds."""
    names = {record.application for record in records}
    found: dict[str, list[RequestRecord]] = {}
    if len(names) > 1:
        for record in records:
            found.setdefault(record.application or "-", []).append(record)
        return dict(sorted(found.items()))
    lengths = sorted(record.input_tokens for record in records if record.input_tokens is not None)
    if len(set(lengths)) < 3:
        return {(names.pop() if names else "") or "-": list(records)} if records else {}
    low, high = lengths[len(lengths) // 3], lengths[len(lengths) * 2 // 3]
    for record in records:
        tokens = record.input_tokens or 0
        name = f"<{low}" if tokens < low else f"{low}-{high}" if tokens <= high else f">{high}"
        found.setdefault(name, []).append(record)
    return found


def _row(name: str, records: Sequence[RequestRecord]) -> dict[str, Any]:
    good = [record for record in records if record.outcome == "success"]
    return {
        "class": name,
        "requests": len(records),
        "error_share": error_share(records),
        **spread("input", (record.input_tokens for record in good), unit="tokens"),
        **spread("output", (record.output_tokens for record in good), unit="tokens"),
        **spread("ttft", (record.ttft_ms for record in good)),
        **spread("tpot", (record.tpot_ms for record in good)),
        **spread("queue_wait", (record.intervals_ms.get("queue_wait") for record in good)),
    }


KIND = Kind(name="production_replay", code="S13", procedure=procedure, options=(TextOption(name="classes"),))
