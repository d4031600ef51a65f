"""Follows segments while another process writes them: each sound frame's items once, in order."""

from pathlib import Path
from typing import Any

import zstandard

from inference.recording.segments import MAGIC, STARTS_BLOCK, SUFFIX, frames_from, items_of


class SegmentTail:
    """The items of the segments in a folder that were written since the last look."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._number, self._at = 1, len(MAGIC)
        self._stream: Any = None

    def new(self) -> list[dict[str, Any]]:
        """Every item whose frame is whole; a frame that is still being written comes with the next call."""
        found: list[dict[str, Any]] = []
        while True:
            path = self._folder / f"{self._number:06d}{SUFFIX}"
            if not path.is_file():
                return found
            # whether there is a next one must be known before this one is read to its end
            followed = path.with_name(f"{self._number + 1:06d}{SUFFIX}").is_file()
            found += self._read(path)
            if not followed:
                return found
            self._number, self._at, self._stream = self._number + 1, len(MAGIC), None

    def _read(self, path: Path) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for flags, payload, end in frames_from(path, self._at):
            if flags & STARTS_BLOCK:
                self._stream = zstandard.ZstdDecompressor().decompressobj()
            self._at = end
            found += items_of(self._stream.decompress(payload))
        return found
