"""`up`: the whole site on this machine, from one command to one address."""

import logging
import os
import signal
import sys
import time
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from phasegate.up import preparation
from phasegate.up.database import database_path, database_trouble
from phasegate.up.refusal import CannotStart
from phasegate.up.supervisor import Supervisor, demo_accounts_text
from phasegate.up.tether import end_with_parent

logger = logging.getLogger(__name__)


class Command(BaseCommand):
    help = "Starts broker, workers and web of the embedded profile and keeps them running."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--end-with-parent", action="store_true", help="end when the process that started this one ends"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if settings.PHASEGATE_PROFILE != "embedded":
            raise CommandError("`up` runs the embedded profile only.")
        if options["end_with_parent"] and not end_with_parent(os.getppid(), signal.SIGTERM):
            return
        os.umask(0o077)  # database, logs and files are this account's alone
        port = self._port()
        url = f"http://127.0.0.1:{port}/"
        supervisor = None
        try:
            preparation.folders_make()
            lock = preparation.lock_take(url)
            preparation.port_check(port)
            _log_to_file()
            self._prepare()
            supervisor = Supervisor(port, self._say)
            supervisor.listen()
            self._say("starting broker, engine worker, default worker and web …")
            if supervisor.start():
                self._announce(url)
                supervisor.watch()
            self._say("\nStopping …")
        except CannotStart as error:
            self.stderr.write(str(error))
            sys.exit(error.status)
        finally:
            if supervisor is not None:
                supervisor.end()
        lock.close()
        self._say("PhaseGate has stopped.")

    def _port(self) -> int:
        text = os.environ.get("PORT", "8000")
        if not text.isdecimal():
            raise CommandError(f"PORT={text} is no port; choose one from 1 to 65535.", returncode=2)
        return int(text)

    def _prepare(self) -> None:
        for name, step in preparation.STEPS:
            started = time.monotonic()
            self.stdout.write(f"{name} …", ending=" ")
            self.stdout.flush()
            try:
                step()
            except DatabaseError as error:
                self._say("")
                logger.error("%s failed", name, exc_info=error)
                raise CannotStart(database_trouble(database_path(), error)) from error
            except CannotStart:
                self._say("")  # the sentence begins a line of its own
                raise
            self._say(f"done ({time.monotonic() - started:.1f} s)")

    def _announce(self, url: str) -> None:
        for line in demo_accounts_text():
            self._say(line)
        self._say(f"PhaseGate is ready at {url}")
        self._say("Stop with Ctrl-C.")

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()


def _log_to_file() -> None:
    """Keep the terminal for people: this process logs beside its children."""
    handler = logging.FileHandler(settings.VAR_DIR / "log" / "up.log")
    handler.setFormatter(logging.Formatter("{asctime} {levelname} {name} {message}", style="{"))
    logging.getLogger().handlers[:] = [handler]
