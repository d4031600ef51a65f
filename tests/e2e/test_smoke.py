"""A person signs in, sees their inbox and the demo project, and reads the API reference."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser


def test_sign_in_and_look_around(site: Any, page: Page, sign_in: Callable[..., None]) -> None:
    sign_in(page, "lead")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Projects").click()
    page.get_by_role("link", name="Service desk assistant").first.click()
    expect(page.get_by_text("G1", exact=True)).to_be_visible()


def test_the_switch_changes_the_language(site: Any, page: Page, sign_in: Callable[..., None]) -> None:
    sign_in(page, "business")
    page.get_by_role("button", name="中文").click()
    expect(page.locator("html")).to_have_attribute("lang", "zh-Hans")
    page.get_by_role("button", name="English").click()
    expect(page.locator("html")).to_have_attribute("lang", "en")


def test_the_api_reference_draws_under_the_policy(site: Any, page: Page) -> None:
    page.goto(f"{site.url}/api/docs/")
    expect(page.get_by_role("heading", name="PhaseGate")).to_be_visible(timeout=20_000)
    page.get_by_placeholder("Filter by tag").fill("projects")
    page.get_by_role("button", name="Expand operation").first.click()
    expect(page.get_by_text("/api/v1/projects/", exact=True).first).to_be_visible()


def test_a_wrong_password_keeps_the_name(site: Any, page: Page) -> None:
    page.goto(f"{site.url}/sign-in/")
    page.get_by_label("Username").fill("demo-lead")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.get_by_label("Username")).to_have_value("demo-lead")
