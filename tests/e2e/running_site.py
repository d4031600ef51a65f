"""The whole site as a process for browser and API tests: `up` on a free port over a folder of its own."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, Queue
from typing import Any, TypeVar

from playwright.sync_api import Page

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")
READY_TIMEOUT_S = 180
END_TIMEOUT_S = 20

Found = TypeVar("Found")


@dataclass
class Site:
    """A running site: where it is, its var folder, its demo accounts."""

    url: str
    var: Path
    process: subprocess.Popen[str]
    output: list[str] = field(default_factory=list)

    @property
    def demo(self) -> dict[str, Any]:
        return json.loads((self.var / "demo-accounts.json").read_text())

    def account(self, key: str) -> tuple[str, str]:
        row = self.demo["accounts"][key]
        return row["username"], row["password"]

    def api(
        self, path: str, body: Any = None, *, token: str | None = None, **headers: str
    ) -> tuple[int, dict[str, str], Any]:
        """One call with the CI token: status, headers in lower case, decoded body."""
        url = path if path.startswith("http") else f"{self.url}{path}"
        request = urllib.request.Request(url, data=None if body is None else json.dumps(body).encode())
        request.add_header("Authorization", f"Bearer {token or self.demo['ci_token']}")
        request.add_header("Accept", "application/json")
        if body is not None:
            request.add_header("Content-Type", "application/json")
        for name, value in headers.items():
            request.add_header(name.replace("_", "-"), value)
        try:
            answer = urllib.request.urlopen(request, timeout=60)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            text = answer.read().decode()
            found = {name.lower(): value for name, value in answer.headers.items()}
            return answer.status, found, json.loads(text) if "json" in found["content-type"] else text

    def rows(self, path: str) -> list[dict[str, Any]]:
        """Every row of a list, over all its pages."""
        found: list[dict[str, Any]] = []
        next_page: str | None = path
        while next_page:
            status, _headers, page = self.api(next_page)
            assert status == 200, page
            found += page["results"]
            next_page = page["next"]
        return found

    def run_ended(self, pk: int, *, within_s: float) -> dict[str, Any]:
        """The run once it has ended; fails when it does not in time."""
        return wait_for(lambda: self._run_if_ended(pk), within_s, f"run {pk} did not end")

    def _run_if_ended(self, pk: int) -> dict[str, Any] | None:
        status, _headers, run = self.api(f"/api/v1/runs/{pk}/")
        assert status == 200, run
        return run if run["finished_at"] else None


def wait_for(found: Callable[[], Found | None], within_s: float, failure: str) -> Found:
    """The first true answer of `found`, asked a few times a second; AssertionError after `within_s`."""
    deadline = time.monotonic() + within_s
    while not (answer := found()):
        assert time.monotonic() < deadline, f"{failure} within {within_s:.0f} s"
        threading.Event().wait(0.25)
    return answer


def chromium_path() -> str:
    path = next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
    assert path, "no Chromium was found; install it (Debian: chromium)"
    return path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def model_folder() -> Path:
    """The default model of the checkout, which `make setup` fetched."""
    folder = Path(os.environ.get("PHASEGATE_MODEL_PATH") or ROOT / "var" / "models" / "SmolLM2-135M-Instruct")
    assert (folder / "config.json").exists(), f"{folder} is not there: run `make setup`"
    return folder


def start_site(var: Path, port: int | None = None, **environment: str) -> Site:
    """Start `up`; returns once it says that it is ready, fails with its output otherwise."""
    port = port or free_port()
    clean = {key: value for key, value in os.environ.items() if key not in ("DATABASE_URL", "REDIS_URL")}
    settings = {
        "DJANGO_SETTINGS_MODULE": "phasegate.settings.embedded",
        "PHASEGATE_VAR": str(var),
        "PHASEGATE_MODEL_PATH": str(model_folder()),
        "PORT": str(port),
    }
    process = subprocess.Popen(
        [sys.executable, "-P", str(ROOT / "manage.py"), "up", "--end-with-parent"],
        env=clean | settings | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    site = Site(f"http://127.0.0.1:{port}", var, process)
    lines: Queue[str | None] = Queue()
    threading.Thread(target=_read, args=(process, lines), daemon=True).start()
    try:
        while (line := lines.get(timeout=READY_TIMEOUT_S)) is not None:
            site.output.append(line)
            if "PhaseGate is ready at" in line:
                return site
    except Empty:
        stop_site(site)
    raise AssertionError("the site did not start:\n" + "".join(site.output))


def _read(process: subprocess.Popen[str], lines: "Queue[str | None]") -> None:
    assert process.stdout is not None
    for line in process.stdout:
        lines.put(line)
    lines.put(None)


def stop_site(site: Site, number: int = signal.SIGINT) -> int:
    """End it as Ctrl-C would; returns the exit status."""
    if site.process.poll() is None:
        site.process.send_signal(number)
    return site.process.wait(END_TIMEOUT_S)


def sign_in_through_form(site: Site, page: Page, key: str) -> None:
    """Sign in as a person does, and arrive at the inbox."""
    username, password = site.account(key)
    page.goto(f"{site.url}/sign-in/")
    page.get_by_label("Username").fill(username)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{site.url}/")


def listen_for_errors(page: Page, errors: list[str]) -> None:
    """Note script errors and refusals by the content security policy."""
    page.on("pageerror", lambda error: errors.append(f"{page.url}: {error}"))
    page.on(
        "console",
        lambda message: errors.append(f"{page.url}: {message.text}") if _is_error(message) else None,
    )


def _is_error(message: Any) -> bool:
    # a refused form answers 4xx on purpose, and the browser logs that
    return message.type == "error" and "Failed to load resource" not in message.text
