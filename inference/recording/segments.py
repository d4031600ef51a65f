"""Files of raw records: append-only frames with a checksum each, so that a torn end is told from damage.

A segment is the line `PGREC 1` and then frames: a head (`flags`, items, bytes of the payload, CRC-32 of
these and the payload) and the payload, MessagePack items in one zstd stream that is flushed at each frame. A
stream begins anew at least every `BLOCK_BYTES` of content: from such a frame on a segment can be read without
what lies before it, which makes a record of a large run quick to find and keeps damage to one block.
"""

import hashlib
import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import msgpack
import zstandard

MAGIC = b"PGREC 1\n"
SUFFIX = ".pgrec"
BLOCK_BYTES = 1 << 20  # of content, before compression
SEGMENT_BYTES = 64 << 20  # of a file: then the next one is begun
LONGEST_FRAME_BYTES = 1 << 30
STARTS_BLOCK = 1

_HEAD = struct.Struct("<4sBIII")  # mark, flags, items, payload bytes, CRC-32
_MARK = b"\xf9PGF"
_LEVEL = 3
_DEEPEST = 100


@dataclass(frozen=True)
class Place:
    """Where an item lies: its segment, the offset of its block's first frame, its position in the block."""

    segment: int
    block: int
    item: int


@dataclass(frozen=True)
class SegmentFacts:
    """What a closed segment is, for the run's manifest; its name is that of its folder and its file."""

    number: int
    name: str
    items: int
    size_bytes: int
    sha256: str

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class Damage:
    """What of a segment cannot be read: `torn` when only its end is missing, as after a crash."""

    segment: str
    offset: int
    torn: bool
    reason: str


@dataclass
class Contents:
    """The items that could be read of one segment, each with its place, and what could not."""

    items: list[tuple[Place, Any]] = field(default_factory=list)
    damage: list[Damage] = field(default_factory=list)
    good_bytes: int = 0  # up to the end of the last sound frame


class SegmentDamaged(Exception):
    """A segment, or the part of it that was asked for, is not what was written."""


class SegmentWriter:
    """Appends frames to one file; `sync` makes them outlive the machine."""

    def __init__(self, path: Path, number: int) -> None:
        self.path, self.number = path, number
        self.items = self.size_bytes = 0
        self._sha256 = hashlib.sha256()
        self._file = path.open("xb", buffering=0)
        self._stream: Any = None
        self._block = self._in_block = self._block_content = 0
        self._write(MAGIC)

    @property
    def full(self) -> bool:
        return self.size_bytes >= SEGMENT_BYTES

    def append(self, items: Sequence[Any]) -> list[Place]:
        """Write the items as one frame; after this they outlive the process. Returns where each lies."""
        content = b"".join(_packed(item) for item in items)
        flags = 0
        if self._stream is None or self._block_content >= BLOCK_BYTES:
            self._stream = zstandard.ZstdCompressor(level=_LEVEL).compressobj()
            self._block, self._in_block, self._block_content = self.size_bytes, 0, 0
            flags = STARTS_BLOCK
        payload = self._stream.compress(content)
        payload += self._stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
        self._write(_head(flags, len(items), payload) + payload)
        places = [Place(self.number, self._block, self._in_block + i) for i in range(len(items))]
        self._in_block += len(items)
        self._block_content += len(content)
        self.items += len(items)
        return places

    def sync(self) -> None:
        os.fdatasync(self._file.fileno())

    def close(self) -> SegmentFacts:
        """Make everything durable and say what the file is."""
        self.sync()
        self._file.close()
        name = f"{self.path.parent.name}/{self.path.name}"
        return SegmentFacts(self.number, name, self.items, self.size_bytes, self._sha256.hexdigest())

    def _write(self, content: bytes) -> None:
        rest = memoryview(content)
        while rest:
            rest = rest[self._file.write(rest) :]
        self._sha256.update(content)
        self.size_bytes += len(content)


def _head(flags: int, items: int, payload: bytes) -> bytes:
    bare = _HEAD.pack(_MARK, flags, items, len(payload), 0)
    return _HEAD.pack(_MARK, flags, items, len(payload), zlib.crc32(payload, zlib.crc32(bare)))


def _packed(item: Any) -> bytes:
    """MessagePack of an item; what it has no form for (an integer beyond 64 bits …) is kept as text."""
    form: dict[str, Any] = {"use_bin_type": True, "default": str, "unicode_errors": "surrogatepass"}
    try:
        packed: bytes = msgpack.packb(item, **form)
    except (OverflowError, ValueError):
        packed = msgpack.packb(_with_texts(item), **form)
    return packed


def _with_texts(value: Any, depth: int = 0) -> Any:
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
        return str(value)
    if depth > _DEEPEST:
        return str(value)
    if isinstance(value, dict):
        return {str(name): _with_texts(inner, depth + 1) for name, inner in value.items()}
    return [_with_texts(inner, depth + 1) for inner in value] if isinstance(value, list | tuple) else value


