"""One HTTP request and its answer over ASGI: body, departure of the client, JSON, server-sent events."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from typing import Any

from pocs.serving.ending import end_all
from pocs.serving.errors import ApiError

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = dict[str, str]


class Gone(Exception):
    """The client has closed its connection: there is nobody to answer."""


class Exchange:
    """`body`, then one of `answer`, `refuse` or `open_stream` with its `events`."""

    def __init__(self, scope: dict[str, Any], receive: Receive, send: Send, request_id: str) -> None:
        self.method, self.path, self.scheme = scope["method"], scope["path"], scope.get("scheme", "http")
        self.headers = {
            name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]
        }
        self.address = (scope.get("client") or ("",))[0]
        self.request_id = request_id
        self._receive, self._send = receive, send
        self._streaming = False

    # -- in -------------------------------------------------------------------------------------------

    async def body(self, max_bytes: int) -> bytes:
        """The whole body; raises ApiError (413) above `max_bytes`, before the rest of it is read."""
        too_large = ApiError(413, f"The request is larger than {max_bytes} bytes.", code="request_too_large")
        length = self.headers.get("content-length", "")
        if length.isdigit() and int(length) > max_bytes:
            raise too_large
        parts, size, more = [], 0, True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise Gone
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            more = message.get("more_body", False)
            if size > max_bytes:
                raise too_large
        return b"".join(parts)

    async def while_there(self, work: Coroutine[Any, Any, None]) -> None:
        """Do the work; it is cancelled, and Gone raised, when the client leaves. The body has been read."""
        task = asyncio.create_task(work)
        leaving = asyncio.create_task(self._left())
        try:
            await asyncio.wait({task, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise Gone
            await task
        finally:
            await end_all([task, leaving])

    async def _left(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass

    # -- out ------------------------------------------------------------------------------------------

    async def answer(self, body: dict[str, Any], status: int = 200, headers: Headers | None = None) -> None:
        """A JSON answer; nothing where the client has gone, as everywhere here."""
        data = _json(body)
        sizes = {"content-type": "application/json", "content-length": str(len(data))}
        await self._start(status, sizes | (headers or {}))
        await self._send({"type": "http.response.body", "body": data})

    async def refuse(self, error: ApiError) -> None:
        """The error as the answer or, when the answer streams already, as its last event."""
        if self._streaming:
            await self.events([error.body()])
            await self.close_stream()
            return
        headers = {}
        if error.status == 401:
            headers["www-authenticate"] = "Bearer"
        if error.retry_after_s is not None:
            headers["retry-after"] = str(error.retry_after_s)
        if error.status == 413:
            headers["connection"] = "close"
        await self.answer(error.body(), error.status, headers)

    async def open_stream(self, headers: Headers) -> None:
        """The headers of a stream; proxies are told not to hold it back."""
        kind = {"content-type": "text/event-stream; charset=utf-8", "x-accel-buffering": "no"}
        self._streaming = True
        await self._start(200, kind | headers)

    async def events(self, objects: list[dict[str, Any]]) -> None:
        """`data:` events, those at hand in one piece."""
        await self._piece(b"".join(b"data: " + _json(one) + b"\n\n" for one in objects))

    async def comment(self, text: str) -> None:
        """A line that keeps the connection open and that clients pass over."""
        await self._piece(b": " + text.encode() + b"\n\n")

    async def done(self) -> None:
        await self._piece(b"data: [DONE]\n\n")
        await self.close_stream()

    async def close_stream(self) -> None:
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _start(self, status: int, headers: Headers) -> None:
        every = {
            "x-request-id": self.request_id,
            "cache-control": "no-store",
            "x-content-type-options": "nosniff",
        }
        pairs = [(name.encode(), value.encode()) for name, value in (every | headers).items()]
        await self._send({"type": "http.response.start", "status": status, "headers": pairs})

    async def _piece(self, data: bytes) -> None:
        if data:
            await self._send({"type": "http.response.body", "body": data, "more_body": True})


def _json(body: dict[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
