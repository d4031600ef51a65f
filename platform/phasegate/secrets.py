"""Secrets from files: the embedded profile makes its key once, production reads what it is given."""

import os
import secrets
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

SECRET_KEY_MIN_CHARS = 50


def stored_secret_key(var_dir: Path) -> str:
    """The key in `var/secret-key` (mode 600), made at the first start.

    Raises ImproperlyConfigured, naming the file, when it can neither be read nor written.
    """
    path = var_dir / "secret-key"
    try:
        var_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            _write_once(path, secrets.token_urlsafe(64))
        key = path.read_text().strip()
    except OSError as error:
        raise ImproperlyConfigured(
            f"The folder {var_dir} cannot be used: {error.strerror} ({error.filename}). "
            "Make it writable or set PHASEGATE_VAR to another folder."
        ) from error
    if len(key) < SECRET_KEY_MIN_CHARS:
        raise ImproperlyConfigured(f"{path} is too short for a secret key; delete it to have a new one made.")
    return key


def _write_once(path: Path, text: str) -> None:
    """Write through a private temporary file: two processes starting together read one whole key."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    try:
        os.link(temporary, path)
    except FileExistsError:
        pass  # another process was first: its key is the key
    finally:
        temporary.unlink()