def file_sha256(path: Path) -> str:
    """SHA-256 of a file, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_segment(path: Path, number: int = 0) -> Contents:
    """Everything sound in a segment; what is not is named in `damage`, and the following blocks are read."""
    found = Contents()
    for place_or_damage, item in walk_segment(path, number):
        if isinstance(place_or_damage, Damage):
            found.damage.append(place_or_damage)
        elif item is not None:
            found.items.append((place_or_damage, item))
    found.good_bytes = path.stat().st_size
    torn = [damage.offset for damage in found.damage if damage.torn]
    if torn:
        found.good_bytes = torn[-1]
    return found


def walk_segment(path: Path, number: int = 0) -> Iterator[tuple[Place | Damage, Any]]:
    """(place, item) of every sound item in order, and (damage, None) for what could not be read.

    Holds one frame at a time. Never raises for what the file holds, only where it cannot be opened.
    """
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if file.read(len(MAGIC)) != MAGIC:
            yield Damage(path.name, 0, size < len(MAGIC), "it does not begin as a segment"), None
            return
        stream: Any = None
        block = position = 0
        at = len(MAGIC)
        while at < size:
            frame = _frame_at(file, at, size)
            if isinstance(frame, str):
                next_at = _next_frame(file, at + 1, size, starting=True)
                torn = next_at is None and _next_frame(file, at + 1, size, starting=False) is None
                yield Damage(path.name, at, torn, frame), None
                if next_at is None:
                    return
                at, stream = next_at, None
                continue
            flags, _count, payload = frame
            if flags & STARTS_BLOCK:
                stream = zstandard.ZstdDecompressor().decompressobj()
                block, position = at, 0
            at += _HEAD.size + len(payload)
            if stream is None:  # belongs to a block whose beginning is damaged
                continue
            for item in items_of(stream.decompress(payload)):
                yield Place(number, block, position), item
                position += 1


def frames_from(path: Path, at: int) -> Iterator[tuple[int, bytes, int]]:
    """(flags, payload, end) of each sound frame from an offset on; ends where none is whole."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        while at < size:
            frame = _frame_at(file, at, size)
            if isinstance(frame, str):
                return
            flags, _count, payload = frame
            at += _HEAD.size + len(payload)
            yield flags, payload, at


def _frame_at(file: Any, at: int, size: int) -> tuple[int, int, bytes] | str:
    """(flags, items, payload) of the frame at an offset, or what is wrong with it."""
    file.seek(at)
    head = file.read(_HEAD.size)
    if len(head) < _HEAD.size:
        return "a frame's head is cut off"
    mark, flags, items, length, crc = _HEAD.unpack(head)
    if mark != _MARK or length > LONGEST_FRAME_BYTES:
        return "there is no frame where one should begin"
    if at + _HEAD.size + length > size:
        return "a frame is cut off"
    payload = file.read(length)
    bare = _HEAD.pack(mark, flags, items, length, 0)
    if zlib.crc32(payload, zlib.crc32(bare)) != crc:
        return "a frame's checksum is wrong"
    return flags, items, payload


def _next_frame(file: Any, at: int, size: int, *, starting: bool) -> int | None:
    """The offset of the next sound frame from `at` on (one that starts a block, if asked), or None."""
    overlap = len(_MARK) - 1
    while at < size:
        file.seek(at)
        piece = file.read(1 << 20)
        found = piece.find(_MARK)
        while found >= 0:
            frame = _frame_at(file, at + found, size)
            if not isinstance(frame, str) and (frame[0] & STARTS_BLOCK or not starting):
                return at + found
            found = piece.find(_MARK, found + 1)
        if len(piece) <= overlap:
            return None
        at += len(piece) - overlap
    return None


def items_of(content: bytes) -> Iterator[Any]:
    """The items of a frame's decompressed payload."""
    unpacker = msgpack.Unpacker(
        max_buffer_size=LONGEST_FRAME_BYTES, raw=False, strict_map_key=False, unicode_errors="surrogatepass"
    )
    unpacker.feed(content)
    yield from unpacker


class BlockReader:
    """Finds single items by their place; the block read last is kept, for neighbours."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._block: int | None = None
        self._items: list[Any] = []

    def item(self, place: Place) -> Any:
        """The item at a place; raises SegmentDamaged where the file is gone or not what was written."""
        if self._block != place.block:
            self._items, self._block = self._read(place.block), place.block
        if place.item >= len(self._items):
            raise SegmentDamaged(f"{self.path.name}: the block at byte {place.block} cannot be read")
        return self._items[place.item]

    def _read(self, block: int) -> list[Any]:
        items: list[Any] = []
        try:
            with self.path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                stream = zstandard.ZstdDecompressor().decompressobj()
                at = block
                while at < size:
                    frame = _frame_at(file, at, size)
                    if isinstance(frame, str) or (at != block and frame[0] & STARTS_BLOCK):
                        break
                    items += items_of(stream.decompress(frame[2]))
                    at += _HEAD.size + len(frame[2])
        except (OSError, zstandard.ZstdError, ValueError) as fault:
            raise SegmentDamaged(f"{self.path.name}: {fault}") from fault
        return items
