"""Fixtures of the browser tests: one site for the session, a Chromium, a page, signing in."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.e2e.running_site import (
    Site,
    chromium_path,
    listen_for_errors,
    sign_in_through_form,
    start_site,
    stop_site,
)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One site for all browser tests of the session."""
    running = start_site(tmp_path_factory.mktemp("var"))
    yield running
    stop_site(running)


@pytest.fixture
def fresh_site(tmp_path: Path) -> Iterator[Site]:
    """A site of its own for a test that tells one story from the first day on."""
    running = start_site(tmp_path)
    yield running
    stop_site(running)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=chromium_path(), headless=True)
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A fresh page; a script error or a refusal by the content security policy fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, locale="en-GB")
    page = context.new_page()
    errors: list[str] = []
    listen_for_errors(page, errors)
    yield page
    context.close()
    assert errors == []


@pytest.fixture
def sign_in(site: Site) -> Callable[..., None]:
    """`sign_in(page, "lead")`: through the form, as a person does."""
    return lambda page, key: sign_in_through_form(site, page, key)
