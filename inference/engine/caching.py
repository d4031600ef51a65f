"""Where what is made once and used again is kept on disk."""

import os
from pathlib import Path


def cache_folder(name: str) -> Path:
    """A folder of this name in `$PHASEGATE_CACHE`, else below `$PHASEGATE_VAR` or the user's cache folder."""
    if given := os.environ.get("PHASEGATE_CACHE"):
        return Path(given).expanduser() / name
    if var := os.environ.get("PHASEGATE_VAR"):
        return Path(var).expanduser() / "cache" / name
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "phasegate" / name
