"""Canonical JSON and its digest: the one byte form that hashes and signatures are taken over."""

import hashlib
import json
from typing import Any


def canonical_json(value: Any) -> bytes:
    """UTF-8 JSON with sorted keys and no white space.

    Raises ValueError for NaN and infinities and TypeError for what JSON has no form for, so that
    nothing is hashed that cannot be written down again.
    """
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode()


def digest(value: Any) -> str:
    """SHA-256 over `canonical_json(value)`, as 64 hexadecimal digits."""
    return hashlib.sha256(canonical_json(value)).hexdigest()
