"""What goes wrong or gets in the way: clients that leave, runs, full queues, dead workers, a lost broker."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import httpx2 as httpx
import openai
import pytest
import redis
from openai import OpenAI

from pocs.runs.models import Target
from pocs.serving import line, queue, ticket, wire
from pocs.serving.desk import Desk
from pocs.serving.pace import HELD_S
from tests.factories import Cast, make_project, make_run, make_target
from tests.pocs.serving.conftest import Start, wait_until
from tests.pocs.serving.fakes import ANSWER, FakeSeat

pytestmark = pytest.mark.django_db(transaction=True)

HELLO: list[Any] = [{"role": "user", "content": "Hello"}]
TEXT = "".join(ANSWER)


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting clients are looked after twenty times a second."""
    monkeypatch.setattr(ticket, "LOOK_EVERY_S", 0.05)
    monkeypatch.setattr(line, "STATES_FRESH_S", 0.0)
    monkeypatch.setattr(wire, "STATE_RENEW_S", 0.05)


@pytest.fixture(autouse=True)
def empty(broker: str) -> Iterator[redis.Redis]:
    """The broker, with nothing left of other tests."""
    with redis.Redis.from_url(broker) as client:
        client.flushall()
        yield client


class Stage:
    """Everything around one target: the client that asks, the engine that answers, and what lies between."""

    def __init__(self, client: OpenAI, seat: FakeSeat, target: Target, broker: redis.Redis) -> None:
        self.client, self.seat, self.target, self.broker = client, seat, target, broker
        self.engine = seat.fake
        self._pool = ThreadPoolExecutor(8)

    def ask(self, **fields: Any) -> Any:
        return self.client.chat.completions.create(**{"model": "small-model", "messages": HELLO} | fields)

    def ask_later(self, **fields: Any) -> Future[Any]:
        return self._pool.submit(self.ask, **fields)

    def stream_later(self) -> Future[Any]:
        return self._pool.submit(lambda: list(self.ask(stream=True)))

    def stream_held(self) -> Future[Any]:
        """A stream that stops after its first piece."""
        while self.engine.begun.acquire(blocking=False):
            pass  # by answers before it
        self.engine.hold.set()
        answer = self.stream_later()
        assert self.engine.begun.acquire(timeout=10)
        return answer

    def run(self, run_id: int | None = None) -> "Run":
        """A run that has the engine."""
        run = Run(self.seat, self.target, run_id)
        assert run.has_it.wait(10)
        return run


@pytest.fixture
def stage(client: OpenAI, seat: FakeSeat, target: Target, empty: redis.Redis) -> Iterator[Stage]:
    stage = Stage(client, seat, target, empty)
    yield stage
    stage.engine.hold.clear()
    stage.engine.hold_load.clear()
    stage._pool.shutdown()


class Run:
    """A measured run that holds the seat in a thread, until it is let go."""

    def __init__(self, seat: FakeSeat, target: Target, run_id: int | None = None) -> None:
        self.has_it, self.may_end = threading.Event(), threading.Event()
        self._seat, self._target, self._run_id = seat, target, run_id
        self._thread = threading.Thread(target=self._hold, daemon=True)
        self._thread.start()

    def _hold(self) -> None:
        with self._seat.hold(self._target, self._run_id):
            self.has_it.set()
            self.may_end.wait(30)

    def end(self) -> None:
        self.may_end.set()
        self._thread.join(10)


# -- clients that leave ---------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_leaves_takes_its_request_out_of_the_batch(
    stage: Stage, desk: Desk, http: httpx.Client, stream: bool
) -> None:
    stage.engine.hold.set()
    body = {"model": "small-model", "messages": HELLO, "stream": stream}
    if stream:
        with http.stream("POST", "/chat/completions", json=body) as response:
            pieces = response.iter_raw()
            assert b"Hello" in next(pieces)
            assert len(stage.engine.open_ids) == 1, b"".join(pieces)
    else:
        with pytest.raises(httpx.TimeoutException):
            http.post("/chat/completions", json=body, timeout=0.5)
    wait_until(lambda: not stage.engine.open_ids)
    wait_until(lambda: not desk._open)


@pytest.mark.usefixtures("desk")
def test_a_client_that_leaves_while_waiting_leaves_the_queue(stage: Stage, http: httpx.Client) -> None:
    run = stage.run()
    with pytest.raises(httpx.TimeoutException):
        http.post("/chat/completions", json={"model": "small-model", "messages": HELLO}, timeout=0.5)
    wait_until(lambda: stage.broker.llen(wire.QUEUE) == 0)
    run.end()
    assert stage.engine.requests == []


