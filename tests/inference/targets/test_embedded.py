"""The embedded engine as a target: a real process, traces that add up, and deaths that hang nobody."""

import asyncio
import os
import resource
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from inference.engine import child as child_module
from inference.engine import frames
from inference.engine.host import EngineHost
from inference.errors import InputError, TargetUnavailable
from inference.phases import SUMMED, derive
from inference.records import RequestRecord, Trace
from inference.requests import CancelRule, GenerationRequest
from inference.targets.embedded import EngineTarget
from tests.inference.engine.conftest import byte_tokenizer, tiny_config, tiny_model

SETTINGS: dict[str, Any] = {"dtype": "float32", "threads": 1, "kv_blocks": 64, "block_tokens": 4}


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "tiny-llama"
    tiny_model(tiny_config()).save_pretrained(folder)
    byte_tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def shared(tiny_folder: Path) -> Iterator[EngineTarget]:
    """One engine process for all tests that leave it as it was: starting one takes seconds."""
    one = EngineTarget(tiny_folder, max_batch=4, prefill_chunk_tokens=16, **SETTINGS)
    asyncio.run(one.open())
    yield one
    asyncio.run(one.close())


@pytest.fixture
async def target(shared: EngineTarget) -> AsyncIterator[EngineTarget]:
    """The shared engine, cold; at the end of the test no block may be held."""
    await shared.reset_prefix_cache()
    yield shared
    told = await shared.telemetry()
    assert (told["running"], told["waiting"], told["kv_blocks_used"]) == (0, 0, 0)


@pytest.fixture
async def own_target(tiny_folder: Path) -> AsyncIterator[EngineTarget]:
    """An engine of its own, for a test that ends it."""
    one = EngineTarget(tiny_folder, **SETTINGS)
    await one.open()
    yield one
    await one.close()


def request(name: str = "r", length: int = 6, **fields: Any) -> GenerationRequest:
    ids = tuple(10 + (at * 7 + length) % 200 for at in range(length))
    return GenerationRequest(id=name, prompt_token_ids=ids, ignore_eos=True, **fields)


async def run(target: EngineTarget, asked: GenerationRequest) -> tuple[Trace, RequestRecord]:
    trace = Trace(asked.id)
    await target.run(asked, trace)
    return trace, derive(trace, asked, open_loop=False)


async def test_concurrent_requests_have_intervals_that_add_up(target: EngineTarget) -> None:
    asked = [request(f"r{n}", length=3 + 11 * n, max_tokens=2 + n) for n in range(6)]
    for trace, record in await asyncio.gather(*[run(target, one) for one in asked]):
        assert record.outcome == "success"
        assert record.finish_reason == "length"
        assert record.output_tokens_source == "engine"
        assert record.output_tokens == len(record.token_ids or []) == len(trace.token_ns)
        stamps = [trace.sent_ns, trace.queued_ns, *trace.admitted_ns, *trace.token_ns, trace.finished_ns]
        stamps += [trace.freed_ns, trace.closed_ns]
        assert all(stamp is not None for stamp in stamps)
        assert stamps == sorted(stamps, key=lambda stamp: stamp or 0)
        assert sum(record.intervals_ms[name] or 0.0 for name in SUMMED) == pytest.approx(record.e2e_ms, abs=1)
        assert abs(record.intervals_ms["unexplained"] or 0.0) < 1
        assert sum(tokens for _, _, tokens in trace.chunks) == trace.input_tokens
        assert len(trace.decode_steps) == len(trace.token_ns) - 1
        assert sum(tokens or 0 for _, tokens in trace.reads) == record.output_tokens
        assert all(read_ns >= trace.token_ns[0] for read_ns, _ in trace.reads)


async def first_token(trace: Trace) -> None:
    while not trace.token_ns:
        assert trace.closed_ns is None, trace.error
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("rule", "admitted", "tokens"),
    [
        (CancelRule(phase="queue"), 0, 0),
        (CancelRule(phase="prefill"), 1, 0),
        (CancelRule(phase="decode", after_tokens=3), 1, 3),
    ],
)
async def test_a_client_that_leaves_is_counted_and_freed(
    target: EngineTarget, rule: CancelRule, admitted: int, tokens: int
) -> None:
    before = (await target.telemetry())["aborted_total"]
    trace, record = await run(target, request(length=100, max_tokens=100, cancel=rule))
    assert record.outcome == "cancelled"
    assert len(trace.admitted_ns) == admitted
    assert (record.output_tokens or 0) >= tokens
    assert (record.output_tokens or 0) < 100
    assert trace.freed_ns is not None
    assert record.error is None
    assert (await target.telemetry())["aborted_total"] == before + 1


