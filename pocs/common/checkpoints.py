"""Signed checkpoints of the audit chains, kept outside the database so that a cut tail is found.

One JSON line per checkpoint in `<PHASEGATE_AUDIT_CHECKPOINTS>/<organisation>.jsonl`: length and head
of the chain at a moment, signed with Ed25519. The key is derived from SECRET_KEY, the public half
stands in each line, so that a reader without the secret can check the signatures too.
"""

import base64
import json
import logging
import os
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.conf import settings
from django.utils import timezone

from pocs.common.canonical import canonical_json

log = logging.getLogger(__name__)
_PURPOSE = b"phasegate audit checkpoint v1"


@dataclass(frozen=True)
class Checkpoint:
    """One line of the file as it was read; what is no checkpoint has length 0 and no statement."""

    length: int
    head: str
    at: str
    line: dict[str, Any] | None = None

    @cached_property
    def genuine(self) -> bool:
        """Whether its signature holds under one of our keys; checked when asked, which takes its time."""
        if self.line is None:
            return False
        try:
            statement = {name: self.line[name] for name in ("organisation", "length", "head", "at")}
            if self.line["key"] not in _known_keys(tuple(_secrets())):
                return False
            signature = base64.b64decode(self.line["signature"])
            _public_key(self.line["key"]).verify(signature, canonical_json(statement))
        except (ValueError, KeyError, TypeError, InvalidSignature):
            return False
        return True


def checkpoint_file(organisation_id: int) -> Path:
    """Where the checkpoints of this organisation's chain lie."""
    return Path(settings.PHASEGATE_AUDIT_CHECKPOINTS) / f"{organisation_id}.jsonl"


def write_checkpoint(organisation_id: int, length: int, head: str) -> bool:
    """Append one signed line; False, with a log line, when the file cannot be written.

    Called after the commit of the change, which therefore stands either way.
    """
    statement = {
        "organisation": organisation_id,
        "length": length,
        "head": head,
        "at": timezone.now().isoformat(),
    }
    line = statement | sign(statement)
    path = checkpoint_file(organisation_id)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # one write of less than a page to a file opened for appending does not mix with another's
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, canonical_json(line) + b"\n")
        finally:
            os.close(descriptor)
    except OSError:
        log.exception("audit checkpoint %s of organisation %s could not be written", length, organisation_id)
        return False
    return True


def sign(statement: dict[str, Any]) -> dict[str, str]:
    """`key` and `signature` of this installation over the canonical statement, both in base64."""
    key = _signing_key(settings.SECRET_KEY)
    return {
        "key": _public_text(key.public_key()),
        "signature": base64.b64encode(key.sign(canonical_json(statement))).decode(),
    }


def public_key() -> str:
    """The installation's public key in base64: what an auditor compares a file's signatures with."""
    return _public_text(_signing_key(settings.SECRET_KEY).public_key())


def newest_lines(organisation_id: int, count: int) -> list[str]:
    """The last `count` lines of the file that are signed by the present key, oldest first."""
    path = checkpoint_file(organisation_id)
    if not path.exists():
        return []
    found = [line for line in path.read_text("utf-8", "replace").splitlines() if line.strip()][-count:]
    ours = public_key()
    return [line for line in found if _read_line(line, organisation_id).genuine and ours in line]


def read_checkpoints(organisation_id: int) -> list[Checkpoint]:
    """All checkpoints in the order written; lines that are none count as not genuine."""
    path = checkpoint_file(organisation_id)
    if not path.exists():
        return []
    return [
        _read_line(line, organisation_id)
        for line in path.read_text("utf-8", "replace").splitlines()
        if line.strip()
    ]


def _read_line(text: str, organisation_id: int) -> Checkpoint:
    try:
        line: dict[str, Any] = json.loads(text)
        if line["organisation"] == organisation_id:
            return Checkpoint(int(line["length"]), str(line["head"]), str(line["at"]), line)
    except (ValueError, KeyError, TypeError):
        pass
    return Checkpoint(length=0, head="", at="")


@lru_cache(maxsize=8)
def _known_keys(secrets: tuple[str, ...]) -> frozenset[str]:
    return frozenset(_public_text(_signing_key(secret).public_key()) for secret in secrets)


def _secrets() -> list[str]:
    return [str(secret) for secret in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)]


@lru_cache(maxsize=8)
def _signing_key(secret: str) -> Ed25519PrivateKey:
    seed = HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=_PURPOSE).derive(secret.encode())
    return Ed25519PrivateKey.from_private_bytes(seed)


@lru_cache(maxsize=8)
def _public_key(text: str) -> Ed25519PublicKey:
    return Ed25519PublicKey.from_public_bytes(base64.b64decode(text))


def _public_text(key: Ed25519PublicKey) -> str:
    return base64.b64encode(key.public_bytes(Encoding.Raw, PublicFormat.Raw)).decode()
