"""CSV exports: nothing in them is a formula, and numbers stay numbers."""

import asyncio
import csv
import io
from datetime import UTC, datetime

import pytest

from pocs.common import tables


@pytest.mark.parametrize(
    "text",
    ["=1+2", "+1+2", "-cmd|x", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " =1", "＝1+2", "＠x", "-", "-1-2", "--1"],
)
def test_what_begins_a_formula_is_text(text: str) -> None:
    assert tables.cell(text) == f"'{text}"


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (-3, -3), (-0.25, -0.25), ("-3.5", "-3.5"), ("+4", "+4"), ("-1e-3", "-1e-3"), (None, ""),
        (float("nan"), ""), (float("-inf"), ""), (True, "true"), ("a=b", "a=b"), ("", ""),
        (datetime(2026, 1, 2, 3, 4, tzinfo=UTC), "2026-01-02T03:04:00+00:00"),
    ],
)  # fmt: skip
def test_numbers_stay_numbers_and_absent_is_empty(value: object, stored: object) -> None:
    assert tables.cell(value) == stored


def test_the_download_is_read_back_as_it_was() -> None:
    rows = [[i, "租户, “a”", '=HYPERLINK("x")', "two\nlines", -1.5] for i in range(1200)]
    response = tables.csv_response("记录 R1.csv", ["n", "tenant", "=note", "text", "value"], rows)
    octets = b"".join(response)
    assert octets.startswith(b"\xef\xbb\xbf")
    table = list(csv.reader(io.StringIO(octets.decode("utf-8-sig"), newline="")))
    assert table[0] == ["n", "tenant", "'=note", "text", "value"]
    assert table[1200] == ["1199", "租户, “a”", '\'=HYPERLINK("x")', "two\nlines", "-1.5"]
    assert response["X-Content-Type-Options"] == "nosniff"
    assert "filename*=UTF-8''%E8%AE%B0" in response["Content-Disposition"]


def test_the_server_reads_rows_as_it_sends_them() -> None:
    read = []

    def rows():  # type: ignore[no-untyped-def]
        for i in range(2000):
            read.append(i)
            yield [i]

    async def first() -> bytes:
        async for part in tables.csv_response("t.csv", ["n"], rows()):
            return part
        return b""

    assert asyncio.run(first()).startswith(b"\xef\xbb\xbfn\r\n0\r\n")
    assert len(read) < 1000
