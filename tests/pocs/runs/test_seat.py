"""The engine's seat: one run alone, or live requests together, and nobody waits unseen."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from inference.engine.options import EngineOptions
from inference.errors import TargetUnavailable
from inference.targets.base import TargetInfo
from inference.targets.embedded import EngineTarget
from inference.targets.switch_report import SwitchFailed, SwitchReport
from pocs.runs.choices import TargetKind
from pocs.runs.models import Target
from pocs.runs.seat import EngineSeat

TARGET = Target(name="small", kind=TargetKind.ENGINE, location="models/small")


@pytest.fixture
def seat() -> EngineSeat:
    return EngineSeat()


def seen(seat: EngineSeat, condition: Callable[[], bool]) -> threading.Event:
    """Set once the condition holds after something has changed."""
    event = threading.Event()

    def look() -> None:
        if condition():
            event.set()

    seat.listen(look)
    return event


def test_live_requests_share_what_no_run_holds(seat: EngineSeat) -> None:
    assert seat.wanted_by is None
    assert seat.share()
    assert seat.share()
    with ThreadPoolExecutor(1) as pool:
        wanted = seen(seat, lambda: seat.wanted_by is not None)
        run: Future[bool] = pool.submit(lambda: _held(seat, run_id=7))
        assert wanted.wait(10)
        assert seat.wanted_by is not None
        assert seat.wanted_by.run_id == 7
        assert not seat.share()
        assert not run.done()
        seat.unshare()
        assert run.result(10)
    assert seat.wanted_by is None
    assert seat.share()


def _held(seat: EngineSeat, run_id: int) -> bool:
    with seat.hold(TARGET, run_id):
        return not seat.share() and seat.wanted_by is not None and seat.wanted_by.run_id == run_id


def test_runs_come_one_after_another(seat: EngineSeat) -> None:
    inside, leave = threading.Event(), threading.Event()

    def first() -> None:
        with seat.hold(TARGET, 1):
            inside.set()
            assert leave.wait(10)

    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(first)
        assert inside.wait(10)
        two = pool.submit(_held, seat, 2)
        assert not two.done()
        leave.set()
        one.result(10)
        assert two.result(10)


def test_whoever_stops_listening_hears_nothing_more(seat: EngineSeat) -> None:
    calls: list[int] = []
    end = seat.listen(lambda: calls.append(1))
    with seat.hold(TARGET, 1):
        assert calls
    end()
    heard = len(calls)
    with seat.hold(TARGET, 2):
        assert len(calls) == heard


def test_an_error_inside_gives_the_seat_back(seat: EngineSeat) -> None:
    with pytest.raises(ZeroDivisionError), seat.hold(TARGET, 1):
        _ = 1 / 0
    assert seat.share()


class Switching:
    """Stands in for the process below the seat's engine: loads whatever is not called broken."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.loaded: list[str] = []

        async def switch(engine: EngineTarget, path: str, **settings: Any) -> SwitchReport:
            return self._switch(engine, path, settings)

        async def opened(engine: EngineTarget) -> TargetInfo:
            return TargetInfo("engine", engine.options.path)

        monkeypatch.setattr(EngineTarget, "switch", switch)
        monkeypatch.setattr(EngineTarget, "open", opened)

    def _switch(self, engine: EngineTarget, path: str, settings: dict[str, Any]) -> SwitchReport:
        report = SwitchReport(
            how="beside", how_reason="asked for", source=None, target={"path": path}, started_at="2026-01-01"
        )
        if "broken" in path:
            report.outcome, report.reason = "kept", "It is broken."
            raise SwitchFailed("It is broken. secret/model goes on answering.", report)
        report.outcome = "switched"
        self.loaded.append(path)
        engine.options = EngineOptions(path=path, **settings)
        return report


def stored(pk: int, location: str, **settings: Any) -> Target:
    return Target(pk=pk, name=location, kind=TargetKind.ENGINE, location=location, engine_settings=settings)


def test_the_engine_is_switched_when_it_is_opened_and_every_switch_is_told(
    seat: EngineSeat, monkeypatch: pytest.MonkeyPatch
) -> None:
    switching, told = Switching(monkeypatch), []
    seat.record_switches(told.append)
    for run_id, target in enumerate((stored(1, "small"), stored(2, "small"), stored(3, "large")), start=11):
        with seat.hold(target, run_id) as engine:
            asyncio.run(engine.open())
            assert not told or told[-1].run_id < run_id  # told when the run has ended
        assert engine.serves is not None
        assert engine.serves.target_id == target.pk
    assert switching.loaded == ["small", "large"]
    assert [(one.source_id, one.target_id, one.run_id) for one in told] == [(None, 1, 11), (2, 3, 13)]


def test_a_switch_that_fails_leaves_the_model_before_in_its_place(
    seat: EngineSeat, monkeypatch: pytest.MonkeyPatch
) -> None:
    switching, told = Switching(monkeypatch), []
    seat.record_switches(told.append)
    small, broken = stored(1, "small"), stored(2, "broken")
    with seat.hold(small) as engine:
        asyncio.run(engine.open())
    with pytest.raises(TargetUnavailable, match="It is broken") as failed, seat.hold(broken) as engine:
        asyncio.run(engine.open())
    assert "secret" not in str(failed.value)
    assert engine.serves is not None
    assert engine.serves.target_id == 1
    with seat.hold(small) as engine:
        asyncio.run(engine.open())
    assert switching.loaded == ["small"]
    assert [(one.source_id, one.target_id, one.report.outcome) for one in told] == [
        (None, 1, "switched"),
        (1, 2, "kept"),
    ]