# -- runs -----------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("desk")
def test_live_requests_wait_for_a_run_and_see_it(stage: Stage, http: httpx.Client, cast: Cast) -> None:
    stored = make_run(cast.project, target=stage.target, number=12, records=False)
    run = stage.run(stored.pk)
    body = {"model": "small-model", "messages": HELLO, "stream": True}
    with http.stream("POST", "/chat/completions", json=body) as response:
        pieces = response.iter_raw()
        first = next(pieces)
        assert first == b": waiting for run 12, 0 requests in front\n\n"
        assert response.headers["x-phasegate-wait"] == "waiting for run 12, 0 requests in front"
        assert next(pieces).startswith(b": waiting for run 12")
        run.end()
        rest = b"".join(pieces)
    assert "你好".encode() in rest
    assert rest.endswith(b"data: [DONE]\n\n")


@pytest.mark.usefixtures("desk")
def test_the_run_of_another_project_is_not_named(stage: Stage, http: httpx.Client, cast: Cast) -> None:
    elsewhere = make_project(cast.organisation)
    run = stage.run(make_run(elsewhere, records=False).pk)
    body = {"model": "small-model", "messages": HELLO, "stream": True}
    with http.stream("POST", "/chat/completions", json=body) as response:
        assert next(response.iter_raw()).startswith(b": waiting for a run of another project")
    run.end()


@pytest.mark.usefixtures("desk")
def test_a_run_that_starts_lets_open_requests_end(stage: Stage) -> None:
    answer = stage.stream_held()
    run = Run(stage.seat, stage.target)
    wait_until(lambda: stage.seat.wanted_by is not None)
    assert not run.has_it.is_set()
    stage.engine.hold.clear()
    assert "".join(chunk.choices[0].delta.content or "" for chunk in answer.result(10)) == TEXT
    assert run.has_it.wait(10)
    run.end()


def test_the_patience_of_a_run_is_bounded(stage: Stage, start_desk: Start) -> None:
    start_desk(patience_s=0.1)
    answer = stage.stream_held()
    run = Run(stage.seat, stage.target)
    with pytest.raises(openai.APIError, match="A measured run has taken the engine"):
        answer.result(10)
    assert run.has_it.wait(10)
    assert not stage.engine.open_ids
    run.end()


# -- limits ---------------------------------------------------------------------------------------------


def test_beyond_the_bounded_queue_there_is_429(stage: Stage, start_desk: Start) -> None:
    start_desk(queue=2)
    run = stage.run()
    waiting = [stage.ask_later() for _ in range(2)]
    wait_until(lambda: stage.broker.llen(wire.QUEUE) == 2)

    def told_s(stream: bool) -> int:
        with pytest.raises(openai.RateLimitError) as refused:
            stage.ask(stream=stream)
        assert refused.value.code == "queue_full"
        return int(refused.value.response.headers["retry-after"])

    # that a run has the engine is known once the desk has told it and what was known before has aged
    wait_until(lambda: told_s(False) == HELD_S)
    assert told_s(True) == HELD_S
    run.end()
    assert [answer.result(10).choices[0].message.content for answer in waiting] == [TEXT] * 2
    assert stage.ask().choices[0].message.content == TEXT


def test_a_token_has_so_many_requests_open_and_so_many_a_minute(stage: Stage, start_desk: Start) -> None:
    start_desk(token_open=1, token_per_minute=3)
    first = stage.stream_held()
    with pytest.raises(openai.RateLimitError, match="1 requests open"):
        stage.ask()
    stage.engine.hold.clear()
    first.result(10)

    def ask_often() -> None:
        for _ in range(8):  # a minute may end in between
            stage.ask()

    with pytest.raises(openai.RateLimitError, match="within this minute"):
        ask_often()


def test_a_full_line_says_when_to_come_again_by_what_answers_take(stage: Stage, start_desk: Start) -> None:
    desk = start_desk(queue=1, open=1)
    stage.ask()
    assert desk._pace.service_s is not None  # the fake engine answers within a moment
    for _ in range(64):
        desk._pace.note(7.0)
    wait_until(lambda: _state_of(stage, desk)["service_s"] == 7.0)
    first = stage.stream_held()
    waiting = stage.ask_later()
    wait_until(lambda: stage.broker.llen(wire.QUEUE) == 1)
    with pytest.raises(openai.RateLimitError) as refused:
        stage.ask()
    assert int(refused.value.response.headers["retry-after"]) == 7  # one waits, one at a time
    stage.engine.hold.clear()
    first.result(10)
    waiting.result(10)


def _state_of(stage: Stage, desk: Desk) -> dict[str, Any]:
    state = stage.broker.get(wire.state_key(desk.name))
    return wire.state_unpacked(state) if state else {"service_s": None}


# -- workers and broker ---------------------------------------------------------------------------------


def test_without_a_worker_the_answer_is_503_at_once(stage: Stage) -> None:
    with pytest.raises(openai.InternalServerError, match="No engine worker") as failed:
        stage.ask()
    assert failed.value.status_code == 503
    assert failed.value.response.headers["retry-after"]


def test_a_worker_that_dies_ends_the_stream_with_an_error(stage: Stage, desk: Desk) -> None:
    answer = stage.stream_held()
    dead = desk.name
    desk.name = "another"  # its signs of life are no longer this one's
    stage.broker.delete(wire.state_key(dead))
    with pytest.raises(openai.APIError, match="The engine worker ended") as failed:
        answer.result(10)
    assert failed.value.code == "engine_worker_lost"


