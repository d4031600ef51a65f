"""HTTP/1.1 over asyncio sockets: every read is stamped at the socket, before anything is parsed."""

import asyncio
import ssl
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import h11

from inference.errors import InputError
from inference.targets.http_body import Body, BrokenBody, body_of, keeps_open

CONNECT_TIMEOUT_S = 10.0
MAX_HEADER_BYTES = 64 * 1024

MAX_FETCHED_BYTES = 8 * 1024 * 1024

#: gets each event of an answer with its stamp, and says whether to leave
Take = Callable[[int, h11.Event], bool]


class ConnectionFailed(OSError):
    """The endpoint could not be reached, or closed before a complete answer."""


@dataclass(frozen=True)
class Endpoint:
    """Where requests go: scheme, host, port and the path that all of them start with."""

    scheme: str
    host: str
    port: int
    base_path: str

    @classmethod
    def parse(cls, url: str) -> "Endpoint":
        """Raises InputError for anything but `http(s)://host[:port][/path]`."""
        try:
            parts = urlsplit(url.strip())
            port = parts.port
        except ValueError as fault:
            raise InputError(f"target {url!r} is no URL: {fault}") from fault
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError(f"target {url!r} must look like http://host:port/v1")
        if not _is_host(parts.hostname):
            raise InputError(f"target {url!r} is no URL: its host is no name")
        if port == 0:
            raise InputError(f"target {url!r} is no URL: its port is 0")
        if parts.query or parts.fragment or parts.username:
            raise InputError(f"target {url!r} may hold no query, fragment or user")
        default = 443 if parts.scheme == "https" else 80
        return cls(parts.scheme, parts.hostname, port or default, parts.path.rstrip("/"))

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == {"http": 80, "https": 443}[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.authority}{self.base_path}"

    @property
    def origin(self) -> tuple[str, str, int]:
        return self.scheme, self.host, self.port

    @property
    def root(self) -> "Endpoint":
        """Where the server's own pages are: beside the API, so without its `/v1`."""
        return Endpoint(self.scheme, self.host, self.port, self.base_path.removesuffix("/v1"))


def _is_host(host: str) -> bool:
    """Whether it can be looked up: labels of at most 63 characters, none empty, without blanks."""
    try:
        host.encode("idna")
    except UnicodeError:
        return False
    return host.isprintable() and not any(char.isspace() for char in host)


class _Turns:
    """Lets connections take what was read, for a short while in each pass of the event loop.

    A pass reads every socket that has data, then runs what is ready. If all that a burst brought were parsed
    at once, sockets would wait unread, and be stamped late, until the last of it was. So a turn ends when its
    time is over, or when an answer is complete: its task goes on next, and has the pass for itself.
    """

    BUDGET_NS = 300_000

    def __init__(self) -> None:
        self._waiting: deque[_Socket] = deque()
        self._scheduled = False

    def wake(self, wire: "_Socket") -> None:
        self._waiting.append(wire)
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        until_ns = time.monotonic_ns() + self.BUDGET_NS
        while self._waiting:
            if self._waiting.popleft().take_turn() or time.monotonic_ns() > until_ns:
                break
        self._scheduled = bool(self._waiting)
        if self._scheduled:
            asyncio.get_running_loop().call_soon(self._next)


class _Socket(asyncio.Protocol):
    """The reads of one socket, each with the time at which it was read; no more is done at the read."""

    def __init__(self, turns: _Turns) -> None:
        self._turns = turns
        self.reads: deque[tuple[int, bytes]] = deque()
        self.closed = False  # the peer has closed, or the connection is lost
        self._taker: Callable[[], bool] | None = None
        self._waits = False  # for its turn

    def data_received(self, data: bytes) -> None:
        self.reads.append((time.monotonic_ns(), data))
        self._notify()

    def eof_received(self) -> None:
        self._end()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()

    def _end(self) -> None:
        if not self.closed:
            self.closed = True
            self.reads.append((time.monotonic_ns(), b""))
        self._notify()

    def _notify(self) -> None:
        if self._taker is not None and not self._waits:
            self._waits = True
            self._turns.wake(self)

    def give_to(self, taker: Callable[[], bool] | None) -> None:
        """From now on `taker` is called when it is this socket's turn; it says whether a task goes on."""
        self._taker = taker
        if self.reads:
            self._notify()

    def take_turn(self) -> bool:
        self._waits = False
        return self._taker is not None and self._taker()