async def test_a_cancelled_task_aborts_its_request_before_it_ends(target: EngineTarget) -> None:
    asked, trace = request(max_tokens=200), Trace("r")
    task = asyncio.create_task(target.run(asked, trace))
    await first_token(trace)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert trace.ended == "client"
    assert trace.aborted_ns is not None
    assert trace.freed_ns is not None
    assert (await target.telemetry())["kv_blocks_used"] == 0


async def test_what_cannot_be_served_is_refused_and_others_go_on(target: EngineTarget) -> None:
    (_, fits), (trace, refused) = await asyncio.gather(
        run(target, request("fits", max_tokens=5)), run(target, request("long", length=300, max_tokens=5))
    )
    assert fits.outcome == "success"
    assert refused.outcome == "rejected"
    assert "KV cache has room for 256" in (refused.error or "")
    assert trace.queued_ns is None
    _, duplicate = (await asyncio.gather(*[run(target, request("same", max_tokens=200)) for _ in range(2)]))[
        1
    ]
    assert duplicate.outcome == "rejected"


async def test_messages_text_and_stop_strings_pass_the_wire(target: EngineTarget) -> None:
    message = {"role": "user", "content": "你好"}
    _, chat = await run(target, GenerationRequest(id="c", messages=(message,), max_tokens=8, ignore_eos=True))
    assert chat.input_tokens == len("user: 你好\nassistant: ".encode())
    assert chat.ttfv_ms is not None or not chat.text
    _, free = await run(target, request(max_tokens=40))
    stop = free.text[8:11]
    _, stopped = await run(target, request(max_tokens=40, stop=(stop,)))
    assert stopped.text == free.text[: free.text.index(stop)]
    assert stopped.finish_reason == "stop"
    assert target.tokenize("ab") == byte_tokenizer()("ab").input_ids


async def test_the_prefix_cache_serves_until_it_is_reset(target: EngineTarget) -> None:
    before = await target.telemetry()
    asked = request(length=16, max_tokens=2)
    cold, warm = [(await run(target, asked))[1] for _ in range(2)]
    assert (cold.cached_tokens, warm.cached_tokens) == (0, 15)
    await target.reset_prefix_cache()
    assert (await run(target, asked))[1].cached_tokens == 0
    told = await target.telemetry()
    assert told["prefix_cache_queries_total"] - before["prefix_cache_queries_total"] == 48
    assert told["prefix_cache_hits_total"] - before["prefix_cache_hits_total"] == 15


async def test_telemetry_and_information(target: EngineTarget) -> None:
    info = await target.open()
    assert info is await target.open()  # free while it is open
    assert info.kind == "engine"
    assert info.max_model_tokens == 512
    configuration = info.configuration
    assert configuration["model_digest"].startswith("sha256:")
    assert configuration["architecture"] == "LlamaForCausalLM"
    assert configuration["engine"]["kv_blocks"] == 64
    assert configuration["engine"]["threads"] == 1
    assert {"python", "torch", "transformers"} <= configuration["versions"].keys()
    told = await target.telemetry()
    assert told["kv_pool_bytes"] == configuration["kv_pool_bytes"]
    assert told["rss_bytes"] > told["weights_bytes"] > 0
    assert (told["running"], told["waiting"], told["kv_used_bytes"]) == (0, 0, 0)
    assert "batch_phase" not in told


def test_one_target_serves_one_event_loop_after_another(shared: EngineTarget) -> None:
    async def session() -> tuple[int | None, RequestRecord]:
        await shared.open()
        return shared.process_id, (await run(shared, request(max_tokens=4)))[1]

    (first_pid, first), (second_pid, second) = asyncio.run(session()), asyncio.run(session())
    assert first_pid == second_pid
    assert first.token_ids == second.token_ids


async def test_a_killed_engine_fails_its_requests_and_the_next_open_works(own_target: EngineTarget) -> None:
    asked, trace = request(max_tokens=200), Trace("r")
    task = asyncio.create_task(own_target.run(asked, trace))
    await first_token(trace)
    pid = own_target.process_id
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    await asyncio.wait_for(task, 10)
    record = derive(trace, asked, open_loop=False)
    assert record.outcome == "failed"
    assert "SIGKILL" in (record.error or "")
    assert record.output_tokens
    with pytest.raises(TargetUnavailable, match="SIGKILL"):
        await own_target.telemetry()
    _, late = await run(own_target, request(max_tokens=2))
    assert late.outcome == "failed"
    await own_target.open()
    assert own_target.process_id != pid
    assert (await run(own_target, request(max_tokens=2)))[1].outcome == "success"


