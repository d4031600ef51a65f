"""A contested review in the browser: returned, rejected, stale, objected to, accepted, launched, observed.

The runs are seeded; nothing is executed here.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.running_site import ROOT, Site
from tests.e2e.walk import SHOTS, Walk

pytestmark = pytest.mark.browser


class Contest(Walk):
    """The people of one seeded project, each in a browser context of their own."""

    def __init__(self, site: Site, browser: Browser, seeded: dict[str, int]) -> None:
        self.site, self.browser = site, browser
        self.project, self.runtime = seeded["project"], seeded["runtime"]
        self.errors: list[str] = []
        self.packages: list[int] = []
        self._people: dict[str, Page] = {}
        self._shot = 0
        self.shots = SHOTS / "contested"
        self.shots.mkdir(parents=True, exist_ok=True)

    def at(self, key: str, path: str) -> Page:
        """This person's page, at a path of the site."""
        page = self.person(key)
        self.visit(page, path)
        return page

    def inside(self, key: str, rest: str = "") -> Page:
        return self.at(key, self.path(rest))

    def package_of(self, key: str) -> Page:
        """This person's page, at the newest package."""
        return self.at(key, f"/packages/{self.packages[-1]}/")

    def sign(self, slot: str, verdict: str, state: str, comment: str = "") -> Page:
        page = self.package_of(slot)
        card = page.locator(f'[data-slot="{slot}"]')
        card.locator(f'[name="{slot}-verdict"][value="{verdict}"]').check()
        card.locator(f'[name="{slot}-comment"]').fill(comment)
        card.locator(f'[name="{slot}-password"]').fill(self.site.account(slot)[1])
        card.get_by_role("button", name="Sign", exact=True).click()
        expect(card.locator(f'[data-state="{state}"]')).to_be_visible()
        return page

    def freeze(self) -> None:
        page = self.inside("lead", "packages/")
        page.get_by_role("button", name="Freeze a package").click()
        page.wait_for_url("**/packages/*/")
        self.packages.append(int(page.url.rstrip("/").rsplit("/", 1)[1]))

    def conclude(self, text: str) -> None:
        page = self.inside("contributor", "conclusion/")
        page.locator('[name="performance"]').fill(text)
        page.get_by_role("button", name="Save").click()
        expect(page.locator(".notice.success")).to_be_visible()


@pytest.fixture
def contest(site: Any, browser: Browser) -> Iterator[Contest]:
    """The project of the story in the session's site, and its people."""
    environment = {
        name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL")
    }
    settings = {"DJANGO_SETTINGS_MODULE": "phasegate.settings.embedded", "PHASEGATE_VAR": str(site.var)}
    done = subprocess.run(
        [sys.executable, "-m", "tests.e2e.contested"],
        cwd=ROOT, env=environment | settings, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    story = Contest(site, browser, json.loads(done.stdout.splitlines()[-1]))
    yield story
    story.end()
    assert story.errors == []


def test_a_contested_review(contest: Contest) -> None:
    for stage in (
        evidence_is_returned, a_waiver_opens_the_gate, the_first_package_is_rejected,
        the_second_goes_stale, an_objection_is_dismissed, the_third_is_accepted,
        it_is_launched, it_is_observed,
        the_file_verifies,
    ):  # fmt: skip
        stage(contest)


def evidence_is_returned(contest: Contest) -> None:
    """The reviewer returns the runtime evidence; its next revision is reviewed."""
    path = f"/evidence/{contest.runtime}/"
    page = contest.at("platform", path)
    page.locator('[name="reason"]').fill("Which errors? 请写明错误。")
    page.get_by_role("button", name="Return", exact=True).click()
    expect(page.locator('h1 [data-state="returned"]')).to_be_visible()
    page = contest.at("contributor", path)
    expect(page.locator("main")).to_contain_text("Which errors?")
    page.get_by_role("link", name="Write the next revision").click()
    page.locator('[name="errors"]').fill("One of four requests was cut off on purpose.")
    page.get_by_role("button", name="Save as the next revision").click()
    page.wait_for_url("**/evidence/*/")
    page.get_by_role("button", name="Submit for review").click()
    expect(page.locator('h1 [data-state="submitted"]')).to_be_visible()
    page = contest.at("platform", path)
    page.get_by_role("button", name="Review: it holds").click()
    expect(page.locator('h1 [data-state="reviewed"]')).to_be_visible()
    page = contest.inside("lead")
    page.get_by_role("button", name="Move on to “Evidence complete”").click()
    expect(page.locator('h1 [data-state="evidence_complete"]')).to_be_visible()


def a_waiver_opens_the_gate(contest: Contest) -> None:
    """Without a business result nothing is frozen; the decision maker grants the lead a dated exception."""
    page = contest.inside("lead", "packages/")
    page.get_by_role("button", name="Freeze a package").click()
    expect(page.locator(".notice.error")).to_contain_text("G8")
    contest.visit(page, contest.path("waivers/"))
    page.locator('[name="guard"]').select_option("G8")
    page.locator('[name="reason"]').fill("The first month's figures are not there yet.")
    page.locator('[name="scope"]').fill("This pilot.")
    page.locator('[name="expires_at"]').fill(f"{_in_days(20)}T12:00")
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.locator('[data-state="requested"]')).to_be_visible()
    page = contest.inside("decision_maker", "waivers/")
    page.get_by_role("button", name="Grant", exact=True).click()
    expect(page.locator('[data-state="granted"]')).to_be_visible()


