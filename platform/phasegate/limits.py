"""A limit on request bodies, whatever their headers promise."""

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class BodyLimit:
    """Answers 413 for a body above `max_bytes`, before the site reads or stores the rest of it.

    A body with a length is refused by its header; one sent in chunks as soon as it grows too long.
    """

    def __init__(self, application: Any, *, max_bytes: int) -> None:
        self.application = application
        self.max_bytes = max_bytes

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        length = dict(scope["headers"]).get(b"content-length", b"")
        if length.isdigit() and int(length) > self.max_bytes:
            await self._refuse(scope, send)
            return
        seen = 0
        too_long = started = False

        async def limited_receive() -> Message:
            nonlocal seen, too_long
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self.max_bytes:
                too_long = True
                return {"type": "http.disconnect"}
            return message

        async def noting_send(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        await self.application(scope, limited_receive, noting_send)
        if too_long and not started:
            await self._refuse(scope, send)

    async def _refuse(self, scope: MutableMapping[str, Any], send: Send) -> None:
        limit = f"{self.max_bytes / 1024 / 1024:.0f} MiB"
        if scope["path"].startswith("/api/"):
            kind = b"application/problem+json"
            problem = {"type": "too-large", "title": "Content Too Large", "status": 413}
            body = json.dumps({**problem, "detail": f"The request is larger than {limit}."}).encode()
        else:
            # plain text in both languages: the form behind it is still in the browser's history
            kind = b"text/plain; charset=utf-8"
            body = (
                f"This upload is larger than {limit}; nothing was stored. "
                "Go back: your form is still there.\n"
                f"上传的内容超过 {limit}，未保存任何内容。请返回上一页，已填写的表单仍在。\n"
            ).encode()
        headers = [
            (b"content-type", kind),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        await send({"type": "http.response.start", "status": 413, "headers": headers})
        await send({"type": "http.response.body", "body": body})
