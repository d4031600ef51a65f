"""S6, model switch: a load that fails, a load that works, and the way back (M21, M22), under requests.

Embedded engine only: first A is measured; a broken model is loaded, and A must go on answering; then B is
loaded while requests arrive, measured, and A is put back and compared with what it was.
"""

import asyncio
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from inference.kinds.base import Conducted, Findings, Kind, TextOption
from inference.kinds.course import Course, joined
from inference.load.generator import LoadResult
from inference.records import Trace
from inference.requests import GenerationRequest
from inference.targets.switch_report import SwitchFailed, SwitchReport

STAGES = ("before", "failed_load", "switch", "other_model", "rollback", "after")
PROBE = GenerationRequest(
    id="switch-check",
    messages=({"role": "user", "content": "1 2 3"},),
    max_tokens=8,
    ignore_eos=True,
    namespace="switch",
)


async def procedure(course: Course) -> Conducted:
    target: Any = course.target
    first = target.options
    second = course.values["second_model"] or first.path
    course.enter(STAGES[0], 1, len(STAGES))
    requests, plan = await course.plan()
    results = [await course.load(requests, plan)]
    answer_before = await _answer(course)
    rows: list[dict[str, Any]] = []
    try:
        with _broken_model(Path(first.path)) as broken:
            for name, path, how in (
                ("failed_load", str(broken), "beside"),
                ("switch", second, "auto"),
                ("rollback", first.path, "auto"),
            ):
                if course.stopped:
                    break
                course.enter(name, STAGES.index(name) + 1, len(STAGES))
                report, result = await _switch_under_load(course, path, how)
                results.append(result)
                rows.append(_row(name, report))
                if name == "switch" and report.outcome == "switched" and not course.stopped:
                    course.enter("other_model", 4, len(STAGES))
                    requests, plan = await course.plan()
                    results.append(await course.load(requests, plan))
    finally:
        if target.options.path != first.path:  # stopped half-way: whoever comes next finds what was there
            await target.switch(first.path)
    answer_after = None
    if not course.stopped:
        course.enter("after", 6, len(STAGES))
        answer_after = await _answer(course)
        requests, plan = await course.plan()
        results.append(await course.load(requests, plan))
    same = answer_before == answer_after if answer_before and answer_after else None
    return Conducted(joined(results), judge(rows, same_model=second == first.path, same_answer=same))


async def _switch_under_load(course: Course, path: str, how: str) -> tuple[SwitchReport, LoadResult]:
    """Switch while requests of the scenario are under way; they meet it as users would."""
    target: Any = course.target
    requests, plan = await course.plan()
    load = asyncio.create_task(course.load(requests, replace(plan, warmup=0)))
    try:
        await asyncio.sleep(0)  # the first requests leave before the switch begins
        report: SwitchReport = await target.switch(path, how=how)
    except SwitchFailed as error:
        report = error.report
    finally:
        result = await load
    return report, result


async def _answer(course: Course) -> tuple[int, ...] | None:
    """The token ids of a short greedy answer: the same model gives the same ones."""
    trace = Trace(PROBE.id)
    await course.target.run(PROBE, trace)
    return tuple(trace.token_ids) if trace.ended == "orderly" and trace.token_ids else None


@contextmanager
def _broken_model(model: Path) -> Iterator[Path]:
    """A folder like the model's, whose weights were cut off: what an interrupted copy leaves behind."""
    with tempfile.TemporaryDirectory(prefix="broken-model-") as name:
        folder = Path(name)
        configuration = model / "config.json"
        known = configuration.read_text(encoding="utf-8") if configuration.is_file() else None
        (folder / "config.json").write_text(
            known or json.dumps({"architectures": ["LlamaForCausalLM"]}), encoding="utf-8"
        )
        (folder / "model.safetensors").write_bytes(b"\x40\x00\x00\x00\x00\x00\x00\x00{}")
        yield folder


def _row(step: str, report: SwitchReport) -> dict[str, Any]:
    return {
        "step": step,
        "model": report.target.get("model"),
        "outcome": report.outcome,
        "how": report.how,
        "load_ms": report.stages_ms.get("load"),
        "first_good_token_ms": report.first_good_token_ms,
        "outage_ms": report.outage_ms,
        "held_ms": report.held_ms,
        "total_ms": report.total_ms,
        "waited_requests": report.requests.waited,
        "failed_requests": report.requests.failed,
        "memory_before_bytes": report.memory.before_bytes,
        "memory_peak_bytes": report.memory.peak_bytes,
        "memory_after_bytes": report.memory.after_bytes,
        "back_to_baseline": report.memory.back_to_baseline,
    }


def judge(rows: list[dict[str, Any]], *, same_model: bool, same_answer: bool | None) -> Findings:
    by_step = {row["step"]: row for row in rows}
    switched, back, broken = (by_step.get(name, {}) for name in ("switch", "rollback", "failed_load"))
    found = Findings(
        facts={
            "load_ms": switched.get("load_ms"),
            "switch_outage_ms": switched.get("outage_ms"),
            "rollback_outage_ms": back.get("outage_ms"),
            "rollback_total_ms": back.get("total_ms"),
            "failed_load_kept": broken.get("outcome") == "kept" if broken else None,
            "rolled_back": back.get("outcome") == "switched" if back else None,
            "same_answer_after_rollback": same_answer,
            "failed_requests": sum(row["failed_requests"] for row in rows),
            "second_model_is_the_first": same_model,
        },
        tables={"switches": rows},
    )
    if broken:
        kept = broken["outcome"] == "kept"
        found.say(
            "failed_load_harmless" if kept else "failed_load_hurt",
            outcome=broken["outcome"],
            failed_requests=broken["failed_requests"],
        )
    if switched:
        found.say(
            "switched" if switched["outcome"] == "switched" else "switch_failed",
            model=switched["model"] or "",
            load_ms=switched["load_ms"],
            outage_ms=switched["outage_ms"],
            failed_requests=switched["failed_requests"],
        )
    if back and found.facts["rolled_back"]:
        found.say(
            "rolled_back_same" if same_answer else "rolled_back_not_compared",
            total_ms=back["total_ms"],
            outage_ms=back["outage_ms"],
        ) if same_answer is not False else found.say("rolled_back_different")
    elif back:
        found.say("rollback_failed", outcome=back["outcome"])
    if same_model:
        found.say("same_model_loaded")
    return found


KIND = Kind(
    name="model_switch",
    code="S6",
    procedure=procedure,
    needs=("switch",),
    options=(TextOption(name="second_model"),),
)
