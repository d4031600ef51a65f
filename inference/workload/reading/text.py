"""From bytes to text, rows and objects, with the line of each."""

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

from inference.errors import InputError
from inference.workload.reading.items import LineFault

#: the first bytes of files that are no text
_BINARY = {
    b"PK\x03\x04": "an Excel workbook or an archive; save the sheet as CSV (UTF-8)",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook; save the sheet as CSV (UTF-8)",
    b"PAR1": "a Parquet file; export it as CSV or JSON lines",
    b"\x1f\x8b": "compressed; unpack it first",
    b"\x28\xb5\x2f\xfd": "compressed; unpack it first",
}
_MARKS = {
    b"\xef\xbb\xbf": ("utf-8", "UTF-8 with BOM"),
    b"\xff\xfe": ("utf-16-le", "UTF-16"),
    b"\xfe\xff": ("utf-16-be", "UTF-16"),
}
_LONGEST_FIELD = 32 * 1024 * 1024
csv.field_size_limit(_LONGEST_FIELD)


def decode(raw: bytes, name: str) -> tuple[str, str]:
    """The text of a file and what it was written in: UTF-8 with or without a mark, UTF-16, or GBK.

    Raises InputError for files that are no text, naming line and byte.
    """
    for start, what in _BINARY.items():
        if raw.startswith(start):
            raise InputError(f"{name}: this is {what}")
    for mark, (codec, label) in _MARKS.items():
        if raw.startswith(mark):
            return _strictly(raw[len(mark) :], codec, name), label
    try:
        return _no_zeros(raw.decode("utf-8"), name), "UTF-8"
    except UnicodeDecodeError as fault:
        try:
            return _no_zeros(raw.decode("gb18030"), name), "GBK"
        except UnicodeDecodeError:
            line = raw.count(b"\n", 0, fault.start) + 1
            column = fault.start - (raw.rfind(b"\n", 0, fault.start) + 1) + 1
            raise InputError(f"{name}, line {line}, byte {column}: neither UTF-8 nor GBK text") from fault


def _strictly(raw: bytes, codec: str, name: str) -> str:
    try:
        return _no_zeros(raw.decode(codec), name)
    except UnicodeDecodeError as fault:
        raise InputError(f"{name}, byte {fault.start}: not the text that its first bytes promise") from fault


def _no_zeros(text: str, name: str) -> str:
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise InputError(f"{name}, line {line}: a zero byte; this is no text file")
    return text


def objects(text: str) -> Iterator[tuple[int, Any]]:
    """The objects of a JSON array or of JSON lines with their lines; what is none comes as a LineFault."""
    if text.lstrip()[:1] == "[":
        yield from _array(text)
        return
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                yield number, _object(json.loads(line), number)
            except (ValueError, RecursionError) as fault:
                yield number, LineFault(number, f"not JSON ({_at(fault)})")


def _object(value: Any, line: int) -> Any:
    if not isinstance(value, dict):
        return LineFault(line, "a line is a JSON object, this one is not")
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return LineFault(line, "a text has half of a character (a lone surrogate)")
    return value


def _array(text: str) -> Iterator[tuple[int, Any]]:
    """One element after the other, so that each has its line."""
    decoder = json.JSONDecoder()
    place, line, counted = text.index("[") + 1, 1, 0
    while True:
        place = _skip_space(text, place)
        if text[place : place + 1] == "]":
            return
        line, counted = line + text.count("\n", counted, place), place
        try:
            value, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError) as fault:
            at = getattr(fault, "lineno", line)
            yield at, LineFault(at, f"not JSON ({_at(fault)})")
            return
        yield line, _object(value, line)
        place = _skip_space(text, place)
        if text[place : place + 1] == ",":
            place += 1
        elif text[place : place + 1] != "]":
            at = text.count("\n", 0, place) + 1
            yield at, LineFault(at, "the JSON array ends here or lacks a comma")
            return


def _skip_space(text: str, place: int) -> int:
    while place < len(text) and text[place] in " \t\r\n":
        place += 1
    return place


def _at(fault: Exception) -> str:
    """The fault of the JSON parser with its column."""
    if isinstance(fault, json.JSONDecodeError):
        return f"{fault.msg}, column {fault.colno}"
    return "nested too deeply" if isinstance(fault, RecursionError) else str(fault)


def table(text: str, name: str) -> tuple[list[str], Iterator[tuple[int, Any]]]:
    """The header of a CSV text, and its rows by column name with their lines.

    Comma, semicolon and tab separate, whichever the header has most of. Raises InputError for a header
    that names a column twice or none.
    """
    head = text.lstrip("\r\n").split("\n", 1)[0]
    delimiter = max(",;\t", key=head.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        header = [column.strip() for column in next((row for row in reader if any(row)), [])]
    except csv.Error as fault:
        raise InputError(f"{name}, line 1: no CSV header ({fault})") from fault
    twice = next((column for column in header if header.count(column) > 1), None)
    if twice is not None:
        raise InputError(f"{name}, line {reader.line_num}: column {twice!r} is there twice")
    return header, _rows(reader, header)


def _rows(reader: Any, header: list[str]) -> Iterator[tuple[int, Any]]:
    while True:
        line = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as fault:
            yield line, LineFault(line, f"no CSV ({fault})")
            return
        if not any(field.strip() for field in row):
            continue
        if len(row) != len(header):
            yield line, LineFault(line, f"has {len(row)} columns, the header has {len(header)}")
            continue
        yield line, dict(zip(header, row, strict=True))
