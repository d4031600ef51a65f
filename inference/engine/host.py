"""The client's side of the engine process: starts it, talks to it, and notices its death.

The engine has a process of its own, so that an out-of-memory kill or a crash ends requests and not the
worker, and so that all memory returns when the model is switched. One thread owns the process: it
starts it, reads its events, stamps them at the read, and tells every open request when it dies. Nothing
here belongs to an event loop, so one engine serves several loops one after another.
"""

import contextlib
import itertools
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from inference.engine import frames
from inference.engine.options import EngineOptions
from inference.errors import TargetUnavailable

Event = list[Any]
Sink = Callable[[int, list[Event]], None]  # (ns of the read, events of this handle in it)

BUFFER_BYTES = 4 * 2**20
CLOSE_GRACE_S = 3.0


class EngineHost:
    """One engine process. `start` once, `close` once; a new process needs a new host."""

    def __init__(self, options: EngineOptions, *, known_digest: str | None = None) -> None:
        self.options = options
        self.death: str | None = None  # why the process is gone
        self._known_digest = known_digest
        self._ready: Future[dict[str, Any]] = Future()
        self._sinks: dict[int, Sink] = {}
        self._calls: dict[int, Future[Any]] = {}
        self._lock = threading.Condition()  # guards sinks, calls and death; notified when a request ends
        self._send_lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._process: subprocess.Popen[bytes] | None = None
        self._sock: socket.socket | None = None
        self._closing = False
        # The thread that starts a child must outlive it: the kernel ties the child's death signal to it.
        self._thread = threading.Thread(target=self._own, name="engine-host", daemon=True)

    # -- life ---------------------------------------------------------------------------------------

    def start(self) -> dict[str, Any]:
        """Start the process and wait until the model is loaded; raises TargetUnavailable with the reason."""
        self._thread.start()
        return self._ready.result()

    @property
    def alive(self) -> bool:
        return self._ready.done() and self._ready.exception() is None and self.death is None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def close_when_idle(self) -> None:
        """Wait until the open requests have ended, then close."""
        with self._lock:
            self._lock.wait_for(lambda: not self._sinks or self.death is not None)
        self.close()

    def close(self) -> None:
        """End the process; open requests fail. Safe to call twice and from any thread."""
        self._closing = True
        if self._sock is not None:
            with contextlib.suppress(OSError):
                self._sock.shutdown(socket.SHUT_RDWR)
        if self._process is not None:
            try:
                self._process.wait(CLOSE_GRACE_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(CLOSE_GRACE_S)

    # -- talk ---------------------------------------------------------------------------------------

    def subscribe(self, sink: Sink) -> int:
        """A new handle whose events go to `sink`, called from the reading thread."""
        handle = next(self._numbers)
        with self._lock:
            self._sinks[handle] = sink
        return handle

    def unsubscribe(self, handle: int) -> None:
        with self._lock:
            self._sinks.pop(handle, None)
            self._lock.notify_all()

    def send(self, *commands: list[Any]) -> None:
        """Hand commands to the engine in one piece; raises TargetUnavailable when it is gone."""
        if self.death is not None or self._sock is None:
            raise TargetUnavailable(self.death or "The engine process is not running.")
        try:
            with self._send_lock:
                frames.write(self._sock, list(commands))
        except OSError as error:
            raise TargetUnavailable(self.death or "The engine process has just ended.") from error

    def call(self, name: str, *arguments: Any, timeout_s: float = 60.0) -> Any:
        """Ask the engine something outside its batch; raises TargetUnavailable when it is gone or mute."""
        number = next(self._numbers)
        future: Future[Any] = Future()
        with self._lock:
            self._calls[number] = future
        try:
            self.send(["call", number, name, list(arguments)])
            return future.result(timeout_s)
        except TimeoutError:
            raise TargetUnavailable(f"The engine did not answer {name!r} within {timeout_s:g} s.") from None
        finally:
            with self._lock:
                self._calls.pop(number, None)

    # -- the owning thread --------------------------------------------------------------------------

    def _own(self) -> None:
        reason = "The engine process could not be started."
        try:
            with tempfile.TemporaryFile() as output:
                ours, theirs = socket.socketpair()
                for sock in (ours, theirs):
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)
                with theirs:
                    self._process = subprocess.Popen(  # noqa: S603  our own module, our own interpreter
                        [sys.executable, "-P", "-m", "inference.engine.child", str(theirs.fileno())],
                        pass_fds=[theirs.fileno()],
                        stdin=subprocess.DEVNULL,
                        stdout=output,
                        stderr=output,
                        env=_environment(),
                    )
                self._sock = ours
                if self._closing:  # closed before there was anything to close
                    self._process.kill()
                with ours, contextlib.suppress(OSError):
                    frames.write(ours, [["start", self.options.to_dict(), self._known_digest]])
                    self._read_all(ours)
                reason = self._death_of(self._process.wait(), output)
        except OSError as error:
            reason = f"The engine process could not be started: {error.strerror or error}."
        finally:
            self._die(reason)

    def _read_all(self, sock: socket.socket) -> None:
        while (events := frames.read(sock)) is not None:
            read_ns = time.monotonic_ns()
            grouped: dict[int, list[Event]] = {}
            for event in events:
                match event[0]:
                    case "ready":
                        self._ready.set_result(event[1])
                    case "unavailable":
                        self._ready.set_exception(TargetUnavailable(event[1]))
                        return
                    case "stuck":
                        self.death = event[1]
                    case "result":
                        self._answer(*event[1:])
                    case _:
                        grouped.setdefault(event[1], []).append(event)
            for handle, own in grouped.items():
                sink = self._sinks.get(handle)
                if sink is not None:
                    sink(read_ns, own)

    def _answer(self, number: int, ok: bool, value: Any) -> None:
        future = self._calls.get(number)
        if future is None or future.done():
            return
        if ok:
            future.set_result(value)
        else:
            future.set_exception(TargetUnavailable(str(value)))

    def _death_of(self, code: int, output: Any) -> str:
        if self.death is not None:
            return self.death
        if self._closing:
            return "The engine was closed."
        if code < 0:
            name = signal.Signals(-code).name
            hint = " (often the kernel, when memory runs out)" if -code == signal.SIGKILL else ""
            return f"The engine process was ended by {name}{hint}."
        output.seek(0, os.SEEK_END)
        output.seek(max(0, output.tell() - 4000))
        lines = output.read().decode(errors="replace").strip().splitlines()
        return f"The engine process ended with code {code}: {lines[-1] if lines else 'it said nothing'}."

    def _die(self, reason: str) -> None:
        with self._lock:
            self.death = reason
            sinks, calls = list(self._sinks.items()), list(self._calls.values())
            self._lock.notify_all()
        if not self._ready.done():
            self._ready.set_exception(TargetUnavailable(reason))
        for future in calls:
            if not future.done():
                future.set_exception(TargetUnavailable(reason))
        now_ns = time.monotonic_ns()
        for handle, sink in sinks:
            sink(now_ns, [["failed", handle, now_ns, reason]])


def _environment() -> dict[str, str]:
    """The child's environment: no network for the model libraries, no bars in its output.

    Threads that wait for each other inside an operation sleep and do not spin: on a machine whose cores are
    also used by others, spinning made a step thirty times slower, since the thread waited for had no core.
    """
    return {"OMP_WAIT_POLICY": "PASSIVE", **os.environ} | {
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "TRANSFORMERS_VERBOSITY": "error",
        "TOKENIZERS_PARALLELISM": "false",
        "TQDM_DISABLE": "1",
        "PYTHONUNBUFFERED": "1",
    }
