"""The engine's seat: one run alone, or live requests together, and nobody waits unseen."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

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
