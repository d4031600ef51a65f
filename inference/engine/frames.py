"""Framed messages between the host and the engine process: four bytes of length, then msgpack.

Host to engine, a list of commands: `["submit", handle, request]`, `["abort", handle]`,
`["call", number, name, arguments]`. Engine to host, a list of events: `[kind, handle, ns, …]` (see
`inference.engine.events`), `["result", number, ok, value]`, and once `["ready", info]` or
`["unavailable", reason]`.
"""

import socket
import struct
from typing import Any

import msgpack

HEADER = struct.Struct("<I")
MAX_FRAME_BYTES = 256 * 2**20


def write(sock: socket.socket, messages: list[Any]) -> None:
    """Send one frame whole; raises OSError when the other side is gone."""
    body = msgpack.packb(messages, use_bin_type=True)
    sock.sendall(HEADER.pack(len(body)) + body)


def read(sock: socket.socket) -> list[Any] | None:
    """The next frame, or None at the end of the stream."""
    header = _exactly(sock, HEADER.size)
    if header is None:
        return None
    (length,) = HEADER.unpack(header)
    if length > MAX_FRAME_BYTES:
        return None
    body = _exactly(sock, length)
    return None if body is None else msgpack.unpackb(body, raw=False, strict_map_key=False)


def _exactly(sock: socket.socket, count: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < count:
        try:
            part = sock.recv(count - len(parts))
        except OSError:
            return None
        if not part:
            return None
        parts += part
    return bytes(parts)
