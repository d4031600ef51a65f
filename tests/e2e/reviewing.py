"""Stages of the walk from evidence to the frozen package."""

import re

from playwright.sync_api import Page, expect

from tests.e2e.walk import Walk

RUNTIME = {
    "seen": "十六路并发时排队占主导。Queueing dominates at sixteen requests at once.",
    "first_token": "首 Token 的 p95 与排队一起读。TTFT p50 and p95 as in the run, read with the queue.",
    "generation": "生成阶段每 Token 延迟稳定。TPOT stays level, apart from the first token.",
    "errors": "没有失败请求。No request failed.",
    "resources": "内存水位低于上限，缓存按时释放。Memory stays below its limit, blocks are released in time.",
    "call_logs": "按租户在请求页查询。Per tenant on the page of requests.",
}
CONFIGURATION = {
    "policy": "按租户限流，日志保留 30 天。Limits per tenant, logs kept for 30 days.",
    "permissions": "仅平台组可改，坐席工作台可调用。Changed by the platform team alone.",
    "change_note": "首次记录。The first one.",
}
RETROSPECTIVE = {
    "degradation": "长上下文与短请求同批时尾部变差。The tail suffers when long contexts share a batch.",
    "rollback_outcome": "切回上一版用时 40 秒，无残留。Back on the former model in 40 s.",
    "next_optimisation": "先分开长短队列，再测一次。Separate long and short, then measure again.",
    "conclusion": "可在限定并发内试用。Fit for use within the stated concurrency.",
}
RESPONSIBILITIES = (
    ("approval", "模型与配置变更 Changes of model and configuration", "", ""),
    ("ownership", "推理服务 The inference service", "", ""),
    ("alert", "首 Token p95 超限 TTFT p95 above its limit", "#platform-oncall", ""),
    ("handler", "值班处理 First response", "#platform-oncall", "李磊 Li, 24 × 7"),
)
CONCLUSION = {
    "performance": "时间花在排队与预填充。The time goes into queueing and prefill (Q1, Q2).",
    "release_in_time": "请求结束即释放缓存块，见释放时间。Blocks are free as soon as a request ends.",
    "batching_and_tail": "并发 16 时 p95 随队列上升。At 16 at once the p95 rises with the queue.",
    "rollback_of_switch": "保留上一版目录，切换可回退。The former folder is kept, a switch can be undone.",
    "logs_locate_errors": "每个请求有分阶段记录。Each request has its phases on record.",
}
BUSINESS = {
    "experience_before": "首次响应 9 分钟 First response 9 minutes",
    "experience_after": "首次响应 2 分钟 First response 2 minutes",
    "statement": "坐席当班即可答复。Agents answer within the shift.",
}


def fill(page: Page, values: dict[str, str], prefix: str = "") -> None:
    """Fill the fields of a form by their names."""
    for name, value in values.items():
        page.locator(f'[name="{prefix}{name}"]').fill(value)


def attach_the_run(walk: Walk) -> None:
    """The contributor attaches the ended run as runtime evidence and submits it."""
    page = walk.person("contributor")
    walk.visit(page, f"/runs/{walk.run}/")
    page.get_by_role("link", name="Attach as runtime evidence").click()
    expect(page.locator(f'[name="runs"][value="{walk.run}"]')).to_be_checked()
    expect(page.locator('[name="tenants"]')).to_have_value(re.compile("retail"))
    for box in page.locator('[name="runs"]').all():  # the whole matrix stands behind it
        box.check()
    # half written it is a draft, and says what it lacks
    page.get_by_role("button", name="Save draft").click()
    expect(page.locator(".notice.warning")).to_contain_text("Before it can be submitted")
    walk.shot(page, "evidence-draft")
    page.get_by_role("link", name="Edit", exact=True).click()
    fill(page, RUNTIME)
    walk.shot(page, "evidence-editor")
    _save_and_submit(walk, page, "runtime", "Save draft")


def capture_the_configuration(walk: Walk) -> None:
    """Configuration evidence: what the run recorded is captured, the rest is typed."""
    page = walk.person("contributor")
    walk.visit(page, f"/runs/{walk.run}/")
    page.get_by_role("link", name="Capture its configuration").click()
    captured = page.locator("fieldset.group", has_text="Capture from a run")
    expect(captured).to_contain_text("model_digest")
    expect(captured).to_contain_text("torch")
    fill(page, CONFIGURATION)
    walk.shot(page, "evidence-configuration")
    _save_and_submit(walk, page, "configuration", "Save draft")


