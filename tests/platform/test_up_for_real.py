"""`up` as a process: it becomes ready, refuses a second start, and takes everything down with it."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).resolve().parents[2]


class Up:
    """One `up` over a var folder of its own, without a model."""

    def __init__(self, var: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.var = var
        self.process = self.start(stdout=(var / "out").open("w"))
        self.wait(lambda: "is ready" in self.output or self.process.poll() is not None, seconds=120)
        assert self.process.poll() is None, self.output

    @property
    def output(self) -> str:
        return (self.var / "out").read_text()

    def start(self, *, port: int | None = None, **popen: object) -> subprocess.Popen[str]:
        environment = {
            key: value for key, value in os.environ.items() if key not in ("DATABASE_URL", "REDIS_URL")
        }
        environment |= {
            "DJANGO_SETTINGS_MODULE": "phasegate.settings.embedded",
            "PHASEGATE_VAR": str(self.var),
        }
        environment |= {"PORT": str(port or self.port)}
        command = [sys.executable, "-P", str(ROOT / "manage.py"), "up"]
        return subprocess.Popen(command, env=environment, stderr=subprocess.STDOUT, text=True, **popen)  # type: ignore[call-overload]

    def wait(self, true: Callable[[], bool], seconds: float = 20) -> None:
        deadline = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < deadline, self.output
            time.sleep(0.05)

    def ready(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", "/readyz")
            return bool(json.loads(connection.getresponse().read())["ready"])
        except OSError:
            return False
        finally:
            connection.close()

    def all_end(self, processes: list[psutil.Process]) -> None:
        self.wait(lambda: not any(alive(process) for process in processes))


def alive(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.fixture
def starts(tmp_path: Path) -> Iterator[Callable[[], Up]]:
    """Starts `up` over one var folder; whatever still runs at the end is ended."""
    started: list[Up] = []

    def start() -> Up:
        started.append(Up(tmp_path))
        return started[-1]

    yield start
    for up in started:
        if up.process.poll() is None:
            up.process.terminate()
            up.process.wait(20)


def test_the_life_of_up(starts: Callable[[], Up]) -> None:
    """One story, because each start costs some ten seconds."""
    up = starts()
    assert f"PhaseGate is ready at http://127.0.0.1:{up.port}/" in up.output
    assert "demo-lead" in up.output
    assert up.ready()

    second = up.start(port=up.port + 1, stdout=subprocess.PIPE)
    said, _ = second.communicate(timeout=60)
    assert second.returncode == 1
    assert f"already running at http://127.0.0.1:{up.port}/" in said
    assert "Traceback" not in said

    children = psutil.Process(up.process.pid).children()
    worker = next(child for child in children if "default@%h" in child.cmdline())
    worker.kill()
    up.wait(lambda: "The default worker ended (signal 9); starting it again." in up.output)
    up.wait(up.ready)

    children = psutil.Process(up.process.pid).children(recursive=True)
    assert len(children) >= 4
    up.process.send_signal(signal.SIGINT)
    assert up.process.wait(20) == 0
    assert "PhaseGate has stopped." in up.output
    up.all_end(children)

    again = starts()
    children = psutil.Process(again.process.pid).children(recursive=True)
    again.process.kill()
    again.process.wait()
    again.all_end(children)