def the_first_package_is_rejected(contest: Contest) -> None:
    """Business approves, platform with conditions, security rejects: the veto ends the package."""
    contest.freeze()
    contest.sign("business", "approve", "approved")
    contest.sign("platform", "approve_with_conditions", "approved_with_conditions", "Watch the KV pool.")
    page = contest.sign("security", "reject", "rejected", "The conclusion hides the tail. 尾延迟未说明。")
    expect(page.locator('h1 [data-state="rejected"]')).to_be_visible()
    contest.shot(page, "rejected")
    page = contest.inside("lead", "packages/")
    page.get_by_role("button", name="Freeze a package").click()
    expect(page.locator(".notice.error")).to_contain_text("nothing has changed since")


def the_second_goes_stale(contest: Contest) -> None:
    """An answer to the veto makes the second package; an edit after a signature makes that stale."""
    contest.conclude("Decode takes most of the time; p99 is 1.9 times p50.")
    contest.freeze()
    page = contest.sign("business", "approve", "approved")
    expect(page.locator("#differences")).to_contain_text("p99 is 1.9 times p50")
    contest.conclude("Decode takes most of the time; p99 is 1.9 times p50, at 4 at once.")
    page = contest.package_of("business")
    expect(page.locator('h1 [data-state="stale"]')).to_be_visible()
    expect(page.locator(".notice.warning").first).to_contain_text(contest.name("contributor"))
    expect(page.locator('[data-slot="business"] [data-state="stale"]')).to_be_visible()
    contest.shot(page, "stale")


def an_objection_is_dismissed(contest: Contest) -> None:
    """Security objects to a line of the third package; while that is undecided nothing is approved."""
    contest.freeze()
    page = contest.package_of("security")
    page.locator("summary", has_text="Object to a line").click()
    page.locator('[name="object-key"]').select_option(f"{contest.runtime}:errors")
    page.locator('[name="object-rule"]').select_option("G6")
    page.locator('[name="object-statement"]').fill("Which log shows it? 哪份日志可查？")
    page.get_by_role("button", name="Raise the objection").click()
    expect(page.locator('[data-objection] [data-state="open"]')).to_be_visible()
    page = contest.package_of("business")
    card = page.locator('[data-slot="business"]')
    card.locator('[name="business-verdict"][value="approve"]').check()
    card.locator('[name="business-password"]').fill(contest.site.account("business")[1])
    card.get_by_role("button", name="Sign", exact=True).click()
    expect(card.locator(".notice.error")).to_contain_text("objection")
    contest.shot(page, "objection")
    page = contest.at("contributor", "/")
    page.locator('[data-inbox="objections"] a').first.click()
    page.locator('[name$="-answer"]').fill("Run 2, request 3; the call log names it.")
    page.get_by_role("button", name="Answer the objection").click()
    expect(page.locator('[data-objection] [data-state="answered"]')).to_be_visible()
    page = contest.at("decision_maker", "/")
    page.locator('[data-inbox="objections"] a').first.click()
    page.locator('[name$="-upheld"][value="no"]').check()
    page.locator('[name$="-ruling"]').fill("The log names it.")
    page.get_by_role("button", name="Decide the objection").click()
    expect(page.locator('[data-objection] [data-state="dismissed"]')).to_be_visible()


def the_third_is_accepted(contest: Contest) -> None:
    """All three sign, platform with conditions, which the decision takes over; another person confirms."""
    contest.sign("business", "approve", "approved")
    contest.sign("security", "approve", "approved")
    page = contest.sign(
        "platform", "approve_with_conditions", "approved_with_conditions", "Watch the KV pool."
    )
    expect(page.locator('h1 [data-state="approved"]')).to_be_visible()
    contest.shot(page, "approved")
    page = contest.inside("lead", "decision/")
    expect(page.locator('[name="condition_0_text"]')).to_have_value("Watch the KV pool.")
    page.locator('[name="next_step"]').select_option("procurement")
    page.locator('[name="rationale"]').fill("It holds its limits. 满足约定。")
    page.locator('[name="condition_0_owner"]').select_option(label=contest.name("platform"))
    page.locator('[name="condition_0_due_on"]').fill(_in_days(10))
    page.get_by_role("button", name="Propose", exact=True).click()
    page = contest.inside("decision_maker", "decision/")
    page.get_by_role("button", name="Confirm as").click()
    expect(page.locator("[data-confirmer]")).to_have_text(contest.name("decision_maker"))


