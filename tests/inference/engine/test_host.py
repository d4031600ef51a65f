"""The host of an engine process without a model: deaths, silence and crash loops, and nothing left behind."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from inference.engine import host as host_module
from inference.engine.crashes import EARLY_S, LIMIT, PAUSES_S, Crashes
from inference.engine.host import EngineHost, Retired
from inference.engine.options import EngineOptions
from inference.errors import TargetUnavailable
from inference.phases import derive
from inference.records import RequestRecord, Trace
from inference.requests import GenerationRequest
from inference.targets.embedded import EngineTarget
from inference.targets.switch_report import SwitchFailed
from tests.inference.engine import fake_child

FAKE = (sys.executable, "-P", str(Path(fake_child.__file__)))


@pytest.fixture(autouse=True)
def _fake_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("a", "dies", "dies-too"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(host_module, "CHILD", FAKE)


async def started(target: EngineTarget, prompt: str = "endless") -> tuple[asyncio.Task[None], Trace, int]:
    """A request that is being answered, and the process that does it."""
    await target.open()
    pid = target.process_id
    assert pid is not None
    trace = Trace("r")
    asked = GenerationRequest(id="r", prompt=prompt, max_tokens=3)
    task = asyncio.create_task(target.run(asked, trace))
    async with asyncio.timeout(20):
        while not trace.token_ns:  # noqa: ASYNC110  the other side is a thread
            await asyncio.sleep(0)
    return task, trace, pid


async def ended(task: asyncio.Task[None], trace: Trace) -> RequestRecord:
    await asyncio.wait_for(task, 20)
    asked = GenerationRequest(id="r", prompt="endless", max_tokens=3)
    return derive(trace, asked, open_loop=False)


async def answers(target: EngineTarget) -> bool:
    await target.open()
    trace = Trace("r")
    await target.run(GenerationRequest(id="r", prompt="short", max_tokens=3), trace)
    return trace.finished_ns is not None


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (signal.SIGKILL, "ended by SIGKILL"),
        (signal.SIGSEGV, "ended by SIGSEGV"),
        (signal.SIGSTOP, "'stopped'"),
    ],
)
async def test_a_process_that_dies_or_stops_fails_its_requests_and_the_next_open_works(
    tmp_path: Path, number: signal.Signals, reason: str
) -> None:
    target = EngineTarget(tmp_path / "a", mute_limit_s=0.5)
    task, trace, pid = await started(target)
    os.kill(pid, number)
    record = await ended(task, trace)
    assert record.outcome == "failed"
    assert record.output_tokens == 3
    assert reason in (record.error or "")
    assert not psutil.pid_exists(pid)  # ended, and no zombie either
    with pytest.raises(TargetUnavailable, match=reason):
        await target.telemetry()
    assert await answers(target)
    await target.close()


async def test_a_closed_target_has_no_process_and_can_be_opened_again(tmp_path: Path) -> None:
    target = EngineTarget(tmp_path / "a")
    assert await answers(target)
    await target.close()
    await target.close()
    assert target.process_id is None
    with pytest.raises(TargetUnavailable, match="not open"):
        await target.telemetry()
    assert await answers(target)
    await target.close()


async def test_a_process_that_breaks_says_why(tmp_path: Path) -> None:
    target = EngineTarget(tmp_path / "a")
    task, trace, _ = await started(target, prompt="crash")
    assert (await ended(task, trace)).error == "The engine process ended with code 3: It broke."
    await target.close()


async def test_memory_that_ran_out_is_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counter = tmp_path / "memory.events"
    counter.write_text("oom 7\noom_kill 3\n")
    monkeypatch.setattr("inference.engine.memory.OOM_COUNTERS", (tmp_path / "absent", counter))
    target = EngineTarget(tmp_path / "a")
    task, trace, pid = await started(target)
    counter.write_text("oom 8\noom_kill 4\n")
    os.kill(pid, signal.SIGKILL)
    assert "by the kernel, since memory ran out" in ((await ended(task, trace)).error or "")
    await target.close()


async def test_a_process_that_is_stopped_while_it_loads_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_module, "LOADING_PATIENCE", 1)
    host = EngineHost(EngineOptions(path=str(tmp_path / "hangs")), mute_limit_s=0.5)
    opening = asyncio.create_task(asyncio.to_thread(host.start))
    async with asyncio.timeout(20):
        while host.pid is None:  # noqa: ASYNC110  the other side is a thread
            await asyncio.sleep(0)
    os.kill(host.pid, signal.SIGSTOP)
    with pytest.raises(TargetUnavailable, match="gave no sign of life"):
        await opening
    assert host.crashed


def test_a_prepared_process_waits_to_be_told(tmp_path: Path) -> None:
    host = EngineHost(EngineOptions(path=str(tmp_path / "a")))
    host.prepare()
    assert not host.alive
    assert host.pid is not None
    assert host.start()["model"] == "a"
    assert host.alive
    host.close()


def test_a_prepared_process_that_is_not_needed_ends(tmp_path: Path) -> None:
    host = EngineHost(EngineOptions(path=str(tmp_path / "a")))
    host.prepare()
    assert host.pid is not None
    host.close("Not needed.")
    assert not psutil.pid_exists(host.pid)
    with pytest.raises(TargetUnavailable, match="Not needed"):
        host.start()


def test_a_process_that_cannot_be_prepared_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_module, "CHILD", ("/bin/sh", "-c", "echo nothing works >&2; exit 9"))
    host = EngineHost(EngineOptions(path=str(tmp_path / "a")))
    with pytest.raises(TargetUnavailable, match="code 9: nothing works"):
        host.prepare()
    monkeypatch.setattr(host_module, "CHILD", (str(tmp_path / "absent"),))
    with pytest.raises(TargetUnavailable, match="could not be started: No such file"):
        EngineHost(EngineOptions(path=str(tmp_path / "a"))).prepare()


def test_closing_while_it_loads_ends_the_process_at_once(tmp_path: Path) -> None:
    host = EngineHost(EngineOptions(path=str(tmp_path / "hangs")))
    host._thread.start()
    while host.pid is None:
        pass
    host.close("Enough.")
    assert not psutil.pid_exists(host.pid)
    with pytest.raises(TargetUnavailable, match="Enough"):
        host._ready.result()
    assert not host.crashed


def test_what_the_process_started_ends_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The shell between host and process here stands for anything that the engine might start."""
    command = " ".join(FAKE)
    monkeypatch.setattr(host_module, "CHILD", ("/bin/sh", "-c", f'sleep 600 & {command} "$0"'))
    host = EngineHost(EngineOptions(path=str(tmp_path / "a")))
    host.start()
    assert host.pid is not None
    family = psutil.Process(host.pid).children(recursive=True)
    assert len(family) == 2
    psutil.Process(host.pid).kill()
    host.wait_idle()
    host.close()
    assert not psutil.wait_procs(family, timeout=10)[1]


