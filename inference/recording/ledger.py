"""Which requests have left, in a mapped file: a stamp is there before its request is sent.

What is written to the mapping is the system's at once, without a call: it outlives a killed process, and a
request pays some hundred nanoseconds for it.
"""

import mmap
import struct
from pathlib import Path

import numpy as np

SUFFIX = ".sent"
_STAMP = struct.Struct("<q")


class SentLedger:
    """One stamp (ns) for each of `planned` requests, by its place; for one writer."""

    def __init__(self, path: Path, planned: int) -> None:
        """Raises OSError where the file cannot be made."""
        self.path, self._planned = path, planned
        with path.open("xb+") as file:
            file.truncate(max(1, planned) * _STAMP.size)
            self._map = mmap.mmap(file.fileno(), 0)

    def mark(self, place: int, ns: int) -> None:
        """The request at this place leaves now."""
        if 0 <= place < self._planned:
            _STAMP.pack_into(self._map, place * _STAMP.size, ns)

    def close(self) -> None:
        self._map.close()


class LedgerReader:
    """Tells what has left since it was last asked; the file may still be written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen = np.zeros(0, dtype=np.int64)

    def new(self) -> list[tuple[int, int]]:
        """(place, ns) of every request that has left since the last call; empty while there is no file."""
        try:
            content = self._path.read_bytes()
        except OSError:
            return []
        now = np.frombuffer(content[: len(content) // 8 * 8], dtype="<i8")
        before = np.zeros(len(now), dtype=np.int64)
        before[: len(self._seen)] = self._seen[: len(now)]
        places = np.flatnonzero((now != 0) & (before == 0))
        self._seen = now.copy()
        return [(int(place), int(now[place])) for place in places]
