"""Bodies above the limit are refused, with and without a promised length."""

import json
from typing import Any

import pytest

from phasegate.limits import BodyLimit


async def reading_app(scope: Any, receive: Any, send: Any) -> None:
    """Reads the whole body and answers its length; silent when the client is gone, as Django is."""
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        size += len(message.get("body", b""))
        if not message.get("more_body"):
            break
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(size).encode()})


async def post(chunks: list[bytes], *, length: int | None = None, path: str = "/") -> tuple[int, bytes]:
    messages = [
        {"type": "http.request", "body": chunk, "more_body": index + 1 < len(chunks)}
        for index, chunk in enumerate(chunks)
    ]
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return messages.pop(0)

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    headers = [] if length is None else [(b"content-length", str(length).encode())]
    scope = {"type": "http", "path": path, "headers": headers}
    await BodyLimit(reading_app, max_bytes=10)(scope, receive, send)
    return sent[0]["status"], sent[1]["body"]


@pytest.mark.parametrize("length", [None, 10])
async def test_a_body_within_the_limit_passes(length: int | None) -> None:
    assert await post([b"12345", b"67890"], length=length) == (200, b"10")


async def test_a_promised_length_above_the_limit_is_refused_unread() -> None:
    status, body = await post([], length=11)
    assert status == 413
    assert "你" not in body.decode()
    assert "nothing was stored" in body.decode()


async def test_chunks_above_the_limit_are_refused() -> None:
    status, _body = await post([b"12345"] * 3)
    assert status == 413


async def test_the_api_gets_a_problem_document() -> None:
    _status, body = await post([], length=11, path="/api/v1/projects/1/runs/")
    assert json.loads(body)["status"] == 413
