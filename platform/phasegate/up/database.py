"""The embedded database's file: can it be read and written, and if not, what is to be done?"""

import contextlib
import os
import sqlite3
from contextlib import closing
from pathlib import Path

from django.conf import settings

from phasegate.up.refusal import CannotStart

#: SQLite keeps these beside the file while the database is in use, and after a crash
BESIDE = ("-wal", "-shm", "-journal")
#: a predecessor that is just ending gets this long to let go
BUSY_TIMEOUT_S = 5.0
OTHERWISE = "or set PHASEGATE_VAR to another folder"


def database_path() -> Path:
    """The embedded database's file."""
    return Path(settings.DATABASES["default"]["NAME"])


def database_check(path: Path) -> None:
    """CannotStart, naming the file, when this SQLite database cannot be read and written; changes nothing."""
    try:
        with closing(sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("CREATE TABLE phasegate_write_probe (x)")
            connection.execute("ROLLBACK")
    except sqlite3.Error as error:
        raise CannotStart(database_trouble(path, error)) from error


def database_trouble(path: Path, error: BaseException) -> str:
    """One sentence on what is wrong with the file and what to do.

    `error` is SQLite's, or Django's whose cause that is.
    """
    found = error if isinstance(error, sqlite3.Error) else error.__cause__ or error
    return _trouble_of_files(path) or _trouble_inside(path, found)


def _trouble_of_files(path: Path) -> str | None:
    """What the file system says against this database; None when that is not where the trouble lies."""
    for file in (path, *(path.with_name(path.name + end) for end in BESIDE)):
        if file.is_dir():
            return f"{file} is a folder where the database's file belongs; move it away {OTHERWISE}."
        if file.exists() and not os.access(file, os.R_OK | os.W_OK):
            return (
                f"The database file {file} cannot be read and written by this account ({_held_by(file)}); "
                f"make it writable {OTHERWISE}."
            )
    if not os.access(path.parent, os.W_OK | os.X_OK):
        return f"The folder of the database {path} cannot be written; make it writable {OTHERWISE}."
    return None


def _trouble_inside(path: Path, error: BaseException) -> str:
    """What SQLite says against this database, by its extended result code."""
    name = getattr(error, "sqlite_errorname", "")
    if name.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
        return (
            f"The database {path} is damaged or no database ({error}) and was left as it is; put a copy "
            "from a backup in its place, or move it away to begin with an empty one."
        )
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return f"The database {path} is held by another program ({error}); end that program and start again."
    if name.startswith("SQLITE_FULL"):
        return f"The database {path} cannot be written because the disk is full; make room and start again."
    return f"The database {path} cannot be used: {error}; repair it {OTHERWISE}."


def _held_by(file: Path) -> str:
    """Owner and mode of a file, as far as they can be told: `owner root, mode 600`."""
    status = file.stat()
    owner = str(status.st_uid)
    with contextlib.suppress(KeyError, NotImplementedError):
        owner = file.owner()
    return f"owner {owner}, mode {status.st_mode & 0o777:o}"