class Connection:
    """One HTTP/1.1 connection; exchanges follow one another on it."""

    def __init__(self, endpoint: Endpoint, transport: asyncio.WriteTransport, wire: _Socket) -> None:
        self._endpoint = endpoint
        self._transport = transport
        self._wire = wire
        self.exchanges = 0
        self._begin()

    def _begin(self) -> None:
        """For one exchange: h11 writes the request and reads the head, the body is taken apart by itself."""
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEADER_BYTES)
        self._body: Body | None = None
        self._keep_open = self._complete = False

    @classmethod
    async def connect(cls, endpoint: Endpoint, context: ssl.SSLContext | None, turns: _Turns) -> "Connection":
        """Raises ConnectionFailed with the reason."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                transport, wire = await loop.create_connection(
                    lambda: _Socket(turns), endpoint.host, endpoint.port, ssl=context
                )
        except TimeoutError as fault:
            raise ConnectionFailed(f"no connection within {CONNECT_TIMEOUT_S:g} s") from fault
        except OSError as fault:
            raise ConnectionFailed(fault.strerror or str(fault)) from fault
        return cls(endpoint, transport, wire)

    def tls(self) -> dict[str, Any] | None:
        """Version of TLS and the end of the certificate; None for a connection in clear."""
        secured = self._transport.get_extra_info("ssl_object")
        if secured is None:
            return None
        return {"version": secured.version(), "expires": (secured.getpeercert() or {}).get("notAfter")}

    @property
    def usable(self) -> bool:
        """Whether another exchange can start here."""
        return not self._wire.closed and not self._transport.is_closing() and not self._wire.reads

    def send(self, method: str, path: str, headers: Sequence[tuple[str, str]], body: bytes) -> int:
        """Write one request; the stamp is taken right before the bytes go to the socket."""
        self.exchanges += 1
        head = [
            ("Host", self._endpoint.authority),
            ("Accept-Encoding", "identity"),
            ("Content-Length", str(len(body))),
            *headers,
        ]
        target = self._endpoint.base_path + path or "/"
        request = h11.Request(method=method, target=target, headers=head)
        parts = [self._http.send(request), self._http.send(h11.Data(data=body)) if body else b""]
        parts.append(self._http.send(h11.EndOfMessage()))
        sent_ns = time.monotonic_ns()
        self._transport.write(b"".join(part for part in parts if part))
        return sent_ns

    async def exchange(self, take: Take) -> bool:
        """Read one answer: `take` gets its Response, Data and EndOfMessage, each with the stamp of its read.

        All Data of one read are one. True at the end of the answer, False as soon as `take` says to leave.
        Raises ConnectionFailed when the connection ends before the answer does, and what `take` raises.
        """
        self._over = asyncio.get_running_loop().create_future()
        self._take = take
        self._wire.give_to(self._take_reads)
        try:
            return await self._over
        finally:
            self._wire.give_to(None)

    def _take_reads(self) -> bool:
        """Take what was read; whether the exchange is over."""
        reads, over = self._wire.reads, self._over
        while reads and not over.done():
            ns, data = reads.popleft()
            try:
                ended = self._take_read(ns, data)
            except (h11.RemoteProtocolError, BrokenBody) as fault:
                failure = ConnectionFailed(self._failure(fault))
                failure.__cause__ = fault
                over.set_exception(failure)
            except Exception as fault:  # the exchange's own task raises it
                over.set_exception(fault)
            else:
                if ended is not None:
                    over.set_result(ended)
        return over.done()

    def _take_read(self, ns: int, data: bytes) -> bool | None:
        """True at the end of the answer, False to leave, None to go on."""
        if self._body is None:
            response = self._head(data)
            if response is None:
                return None
            self._body, self._keep_open = body_of(response), keeps_open(response)
            if self._take(ns, response):
                return False
            data, at_end = self._http.trailing_data
        else:
            at_end = not data
        content, complete = self._body.feed(data)
        if content and self._take(ns, h11.Data(data=content)):
            return False
        if not complete and at_end:
            if not self._body.open_ended:
                raise ConnectionFailed("the connection was closed before the answer was complete")
            self._keep_open = False
        if not complete and not at_end:
            return None
        self._complete = True
        self._take(ns, h11.EndOfMessage())
        return True

    def _head(self, data: bytes) -> h11.Response | None:
        self._http.receive_data(data)
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                return None
            if isinstance(event, h11.Response):
                return event
            if not isinstance(event, h11.InformationalResponse):
                raise ConnectionFailed("the connection was closed without an answer")

    def _failure(self, fault: Exception) -> str:
        if self._wire.closed:
            return "the connection was closed before the answer was complete"
        return f"the answer is no HTTP ({fault})"

    def finish(self) -> bool:
        """Make ready for the next exchange; False when the connection cannot be used again."""
        if not self._complete or not self._keep_open or (self._body is not None and self._body.extra):
            return False
        self._begin()
        return self.usable

    def close(self) -> None:
        """Leave at once: what has not arrived is not waited for."""
        self._transport.abort()


class ConnectionPool:
    """Open connections to one endpoint; an idle one is used before a new one is made."""

    def __init__(self, endpoint: Endpoint, context: ssl.SSLContext | None = None) -> None:
        self.endpoint = endpoint
        if context is None and endpoint.scheme == "https":
            context = ssl.create_default_context()
        self._context = context
        self._turns = _Turns()
        self._idle: list[Connection] = []

    async def acquire(self, *, fresh: bool = False) -> Connection:
        """Raises ConnectionFailed."""
        while self._idle and not fresh:
            connection = self._idle.pop()
            if connection.usable:
                return connection
            connection.close()
        return await Connection.connect(self.endpoint, self._context, self._turns)

    def release(self, connection: Connection) -> None:
        if connection.finish():
            self._idle.append(connection)
        else:
            connection.close()

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()


@dataclass(frozen=True)
class Fetched:
    """The answer to a small GET."""

    status: int
    headers: dict[str, str]
    body: bytes
    took_ms: float


async def fetch(
    pool: ConnectionPool,
    path: str,
    headers: Sequence[tuple[str, str]] = (),
    *,
    timeout_s: float,
    max_bytes: int = MAX_FETCHED_BYTES,
) -> Fetched:
    """GET below the base path; raises TimeoutError, or ConnectionFailed, also for too large an answer."""
    begun_ns = time.monotonic_ns()
    status, fields, body, size = 0, dict[str, str](), list[bytes](), 0

    def take(_: int, event: h11.Event) -> bool:
        nonlocal status, fields, size
        if isinstance(event, h11.Response):
            status = event.status_code
            fields = {name.decode(): value.decode("latin-1") for name, value in event.headers}
        elif isinstance(event, h11.Data):
            body.append(bytes(event.data))
            size += len(body[-1])
            if size > max_bytes:
                raise ConnectionFailed(f"the answer is larger than {max_bytes:,} bytes")
        return False

    async with asyncio.timeout(timeout_s):
        connection = await pool.acquire()
        try:
            connection.send("GET", path, headers, b"")
            await connection.exchange(take)
        except BaseException:
            connection.close()
            raise
        pool.release(connection)
    return Fetched(status, fields, b"".join(body), (time.monotonic_ns() - begun_ns) / 1e6)
