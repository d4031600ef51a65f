"""A server of known times: the ground truth against which the client's own error is measured."""

import asyncio
import json
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import h11

from inference.errors import InputError

MODEL = "simulated"
WORDS = ("the ", "phase ", "of ", "a ", "request ", "has ", "its ", "time ")
INPUT_TOKENS = 16


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


class Simulator:
    """Serves `/v1/chat/completions`, `/v1/completions` and `/v1/models`; logs when each byte was written.

    The log has one JSON line an answer: `id` (the client's `X-Request-Id`), `received_ns`, and `writes`
    `[[ns, bytes, tokens], …]`, each stamped right before the bytes went to the socket, with the clock
    that all processes of a host share.
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

    async def start(self, port: int) -> int:
        """Listen on loopback (0: any free port) and return the port; raises InputError if it is taken."""
        try:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", port, backlog=1024)
        except (OSError, OverflowError) as fault:
            reason = fault.strerror if isinstance(fault, OSError) and fault.strerror else str(fault)
            raise InputError(f"cannot listen on port {port}: {reason}") from fault
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        if self._log is not None:
            self._log.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        http = h11.Connection(h11.SERVER)
        try:
            while True:
                request, body = await _request(http, reader)
                if request is None:
                    return
                await self._answer(_Out(http, writer), request, body)
                if http.our_state is not h11.DONE or http.their_state is not h11.DONE:
                    return
                http.start_next_cycle()
        except (ConnectionError, h11.ProtocolError, asyncio.CancelledError):
            return
        finally:
            writer.close()

    async def _answer(self, out: "_Out", request: h11.Request, body: bytes) -> None:
        received_ns = time.monotonic_ns()
        path = request.target.decode("latin-1").partition("?")[0]
        if path.endswith("/models"):
            out.json(
                200, {"object": "list", "data": [{"id": MODEL, "object": "model", "owned_by": "simulator"}]}
            )
            return
        chat = path.endswith("/chat/completions")
        if not chat and not path.endswith("/completions"):
            out.json(404, {"error": {"message": f"no such path: {path}", "code": 404}})
            return
        try:
            asked = json.loads(body)
            limit = asked.get("max_tokens") or self.times.output_tokens
            n = max(1, min(int(limit), self.times.output_tokens))
        except (ValueError, AttributeError, TypeError):
            out.json(400, {"error": {"message": "the body is no request", "code": 400}})
            return
        send = self._stream if asked.get("stream") else self._whole
        try:
            await send(out, chat, n, received_ns)
        finally:
            self._write_log(request, received_ns, out.writes)

    async def _stream(self, out: "_Out", chat: bool, n: int, received_ns: int) -> None:
        out.head(200, "text/event-stream")
        for i in range(n):
            await _until(received_ns + int((self.times.ttft_ms + i * self.times.itl_ms) * 1e6))
            await out.data(_event(_choice(chat, WORDS[i % len(WORDS)], None)), tokens=1)
        finish = "length" if n < self.times.output_tokens else "stop"
        await out.data(_event(_choice(chat, "", finish)) + _event({"choices": [], "usage": _usage(n)}))
        await out.data(b"data: [DONE]\n\n")
        out.end()

    async def _whole(self, out: "_Out", chat: bool, n: int, received_ns: int) -> None:
        await _until(received_ns + int((self.times.ttft_ms + (n - 1) * self.times.itl_ms) * 1e6))
        text = "".join(WORDS[i % len(WORDS)] for i in range(n))
        part: dict[str, Any] = {"message": {"role": "assistant", "content": text}} if chat else {"text": text}
        out.json(
            200, {"choices": [{"index": 0, "finish_reason": "stop", **part}], "usage": _usage(n)}, tokens=n
        )

    def _write_log(self, request: h11.Request, received_ns: int, writes: list[list[int]]) -> None:
        if self._log is None:
            return
        headers = dict(request.headers)
        identity = headers.get(b"x-request-id", b"").decode("latin-1")
        self._log.write(json.dumps({"id": identity, "received_ns": received_ns, "writes": writes}) + "\n")
        self._log.flush()


class _Out:
    """The answer side of one exchange, remembering each write."""

    def __init__(self, http: h11.Connection, writer: asyncio.StreamWriter) -> None:
        self._http, self._writer = http, writer
        self.writes: list[list[int]] = []

    def head(self, status: int, content_type: str, length: int | None = None) -> None:
        framing = ("Transfer-Encoding", "chunked") if length is None else ("Content-Length", str(length))
        response = h11.Response(status_code=status, headers=[("Content-Type", content_type), framing])
        self._writer.write(self._http.send(response) or b"")

    async def data(self, data: bytes, *, tokens: int = 0) -> None:
        framed = self._http.send(h11.Data(data=data)) or b""
        self.writes.append([time.monotonic_ns(), len(data), tokens])
        self._writer.write(framed)
        await self._writer.drain()

    def json(self, status: int, content: dict[str, Any], *, tokens: int = 0) -> None:
        data = json.dumps(content).encode()
        self.head(status, "application/json", len(data))
        self.writes.append([time.monotonic_ns(), len(data), tokens])
        self._writer.write(self._http.send(h11.Data(data=data)) or b"")
        self.end()

    def end(self) -> None:
        self._writer.write(self._http.send(h11.EndOfMessage()) or b"")


async def serve(
    times: SimulatedTimes,
    port: int,
    log: Path | None,
    *,
    ready: Callable[[int], None],
    until: Callable[[], Awaitable[Any]],
) -> None:
    """Run a simulator until `until()` is done; `ready` is told the port once it listens."""
    simulator = Simulator(times, log)
    try:
        ready(await simulator.start(port))
        await until()
    finally:
        await simulator.stop()


async def _request(http: h11.Connection, reader: asyncio.StreamReader) -> tuple[h11.Request | None, bytes]:
    request: h11.Request | None = None
    body: list[bytes] = []
    while True:
        event = http.next_event()
        if event is h11.NEED_DATA:
            http.receive_data(await reader.read(65536))
        elif isinstance(event, h11.Request):
            request = event
        elif isinstance(event, h11.Data):
            body.append(bytes(event.data))
        elif isinstance(event, h11.EndOfMessage):
            return request, b"".join(body)
        else:
            return None, b""


async def _until(ns: int) -> None:
    remaining_s = (ns - time.monotonic_ns()) / 1e9
    if remaining_s > 0:
        await asyncio.sleep(remaining_s)


def _choice(chat: bool, text: str, finish: str | None) -> dict[str, Any]:
    part: dict[str, Any] = {"delta": {"content": text} if text else {}} if chat else {"text": text}
    return {"object": "chunk", "model": MODEL, "choices": [{"index": 0, "finish_reason": finish, **part}]}


def _usage(n: int) -> dict[str, int]:
    return {"prompt_tokens": INPUT_TOKENS, "completion_tokens": n, "total_tokens": INPUT_TOKENS + n}


def _event(content: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(content).encode() + b"\n\n"
