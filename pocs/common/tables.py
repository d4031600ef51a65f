"""Tables for spreadsheets as CSV: the one writer of every export, whose cells no spreadsheet executes."""

import csv
import math
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from datetime import date, datetime
from typing import Any
from urllib.parse import quote

from asgiref.sync import sync_to_async
from django.http import StreamingHttpResponse

CONTENT_TYPE = "text/csv; charset=utf-8"
#: without it, spreadsheets read UTF-8 as the code page of their machine
BYTE_ORDER_MARK = "\N{ZERO WIDTH NO-BREAK SPACE}"
ROWS_PER_CHUNK = 500
#: what begins a formula, also in full width, and the controls that a spreadsheet drops before it looks
_FORMULA = re.compile(r"\s*[=+\-@＝＋－＠]|[\t\r\n\x00]")
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")


def cell(value: Any) -> str | int | float:
    """One value as it stands in an export.

    Text that a spreadsheet would take for a formula gets an apostrophe in front; a number stays a
    number, also a negative one and one that came as text. Absent is empty, and so is what is no number.
    """
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return value
    if isinstance(value, datetime | date):
        return value.isoformat()
    text = str(value)
    if _FORMULA.match(text) and not _NUMBER.fullmatch(text):
        return f"'{text}"
    return text


class _Line:
    """What `csv.writer` writes to: it gives each line back."""

    def write(self, line: str) -> str:
        return line


def lines(header: Sequence[Any], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """The lines of the table, the header first; rows are read as they are written."""
    writer = csv.writer(_Line())
    yield writer.writerow([cell(value) for value in header])
    for row in rows:
        yield writer.writerow([cell(value) for value in row])


def _next(parts: Iterator[bytes]) -> bytes | None:
    return next(parts, None)


class TableResponse(StreamingHttpResponse):
    """Streamed: rows are read a chunk at a time under ASGI too, where Django reads all of them first."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        parts = iter(self.streaming_content)  # type: ignore[arg-type]
        while (part := await sync_to_async(_next)(parts)) is not None:
            yield part


def csv_response(name: str, header: Sequence[Any], rows: Iterable[Sequence[Any]]) -> TableResponse:
    """A download called `name` (with `.csv`), streamed, so that a long table needs no memory."""
    response = TableResponse(_chunks(lines(header, rows)), content_type=CONTENT_TYPE)
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name)
    response["Content-Disposition"] = f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name)}"
    response["X-Content-Type-Options"] = "nosniff"
    response["Cache-Control"] = "no-store"
    return response


def _chunks(written: Iterable[str]) -> Iterator[str]:
    held = [BYTE_ORDER_MARK]
    for line in written:
        held.append(line)
        if len(held) >= ROWS_PER_CHUNK:
            yield "".join(held)
            held.clear()
    if held:
        yield "".join(held)
