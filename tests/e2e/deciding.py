"""Stages of the walk from three signatures to the one-page sheet, and what an outsider sees."""

from datetime import date, timedelta
from io import BytesIO

from playwright.sync_api import expect
from pypdf import PdfReader

from tests.e2e.walk import Walk

SLOTS = ("business", "platform", "security")
COMMENT = "已核对输出样例。Checked the sample outputs."
RATIONALE = "首 Token 与生成都在约定内，可扩大试点。First token and generation are within what was agreed."
LANGUAGES = {"en": "One-page", "zh-hans": "一页"}


def sign(walk: Walk) -> None:
    """Business, platform and security sign with their password; a wrong one is refused, the form kept."""
    for slot in SLOTS:
        page = walk.person(slot)
        walk.visit(page, "/")
        expect(page.locator('[data-inbox="signatures"]')).to_be_visible()
        page.locator('[data-inbox="signatures"] a').first.click()
        card = page.locator(f'[data-slot="{slot}"]')
        card.locator(f'[name="{slot}-verdict"][value="approve"]').check()
        card.locator(f'[name="{slot}-comment"]').fill(COMMENT)
        if slot == "business":
            card.locator(f'[name="{slot}-password"]').fill("not the password")
            card.get_by_role("button", name="Sign").click()
            expect(card).to_contain_text("The password is not right; nothing was signed.")
            expect(card.locator(f'[name="{slot}-verdict"][value="approve"]')).to_be_checked()
            expect(card.locator(f'[name="{slot}-comment"]')).to_have_value(COMMENT)
            expect(card.locator(f'[name="{slot}-password"]')).to_have_value("")
            walk.shot(page, "package-wrong-password")
        card.locator(f'[name="{slot}-password"]').fill(walk.site.account(slot)[1])
        card.get_by_role("button", name="Sign").click()
        expect(card.locator('[data-state="approved"]')).to_be_visible()
        expect(card).to_contain_text(walk.name(slot))
    expect(page.locator('h1 [data-state="approved"]')).to_be_visible()
    walk.shot(page, "package-approved")


def decide(walk: Walk) -> None:
    """The lead proposes and cannot confirm; the decision maker confirms and is named."""
    page = walk.person("lead")
    walk.visit(page, walk.path("decision/"))
    page.locator('[name="outcome"]').select_option("accepted")
    page.locator('[name="next_step"]').select_option("wider_pilot")
    page.locator('[name="rationale"]').fill(RATIONALE)
    walk.shot(page, "decision-proposing")
    page.get_by_role("button", name="Propose", exact=True).click()
    expect(page.locator('#current [data-state="proposed"]')).to_be_visible()
    expect(page.get_by_role("button", name="Confirm as")).to_have_count(0)
    walk.shot(page, "decision-proposed")

    page = walk.person("decision_maker")
    walk.visit(page, "/")
    walk.shot(page, "inbox-decision-maker")
    page.locator('[data-inbox="decisions"] a').first.click()
    page.get_by_role("button", name="Confirm as").click()
    expect(page.locator("[data-confirmer]")).to_have_text(walk.name("decision_maker"))
    walk.shot(page, "decision-confirmed")


def follow_through(walk: Walk) -> None:
    """Budget, procurement and launch get owners and dates; then the three observers are named."""
    page = walk.person("lead")
    owners = {"budget": "decision_maker", "procurement": "decision_maker", "launch": "lead"}
    for number, (kind, owner) in enumerate(owners.items(), start=1):
        walk.visit(page, walk.path("follow-through/"))
        page.locator(f'[name="{kind}-owner"]').select_option(label=walk.name(owner))
        page.locator(f'[name="{kind}-due_on"]').fill(_in_days(14 * number))
        page.locator(f'[data-task="{kind}"]').get_by_role("button", name="Save").click()
        expect(page.locator(f'[data-task="{kind}"] dl')).to_contain_text(walk.name(owner))
    walk.shot(page, "follow-through")
    page.get_by_role("button", name="Move on to “Follow-through”").click()
    page.wait_for_load_state()

    observers = {"capacity": "platform", "cost": "decision_maker", "stability": "security"}
    for kind, observer in observers.items():
        walk.visit(page, walk.path("observation/"))
        page.locator(f'[name="{kind}-observer"]').select_option(label=walk.name(observer))
        page.locator(f'[name="{kind}-next_reading_on"]').fill(_in_days(7))
        page.locator(f'[data-observation="{kind}"]').get_by_role("button", name="Save").click()
        expect(page.locator(f'[data-observation="{kind}"] dl')).to_contain_text(walk.name(observer))
    walk.shot(page, "observation")
    page.get_by_role("button", name="Move on to “Observing”").click()
    page.wait_for_load_state()
    walk.visit(page, walk.path())
    expect(page.locator('h1 [data-state="observing"]')).to_be_visible()
    walk.shot(page, "project-observing")
    walk.visit(page, walk.path("history/"))
    walk.shot(page, "history")


