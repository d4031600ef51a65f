"""The whole site for browser tests: `up` on a free port over a folder of its own, and a Chromium."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, Queue
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")
READY_TIMEOUT_S = 180
END_TIMEOUT_S = 20


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


def stop_site(site: Site) -> int:
    """End it as Ctrl-C would; returns the exit status."""
    if site.process.poll() is None:
        site.process.send_signal(signal.SIGINT)
    return site.process.wait(END_TIMEOUT_S)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One site for all browser tests of the session."""
    running = start_site(tmp_path_factory.mktemp("var"))
    yield running
    stop_site(running)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
    assert path, "no Chromium was found; install it (Debian: chromium)"
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, headless=True)
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A fresh page; a script error or a refusal by the content security policy fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, locale="en-GB")
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if _is_error(message) else None)
    yield page
    context.close()
    assert errors == []


def _is_error(message: Any) -> bool:
    # a refused form answers 4xx on purpose, and the browser logs that
    return message.type == "error" and "Failed to load resource" not in message.text


@pytest.fixture
def sign_in(site: Site) -> Callable[..., None]:
    """`sign_in(page, "lead")`: through the form, as a person does."""

    def through_the_form(page: Page, key: str) -> None:
        username, password = site.account(key)
        page.goto(f"{site.url}/sign-in/")
        page.get_by_label("Username").fill(username)
        page.get_by_label("Password").fill(password)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url(f"{site.url}/")

    return through_the_form
