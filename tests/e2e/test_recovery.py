"""The engine is killed, the whole site is ended, in the midst of a run: nothing hangs, nothing lies."""

import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from playwright.sync_api import Page, expect

from tests.e2e.running_site import Site, sign_in_through_form, start_site, stop_site, wait_for

pytestmark = pytest.mark.browser

UNDER_WAY_WITHIN_S = RUN_WITHIN_S = 180
END_WITHIN_S = 10
LONG, SHORT = "high-concurrency@1", "short-request@1"


def started(site: Site, scenario: str) -> int:
    path = f"/api/v1/projects/{site.demo['project']}/runs/"
    status, _headers, run = site.api(path, {"scenario": scenario, "execute": True})
    assert status == 201, run
    return int(run["id"])


def under_way(site: Site, pk: int) -> dict[str, Any]:
    """The run once it measures and some of its requests have ended."""

    def measuring() -> dict[str, Any] | None:
        run = site.api(f"/api/v1/runs/{pk}/")[2]
        assert run["finished_at"] is None, run
        return run if run["state"] == "measuring" and run["progress"]["done"] > 0 else None

    return wait_for(measuring, UNDER_WAY_WITHIN_S, f"run {pk} did not come to measure")


def engine_of(site: Site) -> psutil.Process:
    """The engine's process under this site's engine worker."""
    family = psutil.Process(site.process.pid).children(recursive=True)
    return next(process for process in family if "inference.engine.child" in process.cmdline())


def test_a_killed_engine_ends_its_run_and_no_other(
    site: Site, page: Page, sign_in: Callable[..., None]
) -> None:
    sign_in(page, "lead")
    pk, following = started(site, LONG), started(site, SHORT)
    page.goto(f"{site.url}/runs/{pk}/")
    under_way(site, pk)
    engine_of(site).kill()

    expect(page.locator('h1 [data-state="failed"]')).to_be_visible(timeout=60_000)
    notice = page.locator(".notice.error[role=alert]")
    expect(notice).to_contain_text("The engine process was ended by SIGKILL")
    failed = site.run_ended(pk, within_s=5)
    assert (failed["state"], failed["validity"]) == ("failed", "invalid")
    assert site.run_ended(following, within_s=RUN_WITHIN_S)["state"] == "complete"


def test_ending_the_site_ends_a_run_that_measures(tmp_path: Path, page: Page) -> None:
    """SIGTERM in the midst of a run: every process ends soon, and the next start goes on with the queue."""
    site = start_site(tmp_path)
    try:
        pk, following = started(site, LONG), started(site, SHORT)
        kept = under_way(site, pk)["progress"]["done"]
        family = psutil.Process(site.process.pid).children(recursive=True)
        begun = time.monotonic()
        assert stop_site(site, signal.SIGTERM) == 0
        assert time.monotonic() - begun < END_WITHIN_S
        assert not [process for process in family if _lives(process)]
    finally:
        stop_site(site)

    again = start_site(tmp_path)
    try:
        interrupted = again.run_ended(pk, within_s=5)
        assert (interrupted["state"], interrupted["validity"]) == ("interrupted", "invalid")
        assert "The worker was stopped during the run" in interrupted["error"]
        assert len(again.rows(f"/api/v1/runs/{pk}/requests/")) >= kept
        sign_in_through_form(again, page, "contributor")
        page.goto(f"{again.url}/runs/{pk}/")
        expect(page.locator(".notice.error[role=alert]")).to_contain_text(
            "requests that it had recorded are kept"
        )
        assert again.run_ended(following, within_s=RUN_WITHIN_S)["state"] == "complete"
    finally:
        stop_site(again)


def _lives(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
