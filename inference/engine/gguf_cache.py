"""GGUF files unpacked once: a folder of safetensors for each file and data type, kept between loads.

A folder is named by the digest of the file's bytes, so a changed file is another entry. Converters of one
file wait for each other; what they make appears whole. Each entry lists its files with size, time of change
and digest: where size and time still agree the entry is used, else its bytes are read, and an entry
that is not what was written is made again. Beyond `PHASEGATE_CACHE_MAX_BYTES` those unused for longest go.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import torch
from safetensors import SafetensorError

from inference.engine import gguf
from inference.engine.caching import cache_folder

#: bumped whenever a conversion would come out differently
VERSION = 1
CONTENTS = "contents.json"
DEFAULT_MAX_BYTES = 20 * 2**30


def root() -> Path:
    """Where entries are kept."""
    return cache_folder("gguf")


def file_digest(path: Path) -> str:
    """`sha256:…` of a file's bytes."""
    with path.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


@contextlib.contextmanager
def unpacked(path: Path, digest: str, dtype: torch.dtype) -> Iterator[Path]:
    """The folder of a checked GGUF file with this digest, converted where it is not there yet.

    It stays in place while the context is open. Where no folder can be kept (no space, no right to write),
    it is `path` itself. Raises TargetUnavailable when the file cannot be converted.
    """
    name = f"{digest.removeprefix('sha256:')[:32]}-{str(dtype).removeprefix('torch.')}-v{VERSION}"
    folder = root() / name
    with contextlib.ExitStack() as stack:
        try:
            lock = stack.enter_context(_lock_file(folder))
            _provide(path, folder, dtype, lock)
            os.utime(folder)  # the time of its last use
        except (OSError, SafetensorError):
            folder = path
        yield folder


def _provide(path: Path, folder: Path, dtype: torch.dtype, lock: IO[str]) -> None:
    """Return with a whole folder and its lock shared: others may load it, nobody may remove it."""
    while True:
        fcntl.flock(lock, fcntl.LOCK_SH)
        if _is_whole(folder):
            return
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _is_whole(folder):  # else another has made it while we waited for the lock
            shutil.rmtree(folder, ignore_errors=True)
            gguf.convert(path, folder, progress=lambda _: None, dtype=dtype)
            _describe(folder)
            _evict(keep=folder)


def _lock_file(folder: Path) -> IO[str]:
    """The file beside an entry whose lock guards it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    return folder.with_suffix(".lock").open("w")


def _describe(folder: Path) -> None:
    """List the files of a new entry; it is one from then on."""
    contents = {file.name: _state(file) | {"digest": file_digest(file)} for file in sorted(folder.iterdir())}
    part = folder / f".{CONTENTS}.part"
    part.write_text(json.dumps(contents, indent=1))
    part.replace(folder / CONTENTS)


def _state(file: Path) -> dict[str, Any]:
    found = file.stat()
    return {"bytes": found.st_size, "mtime_ns": found.st_mtime_ns}


def _is_whole(folder: Path) -> bool:
    try:
        contents = json.loads((folder / CONTENTS).read_text())
        return bool(contents) and all(_is_as_written(folder / name, was) for name, was in contents.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _is_as_written(file: Path, was: dict[str, Any]) -> bool:
    now = _state(file)
    if now["bytes"] != was["bytes"]:
        return False
    return now["mtime_ns"] == was["mtime_ns"] or file_digest(file) == was["digest"]


def _evict(keep: Path) -> None:
    """Remove what killed converters left, and entries unused for longest until the rest fits.

    An entry that is being converted or loaded stays.
    """
    for partial in keep.parent.glob(".*.partial"):
        _remove(partial, keep.with_name(partial.name[1:].removesuffix(".partial")))
    limit_bytes = int(os.environ.get("PHASEGATE_CACHE_MAX_BYTES") or DEFAULT_MAX_BYTES)
    entries = [entry for entry in keep.parent.iterdir() if entry.is_dir() and not entry.name.startswith(".")]
    sizes = {entry: sum(file.stat().st_size for file in entry.iterdir()) for entry in entries}
    excess = sum(sizes.values()) - limit_bytes
    for entry in sorted(entries, key=lambda entry: entry.stat().st_mtime_ns):
        if excess > 0 and entry != keep and _remove(entry, entry):
            excess -= sizes[entry]


def _remove(folder: Path, entry: Path) -> bool:
    """Remove a folder unless its entry's lock is held."""
    with _lock_file(entry) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        shutil.rmtree(folder, ignore_errors=True)
    return True
