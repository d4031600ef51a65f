"""What every stage of the walk shares: who is signed in, screenshots in order, figures for the record."""

import json
import logging
from os import getloadavg
from statistics import median
from typing import Any

from playwright.sync_api import Browser, Page, Response
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from tests.e2e.running_site import ROOT, Site, listen_for_errors, sign_in_through_form, wait_for

SHOTS = ROOT / "var" / "screenshots"
LIVE_WITHIN_S = 240.0
SHOT_MS = 10_000
SERVER_TIME = """() => {
  const way = performance.getEntriesByType("navigation")[0];
  return way.responseStart - way.requestStart;
}"""

#: labels, links within a page and the keyboard rest on ids that are there once
TWICE_THERE = """() => {
  const ids = [...document.querySelectorAll("[id]")].map((place) => place.id);
  return [...new Set(ids.filter((id, place) => ids.indexOf(id) !== place))];
}"""


class Walk:
    """One walk over the site by several people, each in a browser context of their own."""

    def __init__(self, site: Site, browser: Browser) -> None:
        self.site, self.browser = site, browser
        self.project: int = site.demo["project"]
        self.errors: list[str] = []
        self.figures: dict[str, Any] = {}
        self.server_ms: dict[str, float] = {}  # the longest of some visits
        self.server_median_ms: dict[str, float] = {}
        self.run: int = 0  # the run whose pages are looked at, and that becomes evidence
        self.evidence: dict[str, int] = {}
        self.package: int = 0
        self.digest = ""
        self._people: dict[str, Page] = {}
        self.shots = SHOTS
        self._shot = 0
        self.shots.mkdir(parents=True, exist_ok=True)
        for old in self.shots.glob("[0-9]*.png"):
            old.unlink()

    # -- people ---------------------------------------------------------------------------------------

    def person(self, key: str) -> Page:
        """The page of this person, who is signed in."""
        if key not in self._people:
            context = self.browser.new_context(viewport={"width": 1280, "height": 900}, locale="en-GB")
            page = context.new_page()
            listen_for_errors(page, self.errors)
            sign_in_through_form(self.site, page, key)
            self._people[key] = page
        return self._people[key]

    def name(self, key: str) -> str:
        """How the site shows this person: the name in the page's header."""
        return self.person(key).locator("header .who").inner_text()

    # -- ways -----------------------------------------------------------------------------------------

    def path(self, rest: str = "") -> str:
        return f"/projects/{self.project}/{rest}"

    def visit(self, page: Page, path: str, *, status: int = 200) -> Response:
        """Go to a page of the site; its status must be as expected."""
        answer = page.goto(f"{self.site.url}{path}")
        assert answer is not None
        assert answer.status == status, f"{path}: {answer.status}"
        return answer

    def until(self, page: Page, script: str, argument: Any) -> Any:
        """What `script` answers once it is true; the site's policy forbids wait_for_function."""
        return wait_for(lambda: page.evaluate(script, argument), LIVE_WITHIN_S, f"{script} ({argument})")

    def time_page(self, page: Page, name: str, path: str, times: int = 5) -> None:
        """Note the longest time that the server took for this page in a few visits, and their median."""
        taken = []
        for _visit in range(times):
            self.visit(page, path)
            taken.append(page.evaluate(SERVER_TIME))
        self.server_ms[name] = round(max(taken), 1)
        self.server_median_ms[name] = round(median(taken), 1)

    # -- the record -----------------------------------------------------------------------------------

    def shot(self, page: Page, name: str) -> None:
        """A screenshot of the whole page, numbered in the order of the walk."""
        self._shot += 1
        assert page.evaluate(TWICE_THERE) == [], f"ids more than once on {page.url}"
        page.evaluate("scrollTo(0, 0)")  # else the header, which stays at the top, lies over the middle
        path = self.shots / f"{self._shot:02d}-{name}.png"
        try:
            page.screenshot(path=path, full_page=True, timeout=SHOT_MS)
        except PlaywrightTimeout:
            # a page that loaded itself again in the middle of it, as that of a run does at its end
            page.wait_for_load_state()
            page.screenshot(path=path, full_page=True)

    def record(self) -> None:
        """Write the figures beside the screenshots, and log them for the report of the test."""
        self.figures["load_average"] = [round(load, 1) for load in getloadavg()]
        self.figures["server_median_ms"] = self.server_median_ms
        self.figures["server_ms"] = dict(sorted(self.server_ms.items(), key=lambda item: -item[1]))
        path = self.shots / "figures.json"
        path.write_text(json.dumps(self.figures, indent=2, ensure_ascii=False))
        logging.getLogger(__name__).info("figures of the walk: %s", path.read_text())

    def end(self) -> None:
        for page in self._people.values():
            page.context.close()
