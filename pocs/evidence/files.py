"""Which files may be attached: a short list of kinds, told by their bytes and not by their name."""

import codecs
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath

from django.conf import settings
from django.core.files.base import File
from django.template.defaultfilters import filesizeformat
from django.utils.translation import gettext as _

from pocs.common.errors import FieldError, InvalidInput
from pocs.evidence.content import read_chunks

NAME_MAX_CHARACTERS = 200


@dataclass(frozen=True)
class CheckedFile:
    """A file that passed: its plain name, the type its bytes have, size and digest."""

    name: str
    content_type: str
    size_bytes: int
    sha256: str


def _starts_with(magic: bytes) -> Callable[[File], bool]:
    def check(upload: File) -> bool:
        upload.seek(0)
        return upload.read(len(magic)) == magic

    return check


_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
#: control characters and marks of writing direction, which make a name look like another
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f\u202a-\u202e\u2066-\u2069]")


def _is_text(upload: File) -> bool:
    """UTF-8 without control characters (tab, line ends, form feed and the escape of colours may occur)."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    try:
        for chunk in read_chunks(upload):
            if _CONTROL.search(decoder.decode(chunk)):
                return False
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _is_json(upload: File) -> bool:
    upload.seek(0)
    try:
        json.loads(upload.read())
    except (ValueError, RecursionError):
        return False
    return True


#: name's ending -> (content type, whether the bytes are of that kind)
KINDS: dict[str, tuple[str, Callable[[File], bool]]] = {
    ".pdf": ("application/pdf", _starts_with(b"%PDF-")),
    ".png": ("image/png", _starts_with(b"\x89PNG\r\n\x1a\n")),
    ".jpg": ("image/jpeg", _starts_with(b"\xff\xd8\xff")),
    ".jpeg": ("image/jpeg", _starts_with(b"\xff\xd8\xff")),
    ".json": ("application/json", _is_json),
    ".jsonl": ("text/plain; charset=utf-8", _is_text),
    ".csv": ("text/csv; charset=utf-8", _is_text),
    ".txt": ("text/plain; charset=utf-8", _is_text),
    ".md": ("text/plain; charset=utf-8", _is_text),
    ".log": ("text/plain; charset=utf-8", _is_text),
    ".yaml": ("text/plain; charset=utf-8", _is_text),
    ".yml": ("text/plain; charset=utf-8", _is_text),
    # archives are kept as they came and never opened
    ".zip": ("application/zip", _starts_with(b"PK\x03\x04")),
    ".gz": ("application/gzip", _starts_with(b"\x1f\x8b\x08")),
    ".tgz": ("application/gzip", _starts_with(b"\x1f\x8b\x08")),
}


def check_upload(upload: File) -> CheckedFile:
    """What an upload is; raises InvalidInput at `/file` when it is empty, too large or of another kind."""
    name = plain_name(upload.name or "")
    size = upload.size
    if not size:
        raise _refused("empty", _("“%(name)s” is empty.") % {"name": name})
    if size > settings.PHASEGATE_ATTACHMENT_MAX_BYTES:
        raise too_large(name)
    ending = PurePosixPath(name).suffix.lower()
    if ending not in KINDS:
        allowed = ", ".join(sorted(kind[1:] for kind in KINDS))
        raise _refused(
            "content_type",
            _("“%(name)s” is of a kind that is not accepted. Accepted: %(allowed)s.")
            % {"name": name, "allowed": allowed},
        )
    content_type, is_that_kind = KINDS[ending]
    if not is_that_kind(upload):
        raise _refused(
            "content_type",
            _("The content of “%(name)s” is not what its name says (%(ending)s).")
            % {"name": name, "ending": ending[1:]},
        )
    content = hashlib.sha256()
    for chunk in read_chunks(upload):
        content.update(chunk)
    upload.seek(0)
    return CheckedFile(name, content_type, size, content.hexdigest())


def too_large(name: str) -> InvalidInput:
    """The refusal of a file beyond the limit, also for one that was not read to its end."""
    return _refused(
        "too_large",
        _("“%(name)s” is larger than the %(limit)s that one file may have.")
        % {"name": plain_name(name), "limit": filesizeformat(settings.PHASEGATE_ATTACHMENT_MAX_BYTES)},
    )


def plain_name(name: str) -> str:
    """The last part of a path in any system's spelling, without control characters, of bounded length."""
    last = _UNPRINTABLE.sub("", name.replace("\\", "/").rsplit("/", 1)[-1]).strip()
    if len(last) <= NAME_MAX_CHARACTERS:
        return last or "file"
    ending = PurePosixPath(last).suffix[:20]
    return last[: NAME_MAX_CHARACTERS - len(ending)] + ending


def _refused(code: str, detail: str) -> InvalidInput:
    return InvalidInput(detail, [FieldError("/file", code, detail)])
