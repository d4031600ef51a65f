"""A server that answers with written scripts of bytes and times, and remembers when it wrote them."""

import asyncio
import contextlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Script:
    """`writes` are (ms after the request, bytes); `ended=False` closes without the body's end."""

    writes: list[tuple[float, bytes]] = field(default_factory=list)
    status: int = 200
    content_type: str = "text/event-stream"
    headers: dict[str, str] = field(default_factory=dict)
    head_at_ms: float = 0.0
    ended: bool = True
    chunked: bool = True


@dataclass
class Seen:
    """One request as it came, and when each write of its answer was made."""

    path: str
    headers: dict[str, str]
    body: Any
    received_ns: int
    written_ns: list[int] = field(default_factory=list)
    left_ns: int | None = None  # the client closed before the answer was complete


Choose = Callable[[dict[str, Any], int], Script]
Pages = dict[str, Callable[[], Script]]


class FakeServer:
    """`choose(body, n)` gives the script of the n-th POST; a GET gets its page, else `models`."""

    def __init__(
        self, choose: Choose, *, models: dict[str, Any] | None = None, pages: Pages | None = None
    ) -> None:
        self._choose = choose
        self._pages = pages or {}
        self.got: list[tuple[str, dict[str, str]]] = []  # path and headers of each GET
        self._models = models
        self.seen: list[Seen] = []
        self.running = self.peak = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> "FakeServer":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                while await self._exchange(reader, writer):
                    pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ")
        headers = {k.lower(): v for k, v in (line.split(": ", 1) for line in head[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        received_ns = time.monotonic_ns()
        if method == "GET":
            self.got.append((path, headers))
            if path in self._pages:
                await self._write(writer, self._pages[path](), None, received_ns)
                return True
            listed = json.dumps(self._models or {"data": []}).encode()
            await self._write(
                writer, Script([(0, listed)], content_type="application/json"), None, received_ns
            )
            return True
        seen = Seen(path, headers, json.loads(body), received_ns)
        self.seen.append(seen)
        script = self._choose(seen.body, len(self.seen))
        self.running += 1
        self.peak = max(self.peak, self.running)
        answer = asyncio.create_task(self._write(writer, script, seen, received_ns))
        gone = asyncio.create_task(reader.read(1))
        try:
            await asyncio.wait({answer, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not answer.done() and gone.result() == b"":
                seen.left_ns = time.monotonic_ns()
                return False
        finally:
            self.running -= 1
            for task in (answer, gone):
                task.cancel()
            await asyncio.gather(answer, gone, return_exceptions=True)
        return script.ended and answer.exception() is None

    async def _write(
        self, writer: asyncio.StreamWriter, script: Script, seen: Seen | None, start_ns: int
    ) -> None:
        async def until(ms: float) -> None:
            await asyncio.sleep(max(0.0, ms / 1000 - (time.monotonic_ns() - start_ns) / 1e9))

        await until(script.head_at_ms)
        fields = {"Content-Type": script.content_type, **script.headers}
        if script.chunked:
            fields["Transfer-Encoding"] = "chunked"
        lines = [f"HTTP/1.1 {script.status} X", *(f"{name}: {value}" for name, value in fields.items())]
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        for ms, data in script.writes:
            await until(ms)
            if seen:
                seen.written_ns.append(time.monotonic_ns())
            writer.write(b"%x\r\n%s\r\n" % (len(data), data) if script.chunked else data)
            await writer.drain()
        if script.ended and script.chunked:
            writer.write(b"0\r\n\r\n")
        await writer.drain()


def event(content: Any, *, end: str = "\n", space: str = " ") -> bytes:
    """One event holding JSON."""
    return f"data:{space}{json.dumps(content, ensure_ascii=False)}{end}{end}".encode()


def chunk(delta: dict[str, Any], *, finish: str | None = None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}


def usage(prompt: int, completion: int) -> dict[str, Any]:
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


DONE = b"data: [DONE]\n\n"


def answer(
    words: list[str],
    *,
    first_ms: float = 40,
    gap_ms: float = 15,
    with_usage: bool = True,
    finish: str | None = "stop",
    done: bool = True,
    end: str = "\n",
    space: str = " ",
) -> list[tuple[float, bytes]]:
    """The writes of an ordinary streamed chat answer: one word an event."""
    writes = [
        (first_ms + i * gap_ms, event(chunk({"content": word}), end=end, space=space))
        for i, word in enumerate(words)
    ]
    last_ms = writes[-1][0] if writes else first_ms
    if finish:
        writes.append((last_ms, event(chunk({}, finish=finish), end=end, space=space)))
    if with_usage:
        writes.append((last_ms, event({"choices": [], "usage": usage(7, len(words))}, end=end, space=space)))
    if done:
        writes.append((last_ms, f"data:{space}[DONE]{end}{end}".encode()))
    return writes