def _in_days(days: int) -> str:
    return (date.today() + timedelta(days=days)).isoformat()


def read_the_sheet(walk: Walk) -> None:
    """One page in each language, on screen and as PDF, each with the digest that was signed."""
    page = walk.person("business")
    for language in LANGUAGES:
        walk.visit(page, walk.path(f"sheet/?lang={language}"))
        expect(page.locator("code.digest")).to_have_text(walk.digest)
        for part in ("verification", "figures", "signatures", "decision", "follow-through", "observers"):
            expect(page.locator(f'[data-part="{part}"]')).to_be_visible()
        expect(page.locator('[data-part="decision"]')).to_contain_text(walk.name("decision_maker"))
        walk.shot(page, f"sheet-{language}")
        answer = page.request.get(f"{walk.site.url}{walk.path(f'sheet.pdf?lang={language}')}")
        assert answer.status == 200
        assert answer.headers["content-type"] == "application/pdf"
        document = PdfReader(BytesIO(answer.body()))
        assert len(document.pages) == 1, f"the sheet in {language} has {len(document.pages)} pages"
        text = "".join(document.pages[0].extract_text().split())
        assert walk.digest in text
        (walk.shots / f"sheet-{language}.pdf").write_bytes(answer.body())


def stay_outside(walk: Walk) -> None:
    """Someone of another organisation finds nothing, on pages and by the way of a link."""
    page = walk.person("outsider")
    walk.shot(page, "inbox-outsider")
    paths = [
        walk.path(),
        walk.path("matrix/"),
        walk.path("matrix/1/"),
        walk.path("runs/"),
        walk.path("evidence/"),
        walk.path("decision/"),
        walk.path("history/"),
        walk.path("sheet/"),
        walk.path("sheet.pdf"),
        f"/runs/{walk.run}/",
        f"/runs/{walk.run}/requests/",
        f"/evidence/{walk.evidence['runtime']}/",
        f"/packages/{walk.package}/",
        f"/api/v1/projects/{walk.project}/",
        f"/api/v1/runs/{walk.run}/",
    ]
    for path in paths:
        assert page.request.get(f"{walk.site.url}{path}").status == 404, path
    walk.visit(page, walk.path(), status=404)
    walk.shot(page, "outsider-not-found")


def time_the_pages(walk: Walk) -> None:
    """The time that the server takes for each page of the project, with nothing running."""
    page = walk.person("lead")
    pages = {
        "inbox": "/",
        "projects": "/projects/",
        "project": walk.path(),
        "members": walk.path("members/"),
        "history": walk.path("history/"),
        "tokens": walk.path("tokens/"),
        "scenario": walk.path("scenarios/short-request/"),
        "matrix": walk.path("matrix/"),
        "matrix execution": walk.path("matrix/1/"),
        "runs": walk.path("runs/"),
        "run": f"/runs/{walk.run}/",
        "requests": f"/runs/{walk.run}/requests/",
        "request": f"/runs/{walk.run}/requests/1/",
        "compare": walk.path("runs/compare/?a=1&b=2"),
        "evidence list": walk.path("evidence/"),
        **{f"evidence {kind}": f"/evidence/{pk}/" for kind, pk in walk.evidence.items()},
        "evidence editor": f"/evidence/{walk.evidence['runtime']}/edit/",
        "packages": walk.path("packages/"),
        "package": f"/packages/{walk.package}/",
        "conclusion": walk.path("conclusion/"),
        "decision": walk.path("decision/"),
        "follow-through": walk.path("follow-through/"),
        "observation": walk.path("observation/"),
        "waivers": walk.path("waivers/"),
        "sheet": walk.path("sheet/"),
    }
    for name, path in pages.items():
        walk.time_page(page, name, path)


def read_everything_in_chinese(walk: Walk) -> None:
    """The same pages in Chinese, for whoever looks at the screenshots."""
    page = walk.person("platform")
    page.get_by_role("button", name="中文").click()
    expect(page.locator("html")).to_have_attribute("lang", "zh-Hans")
    for name, path in (
        ("project", walk.path()),
        ("matrix", walk.path("matrix/")),
        ("run", f"/runs/{walk.run}/"),
        ("request", f"/runs/{walk.run}/requests/1/"),
        ("evidence", f"/evidence/{walk.evidence['runtime']}/"),
        ("package", f"/packages/{walk.package}/"),
        ("decision", walk.path("decision/")),
        ("follow-through", walk.path("follow-through/")),
        ("observation", walk.path("observation/")),
        ("inbox", "/"),
    ):
        walk.visit(page, path)
        walk.shot(page, f"zh-{name}")
