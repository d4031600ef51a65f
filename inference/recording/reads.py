"""Reads of many requests in one flat file on disk, so that a long run holds none of them in memory."""

import os
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np

Read = tuple[int, int | None]

_UNKNOWN = -1
_ROW = np.dtype([("ns", "<i8"), ("tokens", "<i4")])
_BUFFERED_ROWS = 1 << 16


class ReadStore:
    """A scratch file without a name: it is gone with the process. For one writer at a time."""

    def __init__(self) -> None:
        self._file: Any = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 it lives as long as the store
        self._rows = self._written = 0
        self._buffer: list[np.ndarray] = []

    def add(self, reads: Sequence[Read]) -> "StoredReads":
        """Keep the reads of one request; the returned sequence fetches them when they are asked for."""
        rows = np.empty(len(reads), dtype=_ROW)
        if reads:
            rows["ns"] = [ns for ns, _tokens in reads]
            rows["tokens"] = [_UNKNOWN if tokens is None else tokens for _ns, tokens in reads]
        self._buffer.append(rows)
        stored = StoredReads(self, self._rows, len(rows))
        self._rows += len(rows)
        if self._rows - self._written >= _BUFFERED_ROWS:
            self._flush()
        return stored

    def rows(self, start: int, count: int) -> np.ndarray:
        """`count` rows from `start` on, with the fields `ns` and `tokens` (−1: unknown)."""
        if start + count > self._written:
            self._flush()
        content = os.pread(self._file.fileno(), count * _ROW.itemsize, start * _ROW.itemsize)
        return np.frombuffer(content, dtype=_ROW)

    def _flush(self) -> None:
        content = memoryview(np.concatenate(self._buffer).tobytes() if self._buffer else b"")
        while content:
            content = content[self._file.write(content) :]
        self._buffer, self._written = [], self._rows


class StoredReads(Sequence[Read]):
    """The reads of one request, `(ns, tokens)` each, in a ReadStore."""

    __slots__ = ("_count", "_start", "_store")

    def __init__(self, store: ReadStore, start: int, count: int) -> None:
        self._store, self._start, self._count = store, start, count

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Read]:
        rows = self.rows()
        for ns, tokens in zip(rows["ns"].tolist(), rows["tokens"].tolist(), strict=True):
            yield ns, None if tokens == _UNKNOWN else tokens

    @overload
    def __getitem__(self, at: int) -> Read: ...
    @overload
    def __getitem__(self, at: slice) -> list[Read]: ...
    def __getitem__(self, at: int | slice) -> Read | list[Read]:
        return list(self)[at]

    def rows(self) -> np.ndarray:
        """The same as an array with the fields `ns` and `tokens` (−1: unknown)."""
        return self._store.rows(self._start, self._count)


def stamps_ns(reads: Sequence[Read]) -> np.ndarray:
    """The stamps of a request's reads, in ns."""
    if isinstance(reads, StoredReads):
        return np.asarray(reads.rows()["ns"])
    return np.fromiter((ns for ns, _tokens in reads), dtype=np.int64, count=len(reads))


def gaps_ns(reads: Sequence[Read]) -> np.ndarray:
    """Gaps between consecutive reads, in ns; empty below two reads."""
    return np.diff(stamps_ns(reads))