def it_is_launched(contest: Contest) -> None:
    """Owners and dates; the open condition blocks the launch until its owner closes it."""
    page = contest.inside("lead", "follow-through/")
    for kind in ("budget", "procurement", "launch"):
        page.locator(f'[name="{kind}-owner"]').select_option(label=contest.name("decision_maker"))
        page.locator(f'[name="{kind}-due_on"]').fill(_in_days(14))
        page.locator(f'[data-task="{kind}"]').get_by_role("button", name="Save").click()
        expect(page.locator(f'[data-task="{kind}"] dl')).to_contain_text(contest.name("decision_maker"))
    page.get_by_role("button", name="Move on to “Follow-through”").click()
    page = contest.inside("decision_maker", "follow-through/")
    page.locator('[data-task="launch"]').get_by_role("button", name="Report as done").click()
    expect(page.locator(".notice.error").first).to_contain_text("blocked by open conditions")
    page = contest.inside("platform", "decision/")
    page.locator('[name$="-evidence"]').fill("The alert on the KV pool is on call since Monday.")
    page.get_by_role("button", name="Close the condition").click()
    expect(page.locator('[data-condition] [data-state="done"]')).to_be_visible()
    page = contest.inside("decision_maker", "follow-through/")
    for kind in ("budget", "procurement", "launch"):
        page.locator(f'[data-task="{kind}"]').get_by_role("button", name="Report as done").click()
        expect(page.locator(f'[data-task="{kind}"] [data-state="done"]')).to_be_visible()
    contest.shot(page, "launched")


def it_is_observed(contest: Contest) -> None:
    """Three observers, three readings; only then the project is closed."""
    page = contest.inside("lead", "observation/")
    for kind in ("capacity", "cost", "stability"):
        page.locator(f'[name="{kind}-observer"]').select_option(label=contest.name("security"))
        page.locator(f'[name="{kind}-next_reading_on"]').fill(_in_days(7))
        page.locator(f'[data-observation="{kind}"]').get_by_role("button", name="Save").click()
        expect(page.locator(f'[data-observation="{kind}"] dl')).to_contain_text(contest.name("security"))
    page.get_by_role("button", name="Move on to “Observing”").click()
    expect(page.locator("#advance")).to_contain_text("a reading of Cost")
    page = contest.inside("security", "observation/")
    for kind, value, unit in (
        ("capacity", "45.7", "tokens/s"),
        ("cost", "0.4", "CNY/1k"),
        ("stability", "0", "%"),
    ):
        card = page.locator(f'[data-observation="{kind}"]')
        card.locator("summary", has_text="Enter a reading").click()
        card.locator(f'[name="read-{kind}-value"]').fill(value)
        card.locator(f'[name="read-{kind}-unit"]').fill(unit)
        card.get_by_role("button", name="Enter", exact=True).click()
        expect(card.locator("table")).to_contain_text(unit)
    contest.shot(page, "observed")
    page = contest.inside("lead", "observation/")
    for kind in ("capacity", "cost", "stability"):
        card = page.locator(f'[data-observation="{kind}"]')
        card.get_by_role("button", name="Close this observation").click()
        expect(card.locator('.card-header [data-state="closed"]')).to_be_visible()
    page.get_by_role("button", name="Move on to “Closed”").click()
    contest.visit(page, contest.path())
    expect(page.locator('h1 [data-state="closed"]')).to_be_visible()
    contest.visit(page, contest.path("history/"))
    expect(page.locator("main")).to_contain_text("Security signature of package 1")
    contest.shot(page, "history")


def the_file_verifies(contest: Contest) -> None:
    """The lead's export of the whole file verifies with the verifier that lies in it."""
    page = contest.person("lead")
    answer = page.request.get(f"{contest.site.url}{contest.path('bundle.zip')}")
    assert answer.status == 200
    archive = contest.shots / "bundle.zip"
    archive.write_bytes(answer.body())
    verifier = ROOT / "pocs" / "common" / "verify_bundle.py"
    done = subprocess.run(
        [sys.executable, "-I", str(verifier), str(archive)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _in_days(days: int) -> str:
    return (date.today() + timedelta(days=days)).isoformat()
