"""The client's side of the engine process: starts it, talks to it, and notices its death.

The engine has a process of its own, so that an out-of-memory kill or a crash ends requests and not the
worker, and so that all memory returns when the model is switched. One thread owns the process: it
starts it, reads its events, stamps them at the read, and tells every open request when it dies. A process
that gives no sign of life is ended, so nobody waits for one that is stopped. Nothing here belongs to an
event loop, so one engine serves several loops one after another.
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

import psutil

from inference.engine import frames
from inference.engine.memory import oom_kills
from inference.engine.options import EngineOptions
from inference.errors import TargetUnavailable

Event = list[Any]
Sink = Callable[[int, list[Event]], None]  # (ns of the read, events of this handle in it)

CHILD = (sys.executable, "-P", "-m", "inference.engine.child")
BUFFER_BYTES = 4 * 2**20
CLOSE_GRACE_S = 3.0
REAP_EVERY_S = 0.005
TICK_S = 0.25  # how often silence is looked at
MUTE_LIMIT_S = 30.0  # the process says once a second that it lives; a load may hold it up for longer
LOADING_PATIENCE = 10  # times the limit, until the model is loaded


class Retired(Exception):
    """This engine takes no more requests: another one is about to take its place."""


class _Mute(Exception):
    """The process gave no sign of life for too long."""


class EngineHost:
    """One engine process. `start` once, `close` once; a new process needs a new host."""

    def __init__(
        self, options: EngineOptions, *, known_digest: str | None = None, mute_limit_s: float = MUTE_LIMIT_S
    ) -> None:
        self.options = options
        self.death: str | None = None  # why the process is gone
        self.crashed = False  # it ended by itself: neither closed nor telling that the model can't be loaded
        self.out_of_memory = False  # the kernel ended it for memory
        self.finished = 0  # requests that ended in order
        self.cut = 0  # requests that were open when it ended
        self.ended_ns: int | None = None
        self._known_digest = known_digest
        self._mute_limit_s = mute_limit_s
        self._silent_ticks = 0
        self._spawned_ns = 0
        self._idle_ns = 0  # between being prepared and being told to load
        self._ready_ns: int | None = None
        self._retired = False
        self._ready: Future[dict[str, Any]] = Future()
        self._sinks: dict[int, Sink] = {}
        self._calls: dict[int, Future[Any]] = {}
        self._lock = threading.Condition()  # guards sinks, calls and death; notified when a request ends
        self._send_lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._process: subprocess.Popen[bytes] | None = None
        self._sock: socket.socket | None = None
        self._closing: str | None = None  # why, as the open requests are told
        self._prepared = threading.Event()  # the process waits to be told what to load, or is gone
        self._go = threading.Event()
        # The thread that starts a child must outlive it: the kernel ties the child's death signal to it.
        self._thread = threading.Thread(target=self._own, name="engine-host", daemon=True)

    # -- life ---------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Start the process as far as it needs no model; raises TargetUnavailable when it ends instead.

        Most of a small model's load is the libraries, so that whoever must unload another model first
        does this before.
        """
        self._thread.start()
        self._prepared.wait()
        if self.death is not None:
            raise TargetUnavailable(self.death)

    def start(self) -> dict[str, Any]:
        """Start the process and wait until the model is loaded; raises TargetUnavailable with the reason.

        The facts it returns are those of `inference.engine.child`, with the whole time as `load_ms.total`.
        """
        self._go.set()
        if self._thread.ident is None:
            self._thread.start()
        facts = self._ready.result()
        assert self._ready_ns is not None
        facts["load_ms"]["total"] = (self._ready_ns - self._spawned_ns - self._idle_ns) / 1e6
        return facts

    @property
    def alive(self) -> bool:
        return self._ready.done() and self._ready.exception() is None and self.death is None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def ready_s(self) -> float | None:
        """How long its model has been (or was) loaded; None: never."""
        if self._ready_ns is None:
            return None
        return ((self.ended_ns or time.monotonic_ns()) - self._ready_ns) / 1e9

    @property
    def open_requests(self) -> int:
        with self._lock:
            return len(self._sinks)

    def retire(self) -> None:
        """Take no more requests; those that are open go on."""
        with self._lock:
            self._retired = True

    def wait_idle(self, limit_s: float | None = None) -> bool:
        """Wait until the open requests have ended; False when some are left after `limit_s`."""
        with self._lock:
            return self._lock.wait_for(lambda: not self._sinks or self.death is not None, limit_s)

    def close(self, reason: str = "The engine was closed.") -> None:
        """End the process; open requests fail with the reason. Safe to call twice and from any thread."""
        if self._closing is None:
            self._closing = reason
        self._go.set()
        if self._sock is not None:
            with contextlib.suppress(OSError):
                self._sock.shutdown(socket.SHUT_RDWR)
        if threading.current_thread() is self._thread or self._thread.ident is None:
            return
        self._thread.join(CLOSE_GRACE_S)
        if self._thread.is_alive():
            self._kill()
            self._thread.join(CLOSE_GRACE_S)

    def _kill(self) -> None:
        if self._process is not None:
            self._process.kill()

    # -- talk ---------------------------------------------------------------------------------------

    def subscribe(self, sink: Sink) -> int:
        """A new handle whose events go to `sink`, called from the reading thread; raises Retired."""
        handle = next(self._numbers)
        with self._lock:
            if self._retired:
                raise Retired
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
                frames.tick(ours, TICK_S)
                kills = oom_kills()
                with theirs:
                    self._spawned_ns = time.monotonic_ns()
                    self._process = self._spawn(theirs, output)
                self._sock = ours
                if self._closing is not None:  # closed before there was anything to close
                    self._kill()
                try:
                    with ours, contextlib.suppress(OSError, _Mute):
                        self._await_go(ours)
                        begun = [self.options.to_dict(), self._known_digest, self._spawned_ns]
                        frames.write(ours, [["start", *begun]])
                        self._read_all(ours)
                finally:
                    code = self._reap()
                self.out_of_memory = code == -signal.SIGKILL and oom_kills() > kills
                reason = self._death_of(code, output)
        except OSError as error:
            reason = f"The engine process could not be started: {error.strerror or error}."
        finally:
            self._die(reason)

    def _await_go(self, sock: socket.socket) -> None:
        """Return when the process is there and somebody wants the model; raises OSError when it has ended."""
        if frames.read(sock, self._note_silence) is None:  # its first sign of life
            raise ConnectionError
        self._silent_ticks = 0
        prepared_ns = time.monotonic_ns()
        self._prepared.set()
        self._go.wait()
        self._idle_ns = time.monotonic_ns() - prepared_ns

    def _spawn(self, theirs: socket.socket, output: Any) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(  # noqa: S603  our own module, our own interpreter
            [*CHILD, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=_environment(),
            process_group=0,  # what it starts itself ends with it
        )

    def _reap(self) -> int:
        """Wait until the process has ended, killing it where it lingers; its exit code.

        Its group is ended while the dead process still keeps the number of the group.
        """
        assert self._process is not None
        pid, waited_until = self._process.pid, time.monotonic() + CLOSE_GRACE_S
        while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
            unfinished = self._closing is not None and not self._ready.done()  # a load has nothing to lose
            if unfinished or time.monotonic() > waited_until:
                self._process.kill()
                os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
                break
            time.sleep(REAP_EVERY_S)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
        return self._process.wait()

    def _read_all(self, sock: socket.socket) -> None:
        while (events := frames.read(sock, self._note_silence)) is not None:
            read_ns = time.monotonic_ns()
            self._silent_ticks = 0
            grouped: dict[int, list[Event]] = {}
            for event in events:
                match event[0]:
                    case "alive":
                        pass
                    case "ready":
                        self._ready_ns = read_ns
                        self._ready.set_result(event[1])
                    case "unavailable":
                        self._ready.set_exception(TargetUnavailable(event[1]))
                        return
                    case "stuck":
                        self.death = event[1]
                    case "result":
                        self._answer(*event[1:])
                    case _:
                        self.finished += event[0] == "finished"
                        grouped.setdefault(event[1], []).append(event)
            for handle, own in grouped.items():
                sink = self._sinks.get(handle)
                if sink is not None:
                    sink(read_ns, own)

    def _note_silence(self) -> None:
        """Called after each silent tick. Ticks are counted, so a pause of this process is no silence."""
        self._silent_ticks += 1
        limit_s = self._mute_limit_s * (1 if self._ready.done() else LOADING_PATIENCE)
        if self._silent_ticks * TICK_S < limit_s:
            return
        assert self._process is not None
        try:
            state = f", in the state {psutil.Process(self._process.pid).status()!r}"
        except psutil.Error:
            state = ""
        self.death = f"The engine process gave no sign of life for {limit_s:g} s{state}, and was ended."
        self._kill()
        raise _Mute

    def _answer(self, number: int, ok: bool, value: Any) -> None:
        future = self._calls.get(number)
        if future is None or future.done():
            return
        if ok:
            future.set_result(value)
        else:
            future.set_exception(TargetUnavailable(str(value)))

    def _death_of(self, code: int, output: Any) -> str:
        """Why the process is gone; also enters whether that was a crash."""
        self.crashed = self._closing is None and not isinstance(self._failure(), TargetUnavailable)
        if self.death is not None:
            return self.death
        if self._closing is not None:
            return self._closing
        if code < 0:
            name = signal.Signals(-code).name
            hint = " by the kernel, since memory ran out" if self.out_of_memory else ""
            return f"The engine process was ended by {name}{hint}."
        output.seek(0, os.SEEK_END)
        output.seek(max(0, output.tell() - 4000))
        lines = output.read().decode(errors="replace").strip().splitlines()
        said = lines[-1].rstrip(".") if lines else "it said nothing"
        return f"The engine process ended with code {code}: {said}."

    def _failure(self) -> BaseException | None:
        return self._ready.exception() if self._ready.done() else None

    def _die(self, reason: str) -> None:
        with self._lock:
            self.death, self.ended_ns = reason, time.monotonic_ns()
            self.cut = len(self._sinks)
            sinks, calls = list(self._sinks.items()), list(self._calls.values())
            self._lock.notify_all()
        self._prepared.set()
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
