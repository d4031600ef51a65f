"""Model switches against a process without a model: who answers afterwards, who waited, who failed."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import psutil
import pytest

from inference.engine import host as host_module
from inference.engine.estimate import Need
from inference.engine.options import EngineOptions
from inference.errors import InputError, TargetUnavailable
from inference.phases import derive
from inference.records import RequestRecord, Trace
from inference.requests import GenerationRequest
from inference.targets import switching
from inference.targets.embedded import EngineTarget
from inference.targets.switch_report import SwitchFailed, SwitchReport
from tests.inference.engine import fake_child

MODES = ("beside", "unload_first")


@pytest.fixture(autouse=True)
def _fake_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_module, "CHILD", (sys.executable, "-P", str(Path(fake_child.__file__))))


@pytest.fixture(autouse=True)
def _folders(tmp_path: Path) -> None:
    """What a model does is in its name; its folder only has to be there."""
    for name in ("a", "b", "bad", "dies", "hangs", "nan"):
        (tmp_path / name).mkdir()


@pytest.fixture
async def target(tmp_path: Path) -> AsyncIterator[EngineTarget]:
    """Open on model `a`; whatever a test does, no process may be left at the end."""
    one = EngineTarget(tmp_path / "a")
    await one.open()
    yield one
    await one.close()
    assert not engine_processes()


def engine_processes() -> list[psutil.Process]:
    return [one for one in psutil.Process().children() if "fake_child" in " ".join(one.cmdline())]


def request(name: str = "r", prompt: str = "short") -> GenerationRequest:
    return GenerationRequest(id=name, prompt=prompt, max_tokens=3)


async def run(target: EngineTarget, asked: GenerationRequest) -> tuple[Trace, RequestRecord]:
    trace = Trace(asked.id)
    await target.run(asked, trace)
    return trace, derive(trace, asked, open_loop=False)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110  the other side is a thread
            await asyncio.sleep(0)


async def serving(target: EngineTarget) -> str:
    """The model that answers now."""
    assert (await run(target, request("probe")))[1].outcome == "success"
    return (await target.open()).model


def told(report: SwitchReport) -> dict[str, object]:
    found = report.to_dict()
    assert found["from"]["model"] == "a"
    assert report.memory.peak_bytes is not None
    assert report.memory.before_bytes is not None
    assert report.memory.peak_bytes >= report.memory.before_bytes > 0
    assert report.memory.back_to_baseline
    assert sum(report.stages_ms.values()) <= report.total_ms
    return found


@pytest.mark.parametrize("how", MODES)
async def test_a_switch_puts_the_new_model_in_place(target: EngineTarget, tmp_path: Path, how: str) -> None:
    old = target.process_id
    report = await target.switch(tmp_path / "b", how=how, max_batch=4)  # type: ignore[arg-type]
    assert (report.outcome, report.how, report.reason) == ("switched", how, None)
    assert await serving(target) == "b"
    assert target.options.max_batch == 4
    assert target.process_id != old
    assert not psutil.pid_exists(old or 0)
    found = told(report)
    assert found["to"]["model_digest"] == "sha256:b"  # type: ignore[index]
    load, unload = ["load", "first_good_token"], ["drain", "unload"]
    assert list(report.stages_ms) == (load + unload if how == "beside" else ["prepare", *unload, *load])
    assert report.first_good_token_ms is not None
    assert report.outage_ms is not None
    assert (report.outage_ms > 0) == (how == "unload_first")
    assert report.held_ms >= report.outage_ms


@pytest.mark.parametrize(("how", "outcome"), [("beside", "kept"), ("unload_first", "rolled_back")])
@pytest.mark.parametrize("broken", ["bad", "dies", "nan"])
async def test_a_load_that_fails_leaves_the_old_model_answering(
    target: EngineTarget, tmp_path: Path, how: str, outcome: str, broken: str
) -> None:
    old = target.process_id
    with pytest.raises(SwitchFailed) as failed:
        await target.switch(tmp_path / broken, how=how)  # type: ignore[arg-type]
    report = failed.value.report
    assert report.outcome == outcome
    reason = {"bad": "There is no model", "dies": "SIGKILL", "nan": "Not numbers"}[broken]
    assert reason in (report.reason or "")
    assert reason in str(failed.value)
    assert await serving(target) == "a"
    assert target.options.path == str(tmp_path / "a")
    assert (target.process_id == old) == (outcome == "kept")
    told(report)
    assert ("rollback_load" in report.stages_ms) == (outcome == "rolled_back")
    assert report.requests.failed == 0


async def test_nothing_is_lost_without_saying_so_when_the_way_back_fails_too(
    target: EngineTarget, tmp_path: Path
) -> None:
    once = tmp_path / "once-only"
    once.mkdir()
    (once / "once").touch()
    await target.switch(once, how="beside")
    switching_now = asyncio.create_task(target.switch(tmp_path / "bad", how="unload_first"))
    await until(lambda: target.process_id is None)
    trace, waiting = await run(target, request("waiting"))
    with pytest.raises(SwitchFailed) as failed:
        await switching_now
    report = failed.value.report
    assert report.outcome == "lost"
    assert "There is no model" in (report.reason or "")
    assert "SIGKILL" in (report.rollback_reason or "")
    assert report.outage_ms is None
    assert report.memory.after_bytes == 0
    assert waiting.outcome == "failed"
    assert "There is no model" in (waiting.error or "")
    assert "SIGKILL" in (waiting.error or "")
    assert trace.model_load_ns > 0
    assert (report.requests.waited, report.requests.failed) == (1, 1)
    with pytest.raises(TargetUnavailable, match="There is no model"):
        await target.telemetry()


async def test_requests_that_arrive_while_nothing_is_loaded_wait_and_are_served(
    target: EngineTarget, tmp_path: Path
) -> None:
    switching_now = asyncio.create_task(target.switch(tmp_path / "b", how="unload_first"))
    await until(lambda: target.process_id is None)
    found = await asyncio.gather(*[run(target, request(f"r{n}")) for n in range(5)])
    report = await switching_now
    assert [record.outcome for _, record in found] == ["success"] * 5
    assert (report.requests.waited, report.requests.failed, report.requests.refused) == (5, 0, 0)
    for trace, record in found:
        assert trace.model_load_ns > 0
        waited = record.intervals_ms["queue_wait"]
        assert waited is not None
        assert waited >= (record.intervals_ms["model_load"] or 0.0) > 0


async def test_the_queue_before_a_switch_is_bounded(tmp_path: Path) -> None:
    target = EngineTarget(tmp_path / "a", max_waiting=2)
    await target.open()
    switching_now = asyncio.create_task(target.switch(tmp_path / "b", how="unload_first"))
    await until(lambda: target.process_id is None)
    left = asyncio.create_task(run(target, request("left")))
    await asyncio.sleep(0)
    left.cancel()
    with pytest.raises(asyncio.CancelledError):
        await left
    records = [
        record for _, record in await asyncio.gather(*[run(target, request(f"{n}")) for n in range(4)])
    ]
    report = await switching_now
    assert sorted(record.outcome for record in records) == ["rate_limited"] * 2 + ["success"] * 2
    assert (report.requests.waited, report.requests.refused, report.requests.failed) == (3, 2, 2)
    await target.close()


@pytest.mark.parametrize("how", MODES)
async def test_open_requests_end_before_their_model_is_unloaded(
    target: EngineTarget, tmp_path: Path, how: str
) -> None:
    trace = Trace("open")
    task = asyncio.create_task(target.run(request("open", prompt="endless"), trace))
    await until(lambda: bool(trace.token_ns))
    switching_now = asyncio.create_task(target.switch(tmp_path / "b", how=how))  # type: ignore[arg-type]
    if how == "beside":
        await until(lambda: target.options.path.endswith("a") and _model(target) == "b")
        assert not task.done()  # the new model answers, the old one has its open request still
        assert (await run(target, request("new")))[1].outcome == "success"
    await until(lambda: target._switch is not None and target._switch.report.requests.drained == 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    report = await switching_now
    assert trace.aborted_ns is not None
    assert (report.requests.drained, report.requests.failed) == (1, 0)


def _model(target: EngineTarget) -> str | None:
    loaded = target._place.loaded
    return loaded.info.model if loaded is not None else None


@pytest.mark.parametrize("how", MODES)
async def test_requests_that_take_too_long_are_cut_with_the_reason(
    target: EngineTarget, tmp_path: Path, how: str
) -> None:
    trace = Trace("open")
    asked = request("open", prompt="endless")
    task = asyncio.create_task(target.run(asked, trace))
    await until(lambda: bool(trace.token_ns))
    report = await target.switch(tmp_path / "b", how=how, drain_limit_s=0.05)  # type: ignore[arg-type]
    await asyncio.wait_for(task, 10)
    record = derive(trace, asked, open_loop=False)
    assert record.outcome == "failed"
    assert "was unloaded for" in (record.error or "")
    assert (report.requests.drained, report.requests.failed) == (0, 1)


@pytest.mark.parametrize(
    ("sizes", "how"),
    [((10, 100), "beside"), ((100, 10), "unload_first")],
)
async def test_memory_decides_where_nobody_else_does(
    target: EngineTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, int], how: str
) -> None:
    need, available = sizes
    found = Need(weights_bytes=0, kv_pool_bytes=need, process_bytes=0)
    monkeypatch.setattr(switching, "need_of", lambda options, **named: found)
    monkeypatch.setattr(switching, "available_bytes", lambda: available)
    report = await target.switch(tmp_path / "b")
    assert report.how == how
    assert "are free" in report.how_reason
    assert (report.memory.need_bytes, report.memory.available_bytes) == (need, available)


@pytest.mark.parametrize(
    ("free", "expected"),
    [
        (100, ("beside", "are free")),
        (5, ("unload_first", "are free")),
        (None, ("unload_first", "nobody tells")),
    ],
)
async def test_on_an_accelerator_its_own_memory_decides(
    target: EngineTarget,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    free: int | None,
    expected: tuple[str, str],
) -> None:
    class Gpu:
        def free_bytes(self, index: int) -> int | None:
            assert index == 1
            return free

        def process_bytes(self, pids: object) -> int:
            return 10

        def close(self) -> None: ...

    def need_of(options: EngineOptions, *, auto_dtype: str | None, on_device: bool) -> Need:
        assert on_device
        return Need(weights_bytes=0, kv_pool_bytes=10, process_bytes=0)

    monkeypatch.setattr(switching, "GpuSampler", Gpu)
    monkeypatch.setattr(switching, "need_of", need_of)
    report = await target.switch(tmp_path / "b", device="cuda:1")
    assert (report.how, report.memory.available_bytes) == (expected[0], free)
    assert expected[1] in report.how_reason


async def test_what_never_fits_is_not_tried(
    target: EngineTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Need(weights_bytes=0, kv_pool_bytes=2**50)
    monkeypatch.setattr(switching, "need_of", lambda options, **named: found)
    old = target.process_id
    with pytest.raises(SwitchFailed, match="would be free") as failed:
        await target.switch(tmp_path / "b")
    assert failed.value.report.outcome == "kept"
    assert failed.value.report.outage_ms == 0
    assert target.process_id == old
    report = await target.switch(tmp_path / "b", how="beside")  # the caller may know better
    assert report.outcome == "switched"


@pytest.mark.parametrize("how", MODES)
async def test_a_switch_that_is_given_up_leaves_the_old_model(
    target: EngineTarget, tmp_path: Path, how: str
) -> None:
    task = asyncio.create_task(target.switch(tmp_path / "hangs", how=how))  # type: ignore[arg-type]
    await until(lambda: any("hangs" in _asked(one) for one in target_hosts(target)))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await target.open()).model == "a"
    assert await serving(target) == "a"


def target_hosts(target: EngineTarget) -> list[host_module.EngineHost]:
    switch = target._switch
    return [host for host in switch.hosts if host.pid is not None] if switch is not None else []


def _asked(host: host_module.EngineHost) -> str:
    return host.options.path


@pytest.mark.parametrize("how", MODES)
async def test_closing_ends_a_switch_and_every_process(
    target: EngineTarget, tmp_path: Path, how: str
) -> None:
    task = asyncio.create_task(target.switch(tmp_path / "hangs", how=how))  # type: ignore[arg-type]
    await until(lambda: any("hangs" in _asked(one) for one in target_hosts(target)))
    waiting = None
    if how == "unload_first":
        await until(lambda: target.process_id is None)
        waiting = asyncio.create_task(run(target, request("waiting")))
    await target.close()
    with pytest.raises(SwitchFailed):
        await task
    if waiting is not None:
        assert (await waiting)[1].outcome == "failed"
    assert not engine_processes()


async def test_a_switch_without_a_model_before(tmp_path: Path) -> None:
    target = EngineTarget(tmp_path / "a")
    with pytest.raises(SwitchFailed, match="No model is loaded") as failed:
        await target.switch(tmp_path / "bad")
    assert failed.value.report.outcome == "kept"
    assert failed.value.report.source is None
    report = await target.switch(tmp_path / "b")
    assert report.outcome == "switched"
    assert await serving(target) == "b"
    await target.close()


async def test_an_old_model_that_dies_meanwhile_is_loaded_again(target: EngineTarget, tmp_path: Path) -> None:
    task = asyncio.create_task(target.switch(tmp_path / "hangs", how="beside"))
    await until(lambda: any("hangs" in _asked(one) for one in target_hosts(target)))
    psutil.Process(target.process_id).kill()
    await until(lambda: target.process_id is None)
    switch = target._switch
    assert switch is not None
    await asyncio.to_thread(switch.abandon, "It takes too long.")
    with pytest.raises(SwitchFailed, match="It takes too long") as failed:
        await task
    assert failed.value.report.outcome == "rolled_back"
    assert (failed.value.report.outage_ms or 0) > 0
    assert await serving(target) == "a"


async def test_a_model_that_is_not_there_is_seen_before_anything_is_unloaded(
    target: EngineTarget, tmp_path: Path
) -> None:
    old = target.process_id
    with pytest.raises(SwitchFailed, match=r"There is no model at .*nowhere") as failed:
        await target.switch(tmp_path / "nowhere", how="unload_first")
    assert (failed.value.report.outcome, failed.value.report.stages_ms) == ("kept", {})
    assert target.process_id == old


async def test_without_room_no_process_is_prepared(
    target: EngineTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(switching, "available_bytes", lambda: 0)
    report = await target.switch(tmp_path / "b", how="unload_first")
    assert "prepare" not in report.stages_ms
    assert report.outcome == "switched"


async def test_wrong_settings_change_nothing(target: EngineTarget, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no setting 'colour'"):
        await target.switch(tmp_path / "b", colour="red")
    with pytest.raises(InputError, match="how must be"):
        await target.switch(tmp_path / "b", how="somehow")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="max-batch"):
        await target.switch(tmp_path / "b", max_batch=0)
    assert await serving(target) == "a"
