"""The little HTTP/1.1 that the simulator speaks: it costs microseconds, so that it delays no answer."""

from dataclasses import dataclass, field
from http import HTTPStatus

MAX_HEAD_BYTES = 64 * 1024
MAX_BODY_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True)
class Framed:
    """One chunk of a body as it goes over the wire, and the length of what it carries."""

    data: bytes
    payload_bytes: int


def framed(payload: bytes) -> Framed:
    """`payload` as one chunk of a chunked body."""
    return Framed(b"%x\r\n%b\r\n" % (len(payload), payload), len(payload))


def head(status: int, content_type: str, length: int | None = None) -> bytes:
    """Status line and headers of an answer; without a length its body is chunked."""
    framing = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    phrase = HTTPStatus(status).phrase
    return f"HTTP/1.1 {status} {phrase}\r\nContent-Type: {content_type}\r\n{framing}\r\n\r\n".encode()


@dataclass(frozen=True)
class Received:
    """One request; `fault` has status and message where it can't be answered."""

    received_ns: int  # the read that completed it
    target: str = ""
    headers: dict[str, str] = field(default_factory=dict)  # names in lower case
    body: bytes = b""
    close: bool = False
    fault: tuple[int, str] | None = None


class Requests:
    """Cuts what one connection sends into requests, one at a time."""

    def __init__(self) -> None:
        self._buffer = b""

    def feed(self, ns: int, data: bytes) -> Received | None:
        """The request that `data`, read at `ns`, completes."""
        self._buffer += data
        top, found, rest = self._buffer.partition(b"\r\n\r\n")
        if not found:
            return self._broken(ns, 431, "the head is too long") if len(top) > MAX_HEAD_BYTES else None
        first, *lines = top.decode("latin-1").split("\r\n")
        headers = {}
        for line in lines:
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        words = first.split(" ")
        length = headers.get("content-length", "0")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            return self._broken(ns, 400, "this is no HTTP/1.1")
        if "transfer-encoding" in headers or not (length.isascii() and length.isdigit()):
            return self._broken(ns, 411, "a request needs its Content-Length")
        n = int(length)
        if n > MAX_BODY_BYTES:
            return self._broken(ns, 413, "the body is too long")
        if len(rest) < n:
            return None
        self._buffer = rest[n:]
        close = words[2] == "HTTP/1.0" or headers.get("connection", "").lower() == "close"
        return Received(ns, words[1], headers, rest[:n], close)

    def _broken(self, ns: int, status: int, message: str) -> Received:
        self._buffer = b""
        return Received(ns, close=True, fault=(status, message))