def write_the_others(walk: Walk) -> None:
    """Responsibility with its teams, and the retrospective with its owner."""
    page = walk.person("contributor")
    walk.visit(page, walk.path("evidence/new/responsibility/"))
    fill(page, {"title": "责任到人 Who answers for what"})
    page.get_by_role("button", name="Add rows").click()
    expect(page.locator('[name="title"]')).to_have_value("责任到人 Who answers for what")
    for number, (kind, subject, route, on_call) in enumerate(RESPONSIBILITIES):
        row = f"rows-{number}-"
        page.locator(f'[name="{row}kind"]').select_option(kind)
        page.locator(f'[name="{row}team"]').select_option(label="推理平台组 Inference platform")
        fill(page, {"subject": subject, "alert_route": route, "on_call": on_call}, row)
    walk.shot(page, "evidence-responsibility")
    _save_and_submit(walk, page, "responsibility", "Save draft")

    walk.visit(page, walk.path("evidence/new/retrospective/"))
    fill(page, {"title": "复盘 Retrospective"} | RETROSPECTIVE)
    page.locator('[name="owner"]').select_option(label=walk.name("lead"))
    _save_and_submit(walk, page, "retrospective", "Save draft")


def _save_and_submit(walk: Walk, page: Page, kind: str, button: str) -> None:
    page.get_by_role("button", name=button).click()
    page.wait_for_url("**/evidence/*/")
    walk.evidence[kind] = int(page.url.rstrip("/").rsplit("/", 1)[1])
    page.get_by_role("button", name="Submit for review").click()
    expect(page.locator('h1 [data-state="submitted"]')).to_be_visible()


def review_by_someone_else(walk: Walk) -> None:
    """The contributor is told why not; the lead, who wrote none of it, reviews all four."""
    page = walk.person("contributor")
    walk.visit(page, f"/evidence/{walk.evidence['runtime']}/")
    refusal = page.locator("#review")
    expect(refusal.get_by_role("button", name="Review: it holds")).to_have_count(0)
    walk.figures["contributor_refused"] = refusal.locator(".notice").inner_text()
    walk.shot(page, "evidence-refused")

    page = walk.person("lead")
    walk.visit(page, "/")
    expect(page.locator('[data-inbox="reviews"] li')).to_have_count(len(walk.evidence))
    walk.shot(page, "inbox-reviews")
    for kind, pk in walk.evidence.items():
        walk.visit(page, f"/evidence/{pk}/")
        expect(page.locator("section", has=page.locator("#review-title"))).to_contain_text("passes")
        if kind == "runtime":
            expect(page.locator("section", has=page.locator("#review-title"))).to_contain_text("retail")
            walk.shot(page, "evidence-to-review")
        page.get_by_label("Note of the review").fill("逐行核对。Checked row by row.")
        page.get_by_role("button", name="Review: it holds").click()
        expect(page.locator('h1 [data-state="reviewed"]')).to_be_visible()
    walk.visit(page, walk.path("evidence/"))
    walk.shot(page, "evidence")


def conclude(walk: Walk) -> None:
    """Conclusion and business result; then the evidence is complete."""
    page = walk.person("lead")
    for path, values in (("conclusion/", CONCLUSION), ("business-result/", BUSINESS)):
        walk.visit(page, walk.path(path))
        fill(page, values)
        walk.shot(page, path.rstrip("/"))
        page.get_by_role("button", name="Save").click()
        expect(page.locator(".notice.success")).to_be_visible()
    walk.visit(page, walk.path())
    for number in range(1, 9):
        expect(page.locator(f'[data-gate="G{number}"] > .badge')).to_have_attribute("data-state", "met")
    page.get_by_role("button", name="Move on to “Evidence complete”").click()
    expect(page.locator('h1 [data-state="evidence_complete"]')).to_be_visible()
    walk.shot(page, "project-evidence-complete")


def freeze(walk: Walk) -> None:
    """The lead freezes the package: one digest, and the project is in review."""
    page = walk.person("lead")
    walk.visit(page, walk.path("packages/"))
    page.get_by_role("button", name="Freeze a package").click()
    page.wait_for_url("**/packages/*/")
    walk.package = int(page.url.rstrip("/").rsplit("/", 1)[1])
    walk.digest = page.locator("[data-digest]").inner_text()
    assert re.fullmatch("[0-9a-f]{64}", walk.digest)
    expect(page.locator('[data-slot="business"]')).to_contain_text("The output satisfies the scenario.")
    # whoever contributed is named as one who cannot sign
    expect(page.locator('[data-slot="platform"]')).to_contain_text("Who may sign")
    walk.shot(page, "package-frozen")
