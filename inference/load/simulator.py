"""A server of known times: the ground truth against which the client's own error is measured."""

import asyncio
import heapq
import json
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from inference.errors import InputError
from inference.load.simulated_http import Framed, Received, Requests, framed, head
from inference.stats import figures

MODEL = "simulated"
WORDS = ("the ", "phase ", "of ", "a ", "request ", "has ", "its ", "time ")
INPUT_TOKENS = 16
PASS_BUDGET_NS = 300_000  # of work before the sockets are looked at again
LOG_AFTER_S = 0.005  # an answer is logged when it no longer delays another


@dataclass(frozen=True, kw_only=True)
class SimulatedTimes:
    """First token `ttft_ms` after the request was read, then one token every `itl_ms`."""

    ttft_ms: float = 200.0
    itl_ms: float = 20.0
    output_tokens: int = 64

    def __post_init__(self) -> None:
        if not (0 <= self.ttft_ms < math.inf and 0 <= self.itl_ms < math.inf):
            raise InputError("ttft-ms and itl-ms must be 0 or more")
        if self.output_tokens < 1:
            raise InputError("output-tokens must be at least 1")

    def due_ns(self, received_ns: int, token: int) -> int:
        """When token number `token` (from 0) is to be written."""
        return received_ns + int((self.ttft_ms + token * self.itl_ms) * 1e6)


