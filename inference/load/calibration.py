"""How far the client's own stamps are from the truth, measured against the simulator in its own process."""

import asyncio
import contextlib
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from inference.errors import TargetUnavailable
from inference.load.generator import LoadPlan, run_load
from inference.load.simulator import MODEL, SimulatedTimes
from inference.records import RequestRecord
from inference.requests import GenerationRequest
from inference.stats import figures
from inference.targets.openai import OpenAITarget
from inference.validity import validity

SCHEMA = "phasegate-calibration/1"
ROUNDS = 4  # requests per slot
READ_ERROR_P99_LIMIT_MS = 10.0
START_TIMEOUT_S = 15.0


async def calibrate(concurrency: int, times: SimulatedTimes | None = None) -> dict[str, Any]:
    """Run `concurrency` streams against the simulator and compare every read with its write.

    Returns figures in ms: `read_error_ms` (client read − server write of each token), `first_read_error_ms`,
    `request_error_ms` (server received − client sent), `gap_error_ms` (client gap − server gap), the
    client's own `self_check`, and `validity`. Raises TargetUnavailable when the simulator does not start.
    """
    times = times or SimulatedTimes(ttft_ms=100)
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "writes.jsonl"
        process, port = await _start_simulator(times, log)
        try:
            target = OpenAITarget(f"http://127.0.0.1:{port}/v1", MODEL)
            await target.open()
            requests = [
                GenerationRequest(id=f"c{i}", prompt="calibrate", max_tokens=times.output_tokens)
                for i in range(concurrency * ROUNDS)
            ]
            plan = LoadPlan(concurrency=concurrency, warmup=concurrency)
            result = await run_load(target, requests, plan)
            await target.close()
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            await process.wait()
        rows = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    records = [record for record in result.records if not record.warmup]
    return _compared(records, {row["id"]: row for row in rows}, concurrency, result.self_check)


def _compared(
    records: Sequence[RequestRecord],
    truth: Mapping[str, Mapping[str, Any]],
    concurrency: int,
    self_check: Mapping[str, Any],
) -> dict[str, Any]:
    first: list[float] = []
    every: list[float] = []
    gaps: list[float] = []
    request: list[float] = []
    for record in records:
        row = truth.get(record.id)
        if row is None or record.outcome != "success":
            continue
        written = [ns for ns, _, tokens in row["writes"] if tokens]
        read = [ns for ns, _ in record.reads]
        errors = [(a - b) / 1e6 for a, b in zip(read, written, strict=True)]
        first.append(errors[0])
        every += errors
        gaps += [b - a for a, b in pairwise(errors)]
        sent_ns = record.stamps["sent_ns"]
        if isinstance(sent_ns, int):
            request.append((row["received_ns"] - sent_ns) / 1e6)
    read_error = figures(every)
    verdict = validity({"self_check": self_check}, records)
    if read_error["p99"] is not None and read_error["p99"] > READ_ERROR_P99_LIMIT_MS:
        verdict["valid"] = False
        verdict["reasons"].append(
            f"tokens were read late: p99 {read_error['p99']:.1f} ms, limit {READ_ERROR_P99_LIMIT_MS:g} ms"
        )
    return {
        "schema": SCHEMA,
        "concurrency": concurrency,
        "requests": len(records),
        "read_error_ms": read_error,
        "first_read_error_ms": figures(first),
        "gap_error_ms": figures(abs(gap) for gap in gaps),
        "request_error_ms": figures(request),
        "self_check": dict(self_check),
        "validity": verdict,
    }


async def _start_simulator(times: SimulatedTimes, log: Path) -> tuple[asyncio.subprocess.Process, int]:
    options = {
        "--port": 0,
        "--ttft-ms": times.ttft_ms,
        "--itl-ms": times.itl_ms,
        "--output-tokens": times.output_tokens,
        "--log": log,
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-P", "-m", "inference", "simulate"),
        *(str(part) for option in options.items() for part in option),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    if process.stdout is None:
        raise TargetUnavailable("the simulator has no output to read its port from")
    try:
        async with asyncio.timeout(START_TIMEOUT_S):
            line = (await process.stdout.readline()).decode()
        return process, int(line.rsplit(":", 1)[1].split("/")[0])
    except (TimeoutError, IndexError, ValueError) as fault:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        raise TargetUnavailable("the simulator did not start") from fault