@pytest.mark.usefixtures("desk")
def test_an_engine_that_dies_says_why(stage: Stage) -> None:
    answer = stage.stream_held()
    stage.engine.die("The engine process was ended by SIGKILL.")
    with pytest.raises(openai.APIError, match="SIGKILL") as failed:
        answer.result(10)
    assert failed.value.code == "engine_failed"


def test_a_worker_that_ends_tells_its_open_requests(stage: Stage, desk: Desk) -> None:
    answer = stage.stream_held()
    desk.end()
    with pytest.raises(openai.APIError, match="The engine worker ends"):
        answer.result(10)
    assert not stage.engine.open_ids
    stage.run().end()


def test_a_broker_that_restarts_is_found_again(stage: Stage, desk: Desk) -> None:
    answer = stage.stream_held()
    before = desk.name
    stage.broker.execute_command("CLIENT", "KILL", "TYPE", "pubsub")
    with pytest.raises(openai.APIError) as failed:
        answer.result(10)
    assert failed.value.code in ("broker_lost", "engine_worker_lost")
    stage.engine.hold.clear()
    wait_until(lambda: desk.name != before and not stage.engine.open_ids)
    wait_until(lambda: stage.broker.exists(wire.state_key(desk.name)))
    assert stage.ask().choices[0].message.content == TEXT


def test_what_a_dead_web_process_left_in_the_queue_is_taken_out(
    stage: Stage, start_desk: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pocs.serving.desk.PRUNE_EVERY_S", 0.0)
    run, mark = stage.run(), wire.mark_of(stage.target)
    left = wire.Entry("r1", stage.target.pk, mark, "gone", 0.0)
    stage.broker.rpush(wire.QUEUE, left.packed(), b"rubbish")
    start_desk()
    wait_until(lambda: stage.broker.llen(wire.QUEUE) == 0)
    run.end()


@pytest.mark.usefixtures("desk")
def test_nothing_of_a_prompt_or_an_answer_stays_in_the_broker(stage: Stage) -> None:
    run = stage.run()
    answer = stage.ask_later(messages=[{"role": "user", "content": "the secret of the house"}])
    wait_until(lambda: stage.broker.llen(wire.QUEUE) == 1)
    assert not any(b"secret" in entry for entry in stage.broker.lrange(wire.QUEUE, 0, -1))
    run.end()
    answer.result(10)
    left = [stage.broker.dump(key) for key in stage.broker.keys("*")]
    assert not any(b"secret" in value or "你好".encode() in value for value in left if value)


# -- models ---------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("desk")
def test_another_model_is_loaded_when_the_engine_is_idle(stage: Stage, cast: Cast) -> None:
    other = make_target(cast.project, name="Other", location="models/other")
    first = stage.stream_held()
    second = stage.ask_later(model="other")
    third = stage.stream_later()  # for the model that is loaded: not behind the switch
    assert stage.engine.begun.acquire(timeout=10)
    assert stage.seat.loads == [stage.target.pk]
    stage.engine.hold.clear()
    for answer in (first, second, third):
        answer.result(10)
    assert stage.seat.loads == [stage.target.pk, other.pk]


@pytest.mark.usefixtures("desk")
def test_a_load_that_nobody_waits_for_any_more_is_not_taken_for_another(
    stage: Stage, http: httpx.Client, cast: Cast
) -> None:
    other = make_target(cast.project, name="Other", location="models/other")
    stage.engine.hold_load.set()
    body = {"model": "small-model", "messages": HELLO, "stream": True}
    with http.stream("POST", "/chat/completions", json=body) as response:
        assert next(response.iter_raw()) in (b": loading the model\n\n", b": at work\n\n")
        assert stage.engine.loading.wait(10)
    second = stage.ask_later(model="other")
    wait_until(lambda: stage.broker.llen(wire.QUEUE) == 0)
    stage.engine.hold_load.clear()
    assert second.result(10).choices[0].message.content == TEXT
    assert stage.seat.loads == [stage.target.pk, other.pk]


def test_who_is_next() -> None:
    def entry(name: str, mark: str, waited_s: float = 0.0) -> wire.Entry:
        return wire.Entry(name, 1, mark, "web", time.time() - waited_s)

    a, b, old_b = entry("1", "a"), entry("2", "b"), entry("3", "b", queue.TURN_S + 1)
    assert queue.choose([], loaded="a", idle=True) is None
    assert queue.choose([b, a], loaded="a", idle=False) == a
    assert queue.choose([b], loaded="a", idle=False) is None
    assert queue.choose([b], loaded="a", idle=True) == b
    assert queue.choose([b, a], loaded="a", idle=True) == a
    assert queue.choose([old_b, a], loaded="a", idle=False) is None
    assert queue.choose([old_b, a], loaded="a", idle=True) == old_b
    assert queue.choose([b, a], loaded="", idle=True) == b
