"""The simulator's truth, the client's error against it, and the habits found in an endpoint."""

import asyncio
import json
from pathlib import Path

import pytest

from inference.errors import InputError, TargetUnavailable
from inference.load.calibration import calibrate
from inference.load.generator import LoadPlan, run_load
from inference.load.simulator import MODEL, SimulatedTimes, Simulator
from inference.requests import GenerationRequest
from inference.targets.openai import OpenAITarget
from inference.targets.openai_conformance import conformance

TIMES = SimulatedTimes(ttft_ms=30, itl_ms=5, output_tokens=8)


async def test_every_read_follows_its_logged_write(tmp_path: Path) -> None:
    log = tmp_path / "writes.jsonl"
    simulator = Simulator(TIMES, log)
    port = await simulator.start(0)
    target = OpenAITarget(f"http://127.0.0.1:{port}/v1", MODEL)
    info = await target.open()
    requests = [GenerationRequest(id=f"q {i}", prompt="x", max_tokens=8 if i else 3) for i in range(4)]
    result = await run_load(target, requests, LoadPlan(concurrency=2))
    await target.close()
    await simulator.stop()
    assert info.configuration["model_entry"]["owned_by"] == "simulator"
    rows = {row["id"]: row for row in map(json.loads, log.read_text().splitlines())}
    for record in result.records:
        row = rows[record.id.replace(" ", "%20")]
        written = [ns for ns, _, tokens in row["writes"] if tokens]
        assert record.output_tokens == len(written) == (3 if record.id == "q 0" else 8)
        assert record.stamps["sent_ns"] < row["received_ns"]
        for (read_ns, tokens), ns in zip(record.reads, written, strict=True):
            assert tokens == 1
            assert 0 < read_ns - ns < 100_000_000
        assert written[0] - row["received_ns"] >= 30_000_000
    assert [record.finish_reason for record in result.records] == ["length", "stop", "stop", "stop"]


async def test_a_taken_port_and_times_out_of_range_are_said() -> None:
    simulator = Simulator(TIMES)
    port = await simulator.start(0)
    with pytest.raises(InputError, match=f"cannot listen on port {port}"):
        await Simulator(TIMES).start(port)
    await simulator.stop()
    with pytest.raises(InputError):
        SimulatedTimes(ttft_ms=-1)
    with pytest.raises(InputError):
        SimulatedTimes(output_tokens=0)


async def test_calibration_compares_reads_with_writes() -> None:
    found = await calibrate(2, TIMES)
    assert found["schema"] == "phasegate-calibration/1"
    assert found["read_error_ms"]["n"] == 2 * 4 * 8
    assert 0 < found["read_error_ms"]["p50"] < 50
    assert found["request_error_ms"]["p50"] > 0
    assert found["self_check"]["dispatch_delay_ms"]["n"] == 8


async def test_conformance_names_the_habits() -> None:
    simulator = Simulator(TIMES)
    port = await simulator.start(0)
    steps: list[tuple[int, int]] = []
    found = await conformance(
        f"http://127.0.0.1:{port}/v1", MODEL, on_step=lambda done, of: steps.append((done, of))
    )
    await simulator.stop()
    habits = {habit["code"]: habit for habit in found["habits"]}
    assert found["dialect"]["name"] == "generic"
    assert habits["one_piece"]["effect"] == "not_seen"
    assert habits["no_usage"]["effect"] == "not_seen"
    assert habits["role_chunk"]["effect"] == "not_seen"
    assert habits["done_after_failure"]["seen"] == "sent after a complete answer"
    assert habits["not_streamed"]["seen"] == "success, finish reason stop"
    assert habits["leaving"]["seen"].startswith("cancelled")
    assert habits["early_headers"]["effect"] == "misleads"
    assert steps == [(n, 8) for n in range(1, 9)]


async def test_an_endpoint_that_is_not_there_is_unavailable() -> None:
    server = await asyncio.start_server(lambda r, w: w.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    with pytest.raises(TargetUnavailable, match=f"cannot reach http://127.0.0.1:{port}/v1"):
        await conformance(f"http://127.0.0.1:{port}/v1", "m")