async def test_a_switch_closes_the_old_engine_and_a_failed_one_leaves_it(
    own_target: EngineTarget, tmp_path: Path
) -> None:
    old = own_target.process_id
    with pytest.raises(TargetUnavailable, match="There is no model"):
        await own_target.switch(tmp_path / "nowhere")
    assert own_target.process_id == old
    _, before = await run(own_target, request(max_tokens=6))
    other = tmp_path / "other"
    tiny_model(tiny_config(), seed=5).save_pretrained(other)
    byte_tokenizer().save_pretrained(other)
    report = await own_target.switch(other)
    assert (report.outcome, report.how, report.target["model"]) == ("switched", "beside", "other")
    assert report.source is not None
    assert report.source["model"] == "tiny-llama"
    assert report.source["model_digest"] != report.target["model_digest"]
    assert report.load_ms is not None
    assert {"start", "digest", "read", "allocate", "probe", "first_step", "total"} == report.load_ms.keys()
    stages = [took for name, took in report.load_ms.items() if name != "total"]
    assert 0 < sum(stages) <= report.load_ms["total"]
    assert report.load_ms["total"] == pytest.approx(report.stages_ms["load"], abs=50)
    assert report.memory.back_to_baseline
    assert old is not None
    assert not psutil.pid_exists(old)
    _, after = await run(own_target, request(max_tokens=6))
    assert after.cached_tokens == 0
    assert after.token_ids != before.token_ids


async def test_a_model_that_cannot_be_loaded_leaves_no_process(tmp_path: Path) -> None:
    path = tmp_path / "broken.gguf"
    path.write_bytes(b"GGUF and nothing else")
    one = EngineTarget(path)
    children = set(psutil.Process().children())
    with pytest.raises(TargetUnavailable, match="broken or truncated GGUF"):
        await one.open()
    assert one.process_id is None
    assert set(psutil.Process().children()) <= children


def test_a_step_that_hangs_ends_the_process_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair()
    child = child_module.Child(theirs)
    child.engine = SimpleNamespace(statistics=SimpleNamespace(running_since_ns=0))  # type: ignore[assignment]

    def end(code: int) -> None:
        raise SystemExit(code)

    monkeypatch.setattr(child_module.os, "_exit", end)
    with pytest.raises(SystemExit):
        child.watch(0.5)
    assert frames.read(ours) == [["stuck", "The engine was stuck: a step took longer than 0.5 s."]]
    ours.close()
    theirs.close()


def test_the_engine_dies_with_its_host(tiny_folder: Path) -> None:
    started = EngineHost(EngineTarget(tiny_folder, **SETTINGS).options)
    started.start()
    process = psutil.Process(started.pid)
    assert started._sock is not None
    started._sock.shutdown(2)  # what the kernel does when the host's process ends
    assert psutil.wait_procs([process], timeout=10)[0]
    started.close()


def test_settings_are_refused_before_anything_starts(tiny_folder: Path) -> None:
    with pytest.raises(InputError, match="dtype 'int3' is unknown"):
        EngineTarget(tiny_folder, dtype="int3")


async def test_a_step_without_memory_fails_its_requests_and_nothing_else(tmp_path: Path) -> None:
    """The address space of a real process is cut so far that one large step cannot have its workspace."""
    folder = tmp_path / "wide"
    tiny_model(tiny_config(intermediate_size=16384, max_position_embeddings=4096)).save_pretrained(folder)
    byte_tokenizer().save_pretrained(folder)
    target = EngineTarget(folder, dtype="float32", threads=1, kv_blocks=128, prefill_chunk_tokens=3000)
    await target.open()
    pid = target.process_id
    assert pid is not None
    unlimited = resource.prlimit(pid, resource.RLIMIT_AS)
    resource.prlimit(pid, resource.RLIMIT_AS, (psutil.Process(pid).memory_info().vms + 2**24, unlimited[1]))
    _, starved = await asyncio.wait_for(run(target, request(length=3000, max_tokens=2)), 60)
    assert starved.outcome == "failed"
    assert starved.error
    if target.process_id is not None:
        resource.prlimit(pid, resource.RLIMIT_AS, unlimited)
        assert "memory" in starved.error
        assert (await target.telemetry())["oom_total"] == 1
        assert (await target.telemetry())["kv_blocks_used"] == 0
    await target.open()
    assert (await run(target, request(max_tokens=2)))[1].outcome == "success"
    await target.close()
