"""Starts the processes, waits until the site is ready, keeps them alive, and ends them all."""

import http.client
import json
import signal
import time
from collections.abc import Callable
from types import FrameType

import redis
from celery.beat import EmbeddedService
from django.conf import settings

from phasegate import celery, worker_presence
from phasegate.up.children import Child, broker, site
from phasegate.up.refusal import CannotStart

READY_TIMEOUT_S = 120.0
BROKER_TIMEOUT_S = 15.0
#: what a process gets to end by itself, a run to be stated as interrupted, before it is killed
GRACE_S = 6.0


class Supervisor:
    """The processes of one `up`; runs in the main thread and reacts to signals by ending them."""

    def __init__(self, port: int, say: Callable[[str], None]) -> None:
        self.port = port
        self.say = say
        self.broker = broker()
        self.children: list[Child] = [self.broker, *site(port)]
        self.stop_signal: int | None = None
        self._clock: EmbeddedService | None = None

    def listen(self) -> None:
        """Take the signals: a background shell would have SIGINT ignored."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.stop_signal is not None and number == signal.SIGINT:
            for child in self.children:  # asked twice: no more patience
                child.kill()
        self.stop_signal = number

    @property
    def stopping(self) -> bool:
        return self.stop_signal is not None

    def start(self) -> bool:
        """Start everything and wait until the site is ready; False when a signal came first."""
        self.broker.start()
        self._wait_for(self._broker_answers, BROKER_TIMEOUT_S, "The broker does not answer")
        self._clear_presence()
        for child in self.children[1:]:
            child.start()
        self._wait_for(self._site_ready, READY_TIMEOUT_S, "The site did not become ready")
        if self.stopping:
            return False
        # the clock of periodic tasks is a thread of this process: nothing more to start or to lose
        self._clock = EmbeddedService(celery.app, thread=True, scheduler_cls="celery.beat:Scheduler")
        self._clock.start()
        return True

    def watch(self) -> None:
        """Restart what ends, until a signal comes; CannotStart when something ends again and again."""
        while not self.stopping:
            self._restart_ended()
            if self._clock is not None and not self._clock.is_alive():
                raise CannotStart("The clock of periodic tasks stopped; see up.log in the log folder.")
            time.sleep(0.2)

    def end(self) -> None:
        """End every process: ask, wait, kill; the broker last."""
        if self._clock is not None:
            # not stop(): that waits for a thread that may itself be waiting for the broker
            self._clock.service._is_shutdown.set()
        site_children = [child for child in self.children if child is not self.broker]
        for group in (site_children, [self.broker]):
            for child in group:
                child.ask_to_end()
            deadline = time.monotonic() + GRACE_S
            while time.monotonic() < deadline and any(c.process and c.ended() is None for c in group):
                time.sleep(0.05)
            for child in group:
                child.kill()

    def _restart_ended(self) -> None:
        for child in self.children:
            status = child.ended()
            if status is None or self.stopping:
                continue
            how = f"signal {-status}" if status < 0 else f"status {status}"
            if not child.may_restart():
                raise CannotStart(
                    f"The {child.title} keeps ending ({how}); its last words: {child.last_words()} "
                    f"The whole log is {child.log}."
                )
            self.say(f"The {child.title} ended ({how}); starting it again. Its log is {child.log}.")
            child.kill()  # what it may have left in its session
            child.start()

    def _wait_for(self, answered: Callable[[], bool], timeout_s: float, failure: str) -> None:
        deadline = time.monotonic() + timeout_s
        while not self.stopping:
            if answered():
                return
            self._restart_ended()
            if time.monotonic() > deadline:
                raise CannotStart(
                    f"{failure} within {timeout_s:.0f} s; the logs are in {self.broker.log.parent}."
                )
            time.sleep(0.1)

    def _broker_answers(self) -> bool:
        try:
            return self.broker.ended() is None and bool(worker_presence.broker().ping())
        except (redis.RedisError, OSError):
            return False

    def _clear_presence(self) -> None:
        """Forget the workers of a start before: the broker keeps its keys over a restart."""
        client = worker_presence.broker()
        for key in client.scan_iter(match=f"{worker_presence.PREFIX}*"):
            client.delete(key)

    def _site_ready(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", "/readyz")
            return bool(json.loads(connection.getresponse().read()).get("ready"))
        except (TimeoutError, OSError, ValueError, http.client.HTTPException):
            return False
        finally:
            connection.close()


def demo_accounts_text() -> list[str]:
    """The demo accounts as lines for the terminal; empty where there are none."""
    path = settings.VAR_DIR / "demo-accounts.json"
    try:
        accounts = json.loads(path.read_text())["accounts"]
    except (OSError, ValueError, KeyError):
        return []
    wide = max(len(row["username"]) for row in accounts.values())
    lines = [f"Demo accounts (also in {path}):"]
    lines += [f"  {role:<15} {row['username']:<{wide}}  {row['password']}" for role, row in accounts.items()]
    return lines
