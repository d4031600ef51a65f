"""The event-stream grammar of WHATWG, incrementally: any split of bytes gives the same events."""

import codecs
from dataclasses import dataclass


@dataclass(frozen=True)
class ServerEvent:
    """One dispatched event; `type` is empty where the stream names none."""

    data: str
    type: str = ""


class EventStream:
    """Feed bytes as they are read; get the events which those bytes complete.

    UTF-8 is decoded across reads; lines end with CR, LF or CRLF; comments are counted and passed over; an
    event that the stream's end cuts off is never dispatched (https://html.spec.whatwg.org, 9.2.6).
    """

    def __init__(self) -> None:
        self.comments = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._pending = ""  # the line that is not complete yet
        self._at_start = True
        self._after_cr = False
        self._data: list[str] = []
        self._type = ""

    def feed(self, data: bytes) -> list[ServerEvent]:
        """The events completed by `data`, in order."""
        text = self._decoder.decode(data)
        if self._at_start and text:
            self._at_start = False
            text = text.removeprefix("\ufeff")
        events: list[ServerEvent] = []
        for line in self._lines(text):
            event = self._line(line)
            if event is not None:
                events.append(event)
        return events

    def _lines(self, text: str) -> list[str]:
        if self._after_cr and text:
            self._after_cr = False
            text = text.removeprefix("\n")
        if not text:
            return []
        self._after_cr = text.endswith("\r")
        *lines, rest = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        if lines:
            lines[0] = self._pending + lines[0]
            self._pending = rest
        else:
            self._pending += rest
        return lines

    def _line(self, line: str) -> ServerEvent | None:
        if not line:
            return self._dispatch()
        name, colon, value = line.partition(":")
        if colon and not name:
            self.comments += 1
            return None
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._type = value
        return None

    def _dispatch(self) -> ServerEvent | None:
        data, kind = self._data, self._type
        self._data, self._type = [], ""
        return ServerEvent("\n".join(data), kind) if data else None
