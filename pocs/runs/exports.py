"""The requests of a run as CSV, JSON, JSON lines and Parquet: written as they are read, a piece at a time."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from inference.phases import INTERVALS
from pocs.common.errors import NotFound
from pocs.common.tables import BYTE_ORDER_MARK, CONTENT_TYPE, TableResponse, lines
from pocs.runs.manifest import request_line
from pocs.runs.models import RequestRecord, Run
from pocs.runs.raw_reads import DamagedRecords

ROWS_AT_ONCE = 500
PARQUET_GROUP_ROWS = 5000

_TEXTS = ("outcome", "finish_reason", "error", "tenant", "application", "output_tokens_source")
_COUNTS = ("input_tokens", "cached_tokens", "output_tokens")
_TIMES_MS = ("started_ms", "ttft_ms", "ttfv_ms", "ttfot_ms", "tpot_ms", "e2e_ms", "max_gap_ms")
_INTERVALS_MS = tuple(f"{name}_ms" for name in INTERVALS)
#: one column each, in CSV and Parquet; Parquet has the reads as lists beside them
COLUMNS = (
    "index",
    "id",
    *_TEXTS,
    *_COUNTS,
    *_TIMES_MS,
    *_INTERVALS_MS,
    "warmup",
    "flags",
    "text",
    "reasoning_text",
)


@dataclass(frozen=True)
class Export:
    """One form of the records: how it is named, sent and written."""

    suffix: str
    content_type: str
    write: Callable[[QuerySet[RequestRecord], bool], Iterator[bytes]]


def export_response(run: Run, rows: QuerySet[RequestRecord], form: str, *, bom: bool = True) -> TableResponse:
    """A download of these rows in the form `csv`, `json`, `jsonl` or `parquet`; NotFound for another.

    `bom` begins a CSV with a byte order mark, by which spreadsheets recognise UTF-8.
    """
    if form not in EXPORTS:
        known = ", ".join(EXPORTS)
        raise NotFound(_("Records are exported as one of: %(known)s.") % {"known": known})
    export = EXPORTS[form]
    return download(
        f"run-{run.project_id}-R{run.number}-requests.{export.suffix}",
        export.content_type,
        export.write(rows, bom),
    )


def download(name: str, content_type: str, content: Iterator[bytes]) -> TableResponse:
    """A streamed attachment; nothing of it is cached on the way."""
    response = TableResponse(content, content_type=content_type)
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["X-Content-Type-Options"] = "nosniff"
    response["Cache-Control"] = "no-store"
    return response


def flat(row: RequestRecord) -> list[Any]:
    """One request as the values of COLUMNS; None where nothing was observed."""
    return [
        row.index,
        row.request_id,
        *(getattr(row, name) or None for name in _TEXTS),
        *(getattr(row, name) for name in (*_COUNTS, *_TIMES_MS)),
        *(row.intervals_ms.get(name) for name in INTERVALS),
        row.warmup,
        " ".join(row.flags),
        row.text,
        row.reasoning_text,
    ]


def _csv(rows: QuerySet[RequestRecord], bom: bool) -> Iterator[bytes]:
    light = rows.defer("reads", "stamps", "detail", "token_ids")
    held = [BYTE_ORDER_MARK] if bom else []
    for line in lines(COLUMNS, map(flat, light.iterator(chunk_size=ROWS_AT_ONCE))):
        held.append(line)
        if len(held) >= ROWS_AT_ONCE:
            yield "".join(held).encode()
            held.clear()
    yield "".join(held).encode()


def _lines_of(rows: QuerySet[RequestRecord]) -> Iterator[bytes]:
    for row in rows.iterator(chunk_size=ROWS_AT_ONCE):
        content = {"index": row.index} | readable_line(row)
        yield json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()


def readable_line(row: RequestRecord) -> dict[str, Any]:
    """A line of requests.jsonl; where its segment is damaged, `reads` is null and `reads_error` says so."""
    try:
        return request_line(row)
    except DamagedRecords as error:
        row.__dict__["reads"], row.segment = [], None
        return request_line(row) | {"reads": None, "reads_error": str(error.detail)}


def _jsonl(rows: QuerySet[RequestRecord], bom: bool) -> Iterator[bytes]:
    return _gathered(line + b"\n" for line in _lines_of(rows))


def _json(rows: QuerySet[RequestRecord], bom: bool) -> Iterator[bytes]:
    def parts() -> Iterator[bytes]:
        before = b"[\n"
        for line in _lines_of(rows):
            yield before + line
            before = b",\n"
        yield b"[]\n" if before == b"[\n" else b"\n]\n"

    return _gathered(parts())


def _gathered(parts: Iterator[bytes]) -> Iterator[bytes]:
    held: list[bytes] = []
    for part in parts:
        held.append(part)
        if len(held) >= ROWS_AT_ONCE:
            yield b"".join(held)
            held.clear()
    yield b"".join(held)


class _Sink:
    """What Parquet is written to: it gives up what has come in since it was last asked."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._at, self.closed = 0, False

    def write(self, content: bytes) -> int:
        self._parts.append(bytes(content))
        self._at += len(content)
        return len(content)

    def tell(self) -> int:
        return self._at

    def flush(self) -> None:
        """Nothing waits here."""

    def close(self) -> None:
        self.closed = True

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def taken(self) -> bytes:
        content, self._parts = b"".join(self._parts), []
        return content


def parquet_schema() -> pa.Schema:
    """Columns with their types; times are double in ms, reads are lists of ns and of tokens."""
    texts = {"id", *_TEXTS, "flags", "text", "reasoning_text"}
    kinds = {name: pa.string() for name in texts}
    kinds |= {name: pa.int64() for name in ("index", *_COUNTS)} | {"warmup": pa.bool_()}
    fields = [pa.field(name, kinds.get(name, pa.float64())) for name in COLUMNS]
    return pa.schema([*fields, ("read_ns", pa.list_(pa.int64())), ("read_tokens", pa.list_(pa.int32()))])


def _parquet(rows: QuerySet[RequestRecord], bom: bool) -> Iterator[bytes]:
    schema, sink = parquet_schema(), _Sink()
    with pq.ParquetWriter(pa.PythonFile(sink, mode="w"), schema, compression="zstd") as writer:
        group: list[list[Any]] = []
        for row in rows.defer("stamps", "detail", "token_ids").iterator(chunk_size=ROWS_AT_ONCE):
            group.append([*flat(row), *_reads(row)])
            if len(group) >= PARQUET_GROUP_ROWS:
                writer.write_table(_table(group, schema))
                group = []
                yield sink.taken()
        if group:
            writer.write_table(_table(group, schema))
    yield sink.taken()


def _table(group: list[list[Any]], schema: pa.Schema) -> pa.Table:
    columns = zip(*group, strict=True)
    return pa.table(
        [pa.array(column, kind) for column, kind in zip(columns, schema.types, strict=True)], schema
    )


def _reads(row: RequestRecord) -> tuple[list[int] | None, list[int | None] | None]:
    try:
        return [ns for ns, _tokens in row.reads], [tokens for _ns, tokens in row.reads]
    except DamagedRecords:
        return None, None


EXPORTS = {
    "csv": Export("csv", CONTENT_TYPE, _csv),
    "json": Export("json", "application/json", _json),
    "jsonl": Export("jsonl", "application/x-ndjson", _jsonl),
    "parquet": Export("parquet", "application/vnd.apache.parquet", _parquet),
}
