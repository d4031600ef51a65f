"""Framed messages between the host and the engine process: four bytes of length, then msgpack.

Host to engine, first `["start", options, known digest, ns of its birth]`, then lists of commands:
`["submit", handle, request]`, `["abort", handle]`, `["call", number, name, arguments]`. Engine to host, lists
of events: `[kind, handle, ns, …]` (see `inference.engine.events`), `["result", number, ok, value]`,
`["alive"]` when it waits for its start and about once a second from then on, and once `["ready", facts]` or
`["unavailable", reason]`.
`["stuck", reason]` is the last word of a process that ends itself.
"""

import socket
import struct
from collections.abc import Callable
from typing import Any

import msgpack

HEADER = struct.Struct("<I")
TIMEVAL = struct.Struct("@ll")
MAX_FRAME_BYTES = 256 * 2**20


def write(sock: socket.socket, messages: list[Any]) -> None:
    """Send one frame whole; raises OSError when the other side is gone."""
    body = msgpack.packb(messages, use_bin_type=True)
    sock.sendall(HEADER.pack(len(body)) + body)


def read(sock: socket.socket, on_silence: Callable[[], None] | None = None) -> list[Any] | None:
    """The next frame, or None at the end of the stream and when its bytes make no sense.

    `on_silence` is called whenever nothing came for as long as `tick` has set; it may raise to give up.
    """
    header = _exactly(sock, HEADER.size, on_silence)
    if header is None:
        return None
    (length,) = HEADER.unpack(header)
    if length > MAX_FRAME_BYTES:
        return None
    body = _exactly(sock, length, on_silence)
    try:
        return None if body is None else msgpack.unpackb(body, raw=False, strict_map_key=False)
    except ValueError:
        return None


def tick(sock: socket.socket, every_s: float) -> None:
    """Let reads come back after this long without a byte. Writes of other threads go on blocking."""
    whole_s = int(every_s)
    sock.setsockopt(
        socket.SOL_SOCKET, socket.SO_RCVTIMEO, TIMEVAL.pack(whole_s, int((every_s - whole_s) * 1e6))
    )


def _exactly(sock: socket.socket, count: int, on_silence: Callable[[], None] | None) -> bytes | None:
    parts = bytearray()
    while len(parts) < count:
        try:
            part = sock.recv(count - len(parts))
        except BlockingIOError:
            if on_silence is not None:
                on_silence()
            continue
        except OSError:
            return None
        if not part:
            return None
        parts += part
    return bytes(parts)
