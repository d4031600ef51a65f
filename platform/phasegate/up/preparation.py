"""What must be so before the processes start: folders, database, catalogues, assets, demo data."""

import fcntl
import hashlib
import json
import os
import socket
import sys
import time
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import IO

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command
from django.core.management.base import CommandError
from django.utils import timezone

from phasegate import catalogues
from phasegate.up.database import database_check, database_path
from phasegate.up.refusal import CannotStart
from pocs.runs.services import reap_expired_leases

#: time for the processes of a killed predecessor to leave the port
PORT_PATIENCE_S = 3.0
#: the other page of API documentation that the sidecar brings, never linked here
STATIC_IGNORED = ["redoc*"]


def folders_make() -> None:
    """Make the folders under var; CannotStart names the one that cannot be written."""
    for folder in (
        settings.VAR_DIR,
        *(settings.VAR_DIR / name for name in ("log", "run", "static", "media")),
    ):
        probe = folder / f".probe-{os.getpid()}"
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            probe.write_bytes(b"")
            probe.unlink()
        except OSError as error:
            raise CannotStart(
                f"The folder {folder} cannot be written: {error.strerror}. "
                "Make it writable or set PHASEGATE_VAR to another folder."
            ) from error


def lock_take(url: str) -> IO[str]:
    """The lock of this var folder; CannotStart when another `up` holds it. Kept while the file is open."""
    file = (settings.VAR_DIR / "run" / "up.lock").open("a+")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.seek(0)
        holder = json.loads(file.read() or "{}")
        where, pid = holder.get("url", "this folder"), holder.get("pid", "unknown")
        raise CannotStart(f"PhaseGate is already running at {where} (process {pid}).") from None
    file.truncate(0)
    file.write(json.dumps({"pid": os.getpid(), "url": url}))
    file.flush()
    return file


def port_check(port: int) -> None:
    """CannotStart when the port is in use or not to be had."""
    if not 0 < port < 65536:
        raise CannotStart(f"PORT={port} is no port; choose one from 1 to 65535.", status=2)
    deadline = time.monotonic() + PORT_PATIENCE_S
    while True:
        try:
            port_take(port)
            return
        except PermissionError:
            raise CannotStart(
                f"Port {port} is reserved for the system; choose a higher one: PORT=8001 make run.",
                status=2,
            ) from None
        except OSError as error:
            if time.monotonic() > deadline:
                free = port_free_near(port)
                raise CannotStart(
                    f"Port {port} on 127.0.0.1 cannot be used ({error.strerror}); "
                    + (f"port {free} is free: PORT={free} make run." if free else "choose another."),
                    status=2,
                ) from None
        time.sleep(0.2)


def port_free_near(port: int) -> int | None:
    """The next port above this one that is free now; None where a hundred in a row are not."""
    return next(filter(port_can_be_had, range(port + 1, min(port + 101, 65536))), None)


def port_can_be_had(port: int) -> bool:
    try:
        port_take(port)
    except OSError:
        return False
    return True


def port_take(port: int) -> None:
    """Listen on the port for a moment as the web process would; raises OSError."""
    with closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", port))


def database_migrate() -> None:
    """Bring the database up to date; CannotStart, in one sentence, when a migration refuses."""
    try:
        call_command("migrate", interactive=False, verbosity=0)
    except CommandError as error:
        raise CannotStart(f"The database could not be brought up to date: {error}") from error


def catalogues_compile() -> None:
    for problem in catalogues.compile_all():
        raise CannotStart(problem)


def assets_build() -> None:
    """Build and collect static files where something changed since the last time."""
    Path(settings.PHASEGATE_ASSETS).mkdir(parents=True, exist_ok=True)
    with (settings.VAR_DIR / "log" / "preparation.log").open("a") as log:
        call_command("build_assets", stdout=log)
        stamp, state = settings.STATIC_ROOT / ".state", _static_state()
        if not stamp.exists() or stamp.read_text() != state:
            options = {"interactive": False, "clear": True, "verbosity": 0, "ignore_patterns": STATIC_IGNORED}
            call_command("collectstatic", stdout=log, **options)
            stamp.write_text(state)


def _static_state() -> str:
    """A digest over path, size and time of every static file."""
    digest = hashlib.sha256()
    for finder in get_finders():
        for path, storage in finder.list(STATIC_IGNORED):
            status = os.stat(storage.path(path))
            digest.update(f"{path}\0{status.st_size}\0{status.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def demo_seed() -> None:
    with (settings.VAR_DIR / "log" / "preparation.log").open("a") as log:
        call_command("seed_demo", stdout=log, stderr=sys.stdout)


def runs_interrupt() -> None:
    """End the runs that a killed predecessor left: whoever holds the lock knows that no worker lives."""
    reap_expired_leases(now=timezone.now() + timedelta(seconds=settings.PHASEGATE_RUN_LEASE_S))


STEPS: list[tuple[str, Callable[[], None]]] = [
    ("database", lambda: database_check(database_path())),
    ("migrations", database_migrate),
    ("translations", catalogues_compile),
    ("assets", assets_build),
    ("demo data", demo_seed),
    ("runs of the last time", runs_interrupt),
]
