"""`up` as a process: it becomes ready, refuses a second start, and takes everything down with it."""

import http.client
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
import redis

from phasegate.settings.broker import runtime_dir
from phasegate.worker_presence import PREFIX
from tests.platform.pipes import Pipe

ROOT = Path(__file__).resolve().parents[2]


class Up:
    """One `up` over a var folder of its own, without a model."""

    def __init__(self, var: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.var = var
        self.process = self.start()
        assert self.process.stdout is not None
        self.said = Pipe(self.process.stdout.fileno())

    def start(self, *, port: int | None = None) -> subprocess.Popen[str]:
        environment = {
            key: value for key, value in os.environ.items() if key not in ("DATABASE_URL", "REDIS_URL")
        }
        environment |= {
            "DJANGO_SETTINGS_MODULE": "phasegate.settings.embedded",
            "PHASEGATE_VAR": str(self.var),
        }
        environment |= {"PORT": str(port or self.port)}
        command = [sys.executable, "-P", str(ROOT / "manage.py"), "up"]
        return subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def ready(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", "/readyz")
            return bool(json.loads(connection.getresponse().read())["ready"])
        except OSError:
            return False
        finally:
            connection.close()


def all_end(processes: list[psutil.Process]) -> None:
    """Wait until all of them have ended, reaped or not."""
    for process in processes:
        try:
            descriptor = os.pidfd_open(process.pid)
        except ProcessLookupError:
            continue
        ended, _, _ = select.select([descriptor], [], [], 20)
        os.close(descriptor)
        assert ended, process


@pytest.fixture
def starts(tmp_path: Path) -> Iterator[Callable[[], Up]]:
    """Starts `up` over one var folder; whatever still runs at the end is ended."""
    started: list[Up] = []

    def start() -> Up:
        started.append(Up(tmp_path))
        started[-1].said.wait_for("is ready at", within_s=180)
        return started[-1]

    yield start
    for up in started:
        if up.process.poll() is None:
            up.process.terminate()
            up.process.wait(20)


@contextmanager
def signs_of_life(up: Up, worker: str) -> Iterator[Callable[[], None]]:
    """Yields a function that waits until this worker next tells the broker that it is there."""
    with redis.Redis(unix_socket_path=str(runtime_dir(up.var) / "valkey.sock")) as broker:
        broker.config_set("notify-keyspace-events", "K$")
        with broker.pubsub(ignore_subscribe_messages=True) as told:
            told.psubscribe(f"__keyspace@0__:{PREFIX}{worker}@*")

            def wait() -> None:
                while told.get_message(timeout=0) is not None:
                    pass  # those of the one before
                assert told.get_message(timeout=60), up.said.text

            yield wait


def test_the_life_of_up(starts: Callable[[], Up]) -> None:
    """One story, because each start costs some ten seconds."""
    up = starts()
    assert up.said.text.count("demo-lead") == 1
    assert f"PhaseGate is ready at http://127.0.0.1:{up.port}/" in up.said.text
    assert up.ready()

    second = up.start(port=up.port + 1)
    said, _ = second.communicate(timeout=60)
    assert second.returncode == 1
    assert f"already running at http://127.0.0.1:{up.port}/" in said
    assert "Traceback" not in said

    children = psutil.Process(up.process.pid).children()
    worker = next(child for child in children if "default@%h" in child.cmdline())
    with signs_of_life(up, "default") as wait_for_sign:
        worker.kill()
        up.said.wait_for("The default worker ended (signal 9); starting it again.")
        wait_for_sign()
    assert up.ready()

    children = psutil.Process(up.process.pid).children(recursive=True)
    assert len(children) >= 4
    up.process.send_signal(signal.SIGINT)
    up.said.wait_for("PhaseGate has stopped.")
    assert up.process.wait(20) == 0
    all_end(children)

    again = starts()
    children = psutil.Process(again.process.pid).children(recursive=True)
    again.process.kill()
    again.process.wait()
    all_end(children)