class Simulator:
    """Serves `/v1/chat/completions`, `/v1/completions` and `/v1/models`; logs when each byte was written.

    The log has one JSON line an answer: `id` (the client's `X-Request-Id`), `received_ns` (the read that
    completed the request), and `writes` `[[ns, bytes, tokens], …]`, each stamped right before the bytes
    went to the socket, with the clock that all processes of a host share; `stalled` where a client did not
    read, so that bytes left later than stamped. One timer serves all answers, what is sent is made
    beforehand, and nothing else runs while a write is due: what it is late all the same is `lateness_ms`.
    """

    def __init__(self, times: SimulatedTimes, log: Path | None = None) -> None:
        self.times = times
        self._log: TextIO | None = None
        if log is not None:
            try:
                self._log = log.open("w", encoding="utf-8")
            except OSError as fault:
                raise InputError(f"cannot write log {log}: {fault.strerror or fault}") from fault
        self._server: asyncio.Server | None = None
        self._script = {chat: _Script.of(chat) for chat in (True, False)}
        self._arrived: deque[tuple[_Client, Received]] = deque()
        self._due: list[tuple[int, int, _Answer]] = []  # a heap: when, which, of which answer
        self._ended: deque[_Answer] = deque()
        self._late_ns: deque[int] = deque(maxlen=1_000_000)
        self._number = 0
        self._working = False
        self._timer: asyncio.TimerHandle | None = None
        self._clients: set[_Client] = set()

    async def start(self, port: int) -> int:
        """Listen on loopback (0: any free port) and return the port; raises InputError if it is taken."""
        self._loop = asyncio.get_running_loop()
        try:
            self._server = await self._loop.create_server(
                lambda: _Client(self), "127.0.0.1", port, backlog=4096
            )
        except (OSError, OverflowError) as fault:
            reason = fault.strerror if isinstance(fault, OSError) and fault.strerror else str(fault)
            raise InputError(f"cannot listen on port {port}: {reason}") from fault
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for client in list(self._clients):
            client.leave()
        if self._timer is not None:
            self._timer.cancel()
        while self._ended:
            self._write_log(self._ended.popleft())
        if self._log is not None:
            self._log.close()

    def lateness_ms(self) -> dict[str, Any]:
        """How late tokens were written, as figures over the last million of them."""
        return figures(ns / 1e6 for ns in self._late_ns)

    # -- called by the clients --------------------------------------------------------------------------

    def joined(self, client: "_Client") -> None:
        self._clients.add(client)

    def left(self, client: "_Client") -> None:
        self._clients.discard(client)

    def arrived(self, client: "_Client", request: Received) -> None:
        """A request is complete; it is looked into when the sockets of this pass have been read."""
        self._arrived.append((client, request))
        self._wake()

    def ended(self, answer: "_Answer") -> None:
        if not self._ended:
            self._loop.call_later(LOG_AFTER_S, self._log_ended)
        self._ended.append(answer)

    # -- the work of a pass -----------------------------------------------------------------------------

    def _wake(self) -> None:
        if not self._working:
            self._working = True
            self._loop.call_soon(self._work)

    def _work(self) -> None:
        until_ns = time.monotonic_ns() + PASS_BUDGET_NS
        while (now_ns := time.monotonic_ns()) < until_ns:
            if self._due and self._due[0][0] <= now_ns:
                self._write(heapq.heappop(self._due))
            elif self._arrived:
                self._answer(*self._arrived.popleft())
            else:
                break
        self._working = False
        if self._arrived or (self._due and self._due[0][0] <= time.monotonic_ns()):
            self._wake()
        elif self._due:
            self._sleep()

    def _sleep(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later((self._due[0][0] - time.monotonic_ns()) / 1e9, self._wake)

    def _log_ended(self) -> None:
        if self._ended:
            self._write_log(self._ended.popleft())
        if self._ended:
            pressing = self._working or self._arrived
            self._loop.call_later(LOG_AFTER_S / 5 if pressing else 0, self._log_ended)

    def _write_log(self, answer: "_Answer") -> None:
        if self._log is not None:
            self._log.write(json.dumps(answer.as_json()) + "\n")
            self._log.flush()

    # -- answers ----------------------------------------------------------------------------------------

    def _answer(self, client: "_Client", request: Received) -> None:
        if request.fault is not None:
            client.json(request.fault[0], _error(*request.fault))
            return
        path = request.target.partition("?")[0]
        if path.endswith("/models"):
            entry = {"id": MODEL, "object": "model", "owned_by": "simulator"}
            client.json(200, {"object": "list", "data": [entry]})
            return
        chat = path.endswith("/chat/completions")
        if not chat and not path.endswith("/completions"):
            client.json(404, _error(404, f"no such path: {path}"))
            return
        try:
            asked = json.loads(request.body)
            limit = asked.get("max_tokens") or asked.get("max_completion_tokens") or self.times.output_tokens
            n = max(1, min(int(limit), self.times.output_tokens))
            streamed = bool(asked.get("stream"))
        except (ValueError, AttributeError, TypeError, OverflowError):
            client.json(400, _error(400, "the body is no request"))
            return
        answer = _Answer(client, request, self._script[chat], n, cut=n < self.times.output_tokens)
        client.answer = answer
        if streamed:
            client.write(_HEAD_OF_A_STREAM)
        self._plan(answer, 0 if streamed else n - 1, whole=not streamed)

    def _plan(self, answer: "_Answer", token: int, *, whole: bool = False) -> None:
        answer.token, answer.whole = token, whole
        self._number += 1
        heapq.heappush(
            self._due, (self.times.due_ns(answer.request.received_ns, token), self._number, answer)
        )

    def _write(self, due: tuple[int, int, "_Answer"]) -> None:
        due_ns, _, answer = due
        if answer.client.gone:
            return
        now_ns = time.monotonic_ns()
        self._late_ns.append(now_ns - due_ns)
        if answer.whole:
            answer.finish_whole(now_ns)
            self.ended(answer)
            return
        event = answer.script.tokens[answer.token % len(WORDS)]
        answer.writes.append((now_ns, event.payload_bytes, 1))
        answer.client.write(event.data)
        if answer.token + 1 < answer.n:
            self._plan(answer, answer.token + 1)
        else:
            answer.finish_stream()
            self.ended(answer)


@dataclass(frozen=True)
class _Script:
    """What an answer consists of, framed for the wire beforehand."""

    chat: bool
    tokens: tuple[Framed, ...]

    @classmethod
    def of(cls, chat: bool) -> "_Script":
        return cls(chat, tuple(framed(_event(_choice(chat, word, None))) for word in WORDS))


@dataclass(eq=False)
class _Answer:
    """One answer on its way, remembering each write."""

    client: "_Client"
    request: Received
    script: _Script
    n: int
    cut: bool  # the request asked for fewer tokens than there are
    token: int = 0  # the next one
    whole: bool = False
    stalled: bool = False
    writes: list[tuple[int, int, int]] = field(default_factory=list)

    def finish_stream(self) -> None:
        last = _event(_choice(self.script.chat, "", "length" if self.cut else "stop"))
        for payload in (last + _event({"choices": [], "usage": _usage(self.n)}), b"data: [DONE]\n\n"):
            chunk = framed(payload)
            self.writes.append((time.monotonic_ns(), chunk.payload_bytes, 0))
            self.client.write(chunk.data)
        self.client.write(b"0\r\n\r\n")
        self.client.done()

    def finish_whole(self, now_ns: int) -> None:
        text = "".join(WORDS[i % len(WORDS)] for i in range(self.n))
        part: dict[str, Any] = (
            {"message": {"role": "assistant", "content": text}} if self.script.chat else {"text": text}
        )
        choice = {"index": 0, "finish_reason": "stop", **part}
        content = {"choices": [choice], "usage": _usage(self.n)}
        self.writes.append((now_ns, len(json.dumps(content)), self.n))
        self.client.json(200, content)

    def as_json(self) -> dict[str, Any]:
        row: dict[str, Any] = {
            "id": self.request.headers.get("x-request-id", ""),
            "received_ns": self.request.received_ns,
            "writes": self.writes,
        }
        return row | {"stalled": True} if self.stalled else row


class _Client(asyncio.Protocol):
    """One connection: stamps what is read, and leaves the rest to the simulator's turn."""

    def __init__(self, simulator: Simulator) -> None:
        self._simulator = simulator
        self._requests = Requests()
        self._close_after = False
        self.answer: _Answer | None = None
        self.gone = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.set_write_buffer_limits(high=0)  # to be told as soon as bytes have to wait
        self._transport = transport
        self._simulator.joined(self)

    def data_received(self, data: bytes) -> None:
        request = self._requests.feed(time.monotonic_ns(), data)
        if request is not None:
            self._close_after = request.close
            self._simulator.arrived(self, request)

    def pause_writing(self) -> None:
        if self.answer is not None:
            self.answer.stalled = True

    def connection_lost(self, exc: Exception | None) -> None:
        self.gone = True
        self._simulator.left(self)
        if self.answer is not None:
            self._simulator.ended(self.answer)
            self.answer = None

    def write(self, data: bytes) -> None:
        if not self.gone:
            self._transport.write(data)

    def json(self, status: int, content: dict[str, Any]) -> None:
        body = json.dumps(content).encode()
        self.write(head(status, "application/json", len(body)) + body)
        self.done()

    def done(self) -> None:
        self.answer = None
        if self._close_after:
            self._transport.close()

    def leave(self) -> None:
        self._transport.abort()


def lateness(rows: Iterable[dict[str, Any]], times: SimulatedTimes) -> dict[str, Any]:
    """From rows of the log: how late the tokens of streamed answers were written, as figures in ms."""
    return figures(
        (ns - times.due_ns(row["received_ns"], token)) / 1e6
        for row in rows
        for token, ns in enumerate(ns for ns, _, tokens in row["writes"] if tokens == 1)
    )


async def serve(
    times: SimulatedTimes,
    port: int,
    log: Path | None,
    *,
    ready: Callable[[int], None],
    until: Callable[[], Awaitable[Any]],
) -> dict[str, Any]:
    """Run a simulator until `until()` is done, and return its lateness; `ready` is told the port."""
    simulator = Simulator(times, log)
    try:
        ready(await simulator.start(port))
        await until()
    finally:
        await simulator.stop()
    return simulator.lateness_ms()


def _error(code: int, message: str) -> dict[str, Any]:
    return {"error": {"message": message, "code": code}}


def _choice(chat: bool, text: str, finish: str | None) -> dict[str, Any]:
    part: dict[str, Any] = {"delta": {"content": text} if text else {}} if chat else {"text": text}
    return {"object": "chunk", "model": MODEL, "choices": [{"index": 0, "finish_reason": finish, **part}]}


def _usage(n: int) -> dict[str, int]:
    return {"prompt_tokens": INPUT_TOKENS, "completion_tokens": n, "total_tokens": INPUT_TOKENS + n}


def _event(content: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(content).encode() + b"\n\n"


_HEAD_OF_A_STREAM = head(200, "text/event-stream")