def test_a_host_that_is_killed_leaves_no_process(tmp_path: Path) -> None:
    script = (
        "import sys, time\n"
        "from inference.engine import host\n"
        "from inference.engine.options import EngineOptions\n"
        f"host.CHILD = {FAKE!r}\n"
        f"one = host.EngineHost(EngineOptions(path={str(tmp_path / 'a')!r}))\n"
        "one.start()\n"
        "print(one.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    parent = subprocess.Popen([sys.executable, "-P", "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    engine = psutil.Process(int(parent.stdout.readline()))
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert not psutil.wait_procs([engine], timeout=10)[1]


def test_a_retired_engine_takes_nobody_in(tmp_path: Path) -> None:
    host = EngineHost(EngineOptions(path=str(tmp_path / "a")))
    host.start()
    handle = host.subscribe(lambda ns, events: None)
    host.retire()
    with pytest.raises(Retired):
        host.subscribe(lambda ns, events: None)
    assert not host.wait_idle(0.01)
    host.unsubscribe(handle)
    assert host.wait_idle()
    host.close()


async def test_a_model_that_dies_at_every_start_is_not_started_for_ever(tmp_path: Path) -> None:
    target = EngineTarget(tmp_path / "dies")
    for _ in range(LIMIT):
        with pytest.raises(TargetUnavailable, match="process was ended by SIGKILL"):
            await target.open()
    with pytest.raises(
        TargetUnavailable, match=f"dies has ended at each of its last {LIMIT} starts.*SIGKILL"
    ):
        await target.open()
    report = await target.switch(tmp_path / "a")  # another model has nothing to do with it
    assert report.outcome == "switched"
    with pytest.raises(SwitchFailed, match="has ended at each of its last") as failed:
        await target.switch(tmp_path / "dies")
    assert failed.value.report.outcome == "kept"
    for _ in range(LIMIT):
        with pytest.raises(SwitchFailed, match="SIGKILL"):
            await target.switch(tmp_path / "dies-too")
    with pytest.raises(SwitchFailed, match="dies-too has ended at each of its last"):
        await target.switch(tmp_path / "dies-too")
    assert await answers(target)
    await target.close()


async def test_a_model_that_dies_right_after_every_start_is_noticed_too(tmp_path: Path) -> None:
    target = EngineTarget(tmp_path / "a")
    for _ in range(LIMIT):
        task, trace, _ = await started(target, prompt="crash")
        await ended(task, trace)
    with pytest.raises(TargetUnavailable, match=r"is not started again for 60 s\. The last time:.*It broke"):
        await target.open()
    await target.close()


async def test_a_model_that_cannot_be_loaded_may_be_tried_at_any_time(tmp_path: Path) -> None:
    target = EngineTarget(tmp_path / "bad")
    for _ in range(LIMIT + 1):
        with pytest.raises(TargetUnavailable, match="There is no model"):
            await target.open()


def test_early_ends_in_a_row_are_counted() -> None:
    clock = [0.0]
    crashes = Crashes(now=lambda: clock[0])

    def early(times: int) -> None:
        for _ in range(times):
            crashes.ended("Boom.", ready_s=None, served=False)

    early(LIMIT - 1)
    assert crashes.refusal("m") is None
    crashes.ended("Later.", ready_s=EARLY_S + 1, served=False)
    early(LIMIT - 1)
    crashes.ended("It has served.", ready_s=1.0, served=True)
    early(LIMIT - 1)
    assert crashes.refusal("m") is None
    for pause_s in (*PAUSES_S, PAUSES_S[-1]):
        early(1)
        assert "Boom." in (crashes.refusal("m") or "")
        clock[0] += pause_s - 1
        assert crashes.refusal("m") is not None
        clock[0] += 1
        assert crashes.refusal("m") is None  # one more try
