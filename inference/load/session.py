"""One measurement of one opened target: load, resources and summary together, and the files it leaves."""

import asyncio
import contextlib
import json
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inference.configuration import configuration, configuration_digest, environment
from inference.errors import InputError
from inference.load.generator import LoadPlan, LoadResult, LoadState, run_load
from inference.load.resources import ResourceSampler
from inference.records import RequestRecord
from inference.requests import GenerationRequest
from inference.stats import summarise
from inference.targets.base import Target, TargetInfo
from inference.targets.server_summary import with_server


@dataclass
class Session:
    """What a measurement gave: records and load facts, resource samples, and the summary."""

    result: LoadResult
    samples: list[dict[str, Any]]
    summary: dict[str, Any]


async def measure(
    target: Target,
    info: TargetInfo,
    requests: Sequence[GenerationRequest],
    plan: LoadPlan,
    *,
    limits: Sequence[Mapping[str, Any]] = (),
    stop: asyncio.Event | None = None,
    on_record: Callable[[RequestRecord], None] | None = None,
    on_tick: Callable[[LoadState], None] | None = None,
    send: Callable[..., Awaitable[LoadResult]] = run_load,
) -> Session:
    """Run the load on an opened target while its resources are sampled; `stop` ends it early.

    `send` is what sends it: here, or several generators that stand for one.
    """
    machine = environment()
    sampler = ResourceSampler(target)
    sampling = asyncio.create_task(sampler.run())
    try:
        result = await send(target, requests, plan, on_record=on_record, on_tick=on_tick, stop=stop)
    finally:
        sampling.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await sampling
    await sampler.sample()
    summary = summarise(
        result.records,
        load=result.load,
        self_check=result.self_check,
        target=info,
        telemetry=sampler.samples,
        limits=limits,
        environment=machine,
        configuration_digest=configuration_digest(configuration(info, result.load, machine)),
        interrupted=result.interrupted,
    )
    return Session(result, sampler.samples, with_server(summary, await sampler.server()))


def prepare_folder(folder: Path) -> None:
    """Make the output folder; raises InputError when it cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as fault:
        raise InputError(f"cannot write to {folder}: {fault.strerror or fault}") from fault


def write_session(session: Session, folder: Path) -> None:
    """Write requests.jsonl (input order), warmup.jsonl when there was a warm-up, and summary.json."""
    measured = [record for record in session.result.records if not record.warmup]
    warmup = [record for record in session.result.records if record.warmup]
    _write(folder / "requests.jsonl", "".join(_line(record.as_json()) for record in measured))
    if warmup:
        _write(folder / "warmup.jsonl", "".join(_line(record.as_json()) for record in warmup))
    if session.samples:
        _write(folder / "telemetry.jsonl", "".join(_line(sample) for sample in session.samples))
    write_json(folder / "summary.json", session.summary)


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    _write(path, _json(content, indent=2) + "\n")


def _line(content: Mapping[str, Any]) -> str:
    return _json(content) + "\n"


def _json(content: Any, indent: int | None = None) -> str:
    """Strict JSON: a figure of a server that is not finite was not observed, and loses no measurement."""
    form: dict[str, Any] = {"ensure_ascii": False, "allow_nan": False, "default": str, "indent": indent}
    try:
        return json.dumps(content, **form)
    except ValueError:
        return json.dumps(_without_infinities(content), **form)


def _without_infinities(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {name: _without_infinities(item) for name, item in value.items()}
    return [_without_infinities(item) for item in value] if isinstance(value, list | tuple) else value


def _write(path: Path, text: str) -> None:
    """Whole or not at all: a reader never sees half a file."""
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8", errors="replace")
    part.replace(path)
