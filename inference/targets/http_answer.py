"""Sorts the HTTP events of an answer: an event stream, lines or a body, packed or not, or a refusal."""

import re
import zlib
from typing import Any

import h11

from inference.records import Trace
from inference.targets.openai_answer import AnswerReader, error_of_body

MAX_UNPACKED_BYTES = 16 * 1024 * 1024  # of one read: a few packed bytes can hold much
RETRY_SECONDS = re.compile(r"[0-9]{1,7}(\.[0-9]{1,9})?")


class HttpAnswer:
    """Sorts one answer's HTTP events: an event stream to the reader, anything else kept whole."""

    def __init__(self, trace: Trace, reader: AnswerReader) -> None:
        self._trace, self._reader = trace, reader
        self._content_type = ""
        self._streamed: bool | None = None  # unknown until the first bytes
        self._body: list[bytes] = []
        self._last_ns = 0
        self._unpacker: Any = None
        self._lines = False  # one JSON object a line

    def take(self, ns: int, event: h11.Event) -> None:
        if isinstance(event, h11.Response):
            self._head(ns, event)
        elif isinstance(event, h11.Data):
            self._data(ns, bytes(event.data))
        elif isinstance(event, h11.EndOfMessage):
            self._trace.closed_ns = ns
            self._end()

    def _head(self, ns: int, response: h11.Response) -> None:
        headers = {name.decode(): value.decode("latin-1") for name, value in response.headers}
        self._trace.headers_ns, self._trace.status = ns, response.status_code
        self._content_type = headers.get("content-type", "").lower()
        self._lines = "ndjson" in self._content_type and response.status_code == 200
        self._unpack(headers.get("content-encoding", "").strip().lower())
        if response.status_code // 100 == 3 and "location" in headers:
            self._trace.server["redirected_to"] = headers["location"]
        if "x-queue-time" in headers:
            self._trace.server["headers"] = {"x-queue-time": headers["x-queue-time"]}
        if "retry-after" in headers:
            self._trace.server["retry_after"] = headers["retry-after"]
            seconds = headers["retry-after"].strip()
            if RETRY_SECONDS.fullmatch(seconds):
                self._trace.server["retry_after_s"] = float(seconds)

    def _unpack(self, coding: str) -> None:
        """An answer packed although `identity` was asked for is read all the same, where it can be."""
        if coding in ("", "identity"):
            return
        self._trace.server["packed"] = coding
        if coding in ("gzip", "x-gzip", "deflate"):
            self._unpacker = zlib.decompressobj(zlib.MAX_WBITS | 32)
        else:
            self._trace.error = f"the answer is packed ({coding}), although that was not asked for"

    def _unpacked(self, data: bytes) -> bytes:
        if self._unpacker is None:
            return data
        try:
            return self._unpacker.decompress(data, MAX_UNPACKED_BYTES)
        except zlib.error as fault:
            if self._trace.error is None:
                self._trace.error = f"the packed answer is broken: {fault}"
            return b""

    def _data(self, ns: int, data: bytes) -> None:
        self._last_ns = ns
        data = self._unpacked(data)
        if not data:
            return
        if self._streamed is None:
            by_type = "event-stream" in self._content_type or self._lines
            by_look = "json" not in self._content_type and not data.lstrip().startswith(b"{")
            self._streamed = self._trace.status == 200 and (by_type or by_look)
        if self._lines:
            self._reader.feed_lines(ns, data)
        elif self._streamed:
            self._reader.feed(ns, data)
        else:
            self._body.append(data)

    def _end(self) -> None:
        trace, body = self._trace, b"".join(self._body)
        if trace.status != 200:
            trace.ended = "refused"
            trace.error = error_of_body(body, trace.status or 0)
            if "redirected_to" in trace.server:
                trace.error = f"HTTP {trace.status}: the endpoint is at {trace.server['redirected_to']}"
            return
        trace.ended = "orderly"
        if "html" in self._content_type and not trace.reads and trace.error is None:
            trace.error = "the endpoint answered an HTML page, not an answer of a model"
        if self._lines:
            self._reader.feed_lines(self._last_ns, b"\n")
        if self._streamed is False:
            self._reader.whole(self._last_ns, body)
