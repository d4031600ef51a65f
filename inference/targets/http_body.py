"""Takes the framing off the body of an HTTP/1.1 answer, read by read, at a microsecond or two a read."""

import re
from typing import Protocol

import h11

MAX_LINE_BYTES = 16 * 1024
CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(;.*)?", re.DOTALL)


class BrokenBody(ValueError):
    """The bytes are no body of the framing that the answer's head announced."""


class Body(Protocol):
    """`feed` gives what of a read is content and whether the body ends in it; `extra` came behind its end.

    `open_ended`: the body ends with the connection.
    """

    extra: bytes
    open_ended: bool

    def feed(self, data: bytes) -> tuple[bytes, bool]: ...


def body_of(response: h11.Response) -> Body:
    """How the body of this answer is framed (RFC 9112, 6.3); its headers were checked by h11."""
    headers = dict(response.headers)
    if response.status_code in (204, 304):
        return _Measured(0)
    if b"transfer-encoding" in headers:
        return _Chunked()
    if b"content-length" in headers:
        return _Measured(int(headers[b"content-length"]))
    return _UntilClosed()


def keeps_open(response: h11.Response) -> bool:
    """Whether the server leaves the connection open for another exchange."""
    tokens = [value.lower() for name, value in response.headers if name == b"connection"]
    if any(b"close" in value for value in tokens):
        return False
    return response.http_version == b"1.1" or any(b"keep-alive" in value for value in tokens)


class _Chunked:
    open_ended = False

    def __init__(self) -> None:
        self.extra = b""
        self._rest = b""  # of a line that is not complete yet
        self._left = 0  # bytes of this chunk still to come, with the two of its line end
        self._trailers = False

    def feed(self, data: bytes) -> tuple[bytes, bool]:
        if self._rest:
            data, self._rest = self._rest + data, b""
        parts: list[bytes] = []
        at, end = 0, len(data)
        while at < end:
            if self._left:
                at = self._chunk(data, at, parts)
                continue
            line_end = data.find(b"\r\n", at)
            if line_end < 0:
                if end - at > MAX_LINE_BYTES:
                    raise BrokenBody("a line between chunks does not end")
                self._rest = data[at:]
                break
            line, at = data[at:line_end], line_end + 2
            if not self._trailers:
                self._header(line)
            elif not line:
                self.extra = data[at:]
                return _joined(parts), True
        return _joined(parts), False

    def _header(self, line: bytes) -> None:
        size = CHUNK_SIZE.fullmatch(line)
        if size is None:
            raise BrokenBody(f"illegal chunk header: {line[:40]!r}")
        n = int(size[1], 16)
        self._trailers = n == 0
        self._left = n + 2 if n else 0

    def _chunk(self, data: bytes, at: int, parts: list[bytes]) -> int:
        """Take what `data` has of the current chunk from `at` on; where the rest begins."""
        take = min(self._left, len(data) - at)
        content = min(take, max(0, self._left - 2))
        if content:
            parts.append(data[at : at + content])
        line_end = data[at + content : at + take]
        passed = max(0, 2 - self._left)
        if line_end != b"\r\n"[passed : passed + len(line_end)]:
            raise BrokenBody(f"a chunk is longer than it says: {line_end!r}")
        self._left -= take
        return at + take


class _Measured:
    open_ended = False

    def __init__(self, length: int) -> None:
        self.extra = b""
        self._left = length

    def feed(self, data: bytes) -> tuple[bytes, bool]:
        content, self.extra = data[: self._left], data[self._left :]
        self._left -= len(content)
        return content, self._left == 0


class _UntilClosed:
    open_ended = True
    extra = b""

    def feed(self, data: bytes) -> tuple[bytes, bool]:
        return data, False


def _joined(parts: list[bytes]) -> bytes:
    return parts[0] if len(parts) == 1 else b"".join(parts)
