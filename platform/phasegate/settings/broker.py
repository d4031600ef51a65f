"""Broker and channel layer settings from one Redis address."""

import hashlib
import os
import tempfile
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured

#: `sun_path` holds 108 bytes on Linux and 104 on macOS, the closing zero included
SOCKET_PATH_MAX_BYTES = 100


def broker_settings(redis_url: str) -> dict[str, Any]:
    """Celery and Channels settings for `redis://…`, `rediss://…` or `unix://SOCKET`."""
    celery_url = redis_url.replace("unix://", "redis+socket://", 1)
    return {
        "CELERY_BROKER_URL": celery_url,
        # A task that its worker lost comes again after this; the lease in the database decides
        # whether it may then run, so a copy that comes too early does no harm.
        "CELERY_BROKER_TRANSPORT_OPTIONS": {"visibility_timeout": 3600, "health_check_interval": 10},
        "CHANNEL_LAYERS": {
            "default": {
                "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
                "CONFIG": {"hosts": [redis_url], "prefix": "phasegate"},
            }
        },
        "PHASEGATE_LIVE_PUBLISH": True,
    }


def runtime_dir(var_dir: Path) -> Path:
    """Folder for the broker's socket: `var/run`, or a private temporary one where that is too long."""
    folder = var_dir / "run"
    if len(os.fsencode(folder / "valkey.sock")) > SOCKET_PATH_MAX_BYTES:
        mark = hashlib.sha256(os.fsencode(var_dir)).hexdigest()[:12]
        folder = Path(tempfile.gettempdir()) / f"phasegate-{os.getuid()}-{mark}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
    except OSError as error:
        raise ImproperlyConfigured(f"The folder {folder} cannot be made: {error.strerror}.") from error
    if status.st_uid != os.getuid():
        raise ImproperlyConfigured(
            f"The folder {folder} belongs to someone else; set PHASEGATE_VAR to another."
        )
    return folder
