"""One signed POST to a webhook: to the address that was checked, without redirects, within a time limit."""

import http.client
import socket
import ssl
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

from pocs.notices.addresses import AddressRefused, resolve

CONNECT_TIMEOUT_S = 5.0
TOTAL_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class Answer:
    """What came of one attempt: the HTTP status, or in words why there is none."""

    status: int | None
    error: str
    duration_ms: float

    @property
    def delivered(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


def post(url: str, body: bytes, headers: dict[str, str]) -> Answer:
    """Send and read the status line only; a redirect is an answer like any other and is not followed."""
    begun = time.monotonic()
    status: int | None = None
    error = ""
    try:
        status = _exchange(url, body, headers)
        if 300 <= status < 400:
            error = f"redirects are not followed (HTTP {status})"
        elif not 200 <= status < 300:
            error = f"HTTP {status}"
    except AddressRefused as refusal:
        error = str(refusal)
    except ssl.SSLError as failure:
        error = f"TLS: {failure.reason or failure}"
    except (OSError, http.client.HTTPException) as failure:
        error = _in_words(failure)
    return Answer(status, error[:300], round((time.monotonic() - begun) * 1000, 1))


def _exchange(url: str, body: bytes, headers: dict[str, str]) -> int:
    parts = urlsplit(url)
    host = parts.hostname or ""
    secure = parts.scheme == "https"
    port = parts.port or (443 if secure else 80)
    address = resolve(host, port)
    links = [socket.create_connection((address, port), timeout=CONNECT_TIMEOUT_S)]
    # a receiver that sends a byte now and then would keep each read within its own timeout for ever
    over = threading.Event()
    watchdog = threading.Timer(TOTAL_TIMEOUT_S, _cut, [links, over])
    watchdog.daemon = True
    watchdog.start()
    try:
        if secure:
            # the wrapped socket takes the descriptor over, so it is the one to cut from here on
            links.append(ssl.create_default_context().wrap_socket(links[0], server_hostname=host))
        connection = http.client.HTTPConnection(host, port)
        connection.sock = links[-1]
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request("POST", path, body=body, headers=headers)
        status = connection.getresponse().status
        if over.is_set():  # what was cut off looks like an answer that ended
            raise TimeoutError
        return status
    finally:
        watchdog.cancel()
        for link in links:
            link.close()


def _cut(links: list[socket.socket], over: threading.Event) -> None:
    over.set()
    for link in reversed(links):
        with suppress(OSError):
            link.shutdown(socket.SHUT_RDWR)


def _in_words(failure: Exception) -> str:
    if isinstance(failure, TimeoutError):
        return "no answer in time"
    if isinstance(failure, ConnectionRefusedError):
        return "the connection was refused"
    return f"{type(failure).__name__}: {failure}".strip(": ")
