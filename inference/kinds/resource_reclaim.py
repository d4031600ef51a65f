"""S7, resource reclaim: cycles of load and rest with their watermarks, and the slope of what stays (Q6)."""

from collections.abc import Mapping, Sequence
from typing import Any

from inference.intervals import slope
from inference.kinds.base import Conducted, Findings, Kind, Option
from inference.kinds.course import Course, Stage, joined
from inference.kinds.levels import MEMORY_BYTES, told

GAUGES = ("rss_bytes", "kv_used_bytes", "kv_usage", "device_allocated_bytes", "gpu_memory_used_bytes")


async def procedure(course: Course) -> Conducted:
    cycles = course.values["cycles"]
    results, rows = [], []
    for cycle in range(1, cycles + 1):
        if course.stopped:
            break
        stage = course.enter("cycle", cycle, cycles)
        requests, plan = await course.plan(seed=int(course.spec.get("seed") or 0) + cycle)
        before = len(course.samples)
        results.append(await course.load(requests, plan))
        peaks = _peaks([*course.samples[before:], await told(course)])
        await course.rest(course.values["rest_s"])
        rows.append(_row(stage, peaks, await told(course)))
    return Conducted(joined(results), judge(rows))


def _peaks(samples: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The watermark of each gauge over the cycle; a peak that the target has seen itself counts."""
    found: dict[str, float] = {}
    for sample in samples:
        for name in GAUGES:
            value = sample.get(name)
            if value is not None:
                found[name] = max(float(value), found.get(name, 0.0))
    return found


def _row(stage: Stage, peaks: Mapping[str, float], rest: Mapping[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {"cycle": stage.number, "requests": stage.requests}
    for name in GAUGES:
        if name in peaks or rest.get(name) is not None:
            base, _, unit = name.rpartition("_")
            row[f"{base}_peak_{unit}"], row[f"{base}_rest_{unit}"] = peaks.get(name), rest.get(name)
    return row


def judge(rows: list[dict[str, Any]]) -> Findings:
    """The leak: the slope of the level at rest, without the first cycle (it fills lazy buffers)."""
    found = Findings(facts={"cycles": len(rows)}, tables={"cycles": rows})
    for name in GAUGES:
        base, _, unit = name.rpartition("_")
        levels = [(row["cycle"], row.get(f"{base}_rest_{unit}")) for row in rows[1:]]
        line = slope([(float(x), float(y)) for x, y in levels if y is not None])
        if line is None:
            continue
        found.facts |= {
            f"{base}_slope_{unit}": line.per_step,
            f"{base}_slope_low_{unit}": line.low,
            f"{base}_slope_high_{unit}": line.high,
        }
        if name == "rss_bytes":
            grown = line.per_step * max(1, len(rows) - 2)
            leaks = line.direction == "rising" and grown > MEMORY_BYTES
            code = "memory_leaks" if leaks else "memory_returns"
            found.say(
                code if line.low is not None else "leak_not_decided",
                cycles=len(rows),
                slope_bytes=line.per_step,
                slope_low_bytes=line.low,
                slope_high_bytes=line.high,
            )
        if name == "kv_used_bytes":
            held = max((y for _, y in levels if y is not None), default=0)
            found.say("cache_held" if held else "cache_returns", cycles=len(rows), held_bytes=held)
    if not found.statements:
        found.say("memory_not_told")
    return found


KIND = Kind(
    name="resource_reclaim",
    code="S7",
    procedure=procedure,
    needs=("memory",),
    options=(
        Option(name="cycles", default=4, low=2, high=1_000, whole=True),
        Option(name="rest_s", default=3, low=0, high=3_600),
    ),
)
