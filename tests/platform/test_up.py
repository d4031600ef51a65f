"""`up`: its checks, its tether to the parent, and its sentences when it cannot start."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.test import override_settings

from phasegate.up import preparation, supervisor, tether
from phasegate.up.children import RESTARTS_MAX, Child
from phasegate.up.refusal import CannotStart
from tests.platform.pipes import Ending, Pipe


@pytest.fixture
def var(tmp_path: Path) -> Iterator[Path]:
    for name in ("log", "run"):
        (tmp_path / name).mkdir()
    with override_settings(VAR_DIR=tmp_path):
        yield tmp_path


def test_a_port_in_use_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparation, "PORT_PATIENCE_S", 0.0)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(CannotStart, match=rf"^Port {port} .* is free: PORT=\d+ make run\.$") as refused:
            preparation.port_check(port)
    assert refused.value.status == 2
    preparation.port_check(port)


def test_the_port_proposed_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = {8000, 8001, 8002}
    monkeypatch.setattr(preparation, "port_can_be_had", lambda port: port not in taken)
    assert preparation.port_free_near(8000) == 8003
    taken |= set(range(8000, 8200))
    assert preparation.port_free_near(8000) is None
    assert preparation.port_free_near(65535) is None


@pytest.mark.parametrize("port", [0, -1, 65536])
def test_a_number_that_is_no_port(port: int) -> None:
    with pytest.raises(CannotStart, match="is no port"):
        preparation.port_check(port)


def test_the_lock_names_who_holds_it(var: Path) -> None:
    held = preparation.lock_take("http://127.0.0.1:8123/")
    with pytest.raises(
        CannotStart, match=rf"already running at http://127.0.0.1:8123/ \(process {os.getpid()}\)"
    ):
        preparation.lock_take("http://127.0.0.1:9000/")
    held.close()
    preparation.lock_take("http://127.0.0.1:9000/").close()


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        override_settings(VAR_DIR=tmp_path / "file" / "var"),
        pytest.raises(CannotStart, match="PHASEGATE_VAR"),
    ):
        preparation.folders_make()


def test_folders_are_made_and_leave_no_probe(tmp_path: Path) -> None:
    with override_settings(VAR_DIR=tmp_path / "var"):
        preparation.folders_make()
    assert [path for path in (tmp_path / "var").rglob("*") if path.is_file()] == []


def test_up_refuses_other_profiles() -> None:
    with pytest.raises(CommandError, match="embedded profile only"):
        call_command("up")


def test_static_state_follows_the_files(tmp_path: Path) -> None:
    with override_settings(STATICFILES_DIRS=[tmp_path], STATICFILES_FINDERS=[_FILES_ONLY]):
        before = preparation._static_state()
        (tmp_path / "new.css").write_text("a{}")
        assert preparation._static_state() != before


_FILES_ONLY = "django.contrib.staticfiles.finders.FileSystemFinder"


def test_tether_knows_whether_the_parent_lives() -> None:
    line = "import os; from phasegate.up.tether import end_with_parent as end; "
    line += "print(end(os.getppid(), 0), end(1 << 30, 0))"
    done = subprocess.run([sys.executable, "-P", "-c", line], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"]


def test_a_killed_parent_takes_its_children_along() -> None:
    """A parent starts a tethered sleeper and is killed: the sleeper ends although nobody asked it."""
    sleeper = [sys.executable, "-I", "-S", "-c", "import time; print('awake', flush=True); time.sleep(600)"]
    start = "import os, subprocess, sys, time; c = subprocess.Popen([sys.executable, '-I', '-S', "
    start += f"{str(tether.__file__)!r}, str(os.getpid()), '9', *{sleeper!r}], start_new_session=True); "
    start += "print(c.pid, flush=True); time.sleep(600)"
    parent = subprocess.Popen([sys.executable, "-c", start], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    pipe = Pipe(parent.stdout.fileno())
    child = Ending(int(pipe.line()))
    assert pipe.line() == "awake"
    parent.kill()
    parent.wait()
    pipe.wait_for_end()
    child.wait()
    parent.stdout.close()


def test_a_child_logs_and_is_killed_with_its_offspring(var: Path) -> None:
    """Its log is a pipe here, so that the test can wait for what is written and for the last writer's end."""
    child = Child("sleeper", "sleeper", ["/bin/sh", "-c", "echo started; sleep 600 & echo $!; wait"])
    os.mkfifo(child.log)
    with open(os.open(child.log, os.O_RDONLY | os.O_NONBLOCK)) as log:
        child.start()
        pipe = Pipe(log.fileno())
        assert pipe.line() == "started"
        offspring = Ending(int(pipe.line()))
        assert child.ended() is None
        child.kill()
        assert child.ended() == -signal.SIGKILL
        pipe.wait_for_end()
    offspring.wait()


def test_a_child_that_ends_too_often_is_given_up(var: Path) -> None:
    child = Child("short", "short", ["/bin/sh", "-c", "echo no such module; exit 3"])
    for _ in range(RESTARTS_MAX):
        assert child.may_restart()
    assert not child.may_restart()
    child.start()
    assert child.process is not None
    assert child.process.wait() == 3
    assert child.last_words() == "no such module"


def test_accounts_are_told(var: Path) -> None:
    assert supervisor.demo_accounts_text() == []
    accounts = {"lead": {"username": "demo-lead", "password": "pass"}}
    (var / "demo-accounts.json").write_text(json.dumps({"accounts": accounts}))
    assert supervisor.demo_accounts_text()[1].split() == ["lead", "demo-lead", "pass"]
