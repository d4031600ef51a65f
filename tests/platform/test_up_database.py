"""A database file that cannot be used: one sentence that names it and what to do, and nothing is lost."""

import os
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError

from phasegate.up import database
from phasegate.up.refusal import CannotStart

ROOT = Path(__file__).resolve().parents[2]
GARBAGE = b"this is no database, and long enough to be read as one" * 40


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database with one row."""
    file = tmp_path / "phasegate.sqlite3"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE kept (x)")
        connection.execute("INSERT INTO kept VALUES (1)")
        connection.commit()
    return file


def refusal(path: Path) -> str:
    with pytest.raises(CannotStart) as refused:
        database.database_check(path)
    assert refused.value.status == 1
    text = str(refused.value)
    assert "\n" not in text
    return text


def test_a_good_database_is_left_as_it_was(path: Path) -> None:
    before = path.read_bytes()
    database.database_check(path)
    assert path.read_bytes() == before


def test_a_database_that_is_not_there_yet(tmp_path: Path) -> None:
    database.database_check(tmp_path / "new.sqlite3")
    with closing(sqlite3.connect(tmp_path / "new.sqlite3")) as connection:
        assert connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)


def test_a_file_that_is_no_database(path: Path) -> None:
    path.write_bytes(GARBAGE)
    said = refusal(path)
    assert said.startswith(f"The database {path} is damaged or no database (file is not a database)")
    assert "from a backup" in said
    assert path.read_bytes() == GARBAGE


def test_a_damaged_database(path: Path) -> None:
    whole = path.read_bytes()
    damaged = whole[:100] + b"\xff" * (len(whole) - 100)
    path.write_bytes(damaged)
    assert "is damaged or no database (database disk image is malformed)" in refusal(path)
    assert path.read_bytes() == damaged


@pytest.mark.parametrize("end", ["", "-wal", "-journal"])
def test_a_folder_in_the_place_of_a_file(path: Path, end: str) -> None:
    file = path.with_name(path.name + end)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA journal_mode={'WAL' if end == '-wal' else 'DELETE'}")
    if not end:
        path.unlink()
    (file / "inside").mkdir(parents=True)
    said = refusal(path)
    assert said.startswith(f"{file} is a folder where the database's file belongs; move it away")
    assert "PHASEGATE_VAR" in said
    assert (file / "inside").is_dir()


def test_a_folder_that_is_gone(tmp_path: Path) -> None:
    assert str(tmp_path / "gone") in refusal(tmp_path / "gone" / "phasegate.sqlite3")


@pytest.mark.parametrize("end", ["", "-wal", "-shm"])
def test_a_file_of_someone_else(path: Path, end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mode bits do not bind root, so SQLite and the system are told what to say."""
    file = path.with_name(path.name + end)
    file.touch()
    file.chmod(0o400)
    monkeypatch.setattr(os, "access", lambda asked, mode: Path(asked) != file)
    monkeypatch.setattr(sqlite3, "connect", _readonly)
    said = refusal(path)
    assert said.startswith(f"The database file {file} cannot be read and written by this account (owner ")
    assert "mode 400" in said
    assert "make it writable or set PHASEGATE_VAR" in said


def _readonly(*args: Any, **options: Any) -> Any:
    raise sqlite3.OperationalError("attempt to write a readonly database")


def test_a_folder_that_is_read_only(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda asked, mode: Path(asked) != path.parent)
    monkeypatch.setattr(sqlite3, "connect", _readonly)
    assert refusal(path).startswith(f"The folder of the database {path} cannot be written; make it writable")


def test_a_database_that_another_program_holds(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "BUSY_TIMEOUT_S", 0.0)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert "is held by another program" in refusal(path)


def test_a_full_disk(path: Path) -> None:
    full = sqlite3.OperationalError("database or disk is full")
    full.sqlite_errorname = "SQLITE_FULL"
    wrapped = OperationalError("database or disk is full")
    wrapped.__cause__ = full  # as Django hands it on
    assert "the disk is full; make room" in database.database_trouble(path, wrapped)
    assert "cannot be used: database or disk is full" in database.database_trouble(path, Exception(str(full)))


def test_up_says_it_and_ends(tmp_path: Path) -> None:
    """The whole command: one sentence on a line of its own, status 1, no traceback, the file untouched."""
    file = tmp_path / "phasegate.sqlite3"
    file.write_bytes(GARBAGE)
    environment = {
        key: value for key, value in os.environ.items() if key not in ("DATABASE_URL", "REDIS_URL")
    }
    environment |= {"DJANGO_SETTINGS_MODULE": "phasegate.settings.embedded", "PHASEGATE_VAR": str(tmp_path)}
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        environment |= {"PORT": str(probe.getsockname()[1])}
    command = [sys.executable, "-P", str(ROOT / "manage.py"), "up"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.splitlines() == ["database … "]
    assert done.stderr.startswith(f"The database {file} is damaged or no database")
    assert len(done.stderr.splitlines()) == 1
    assert file.read_bytes() == GARBAGE
