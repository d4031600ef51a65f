"""Stages of the walk before any review: the project, the matrix moving, and what its runs state."""

import re
import time

from playwright.sync_api import expect

from inference.phases import SUMMED
from tests.e2e.walk import LIVE_WITHIN_S, Walk

#: machines that run tests vary: beyond the target the figure is recorded, beyond the next the test fails
MATRIX_TARGET_S, MATRIX_GIVEN_UP_S = 240, 900
SUM_TOLERANCE_MS = 1.0
#: the run to be followed: the longest of those whose requests end one after the other
STEADY = "long-context"
#: a closed loop counts from the sending on: what the client waited before is in no latency
FROM_SENT = tuple(name for name in SUMMED if name != "dispatch_delay")
LIVE_TIMEOUT_MS = int(LIVE_WITHIN_S * 1000)
#: no navigation may have replaced the page while its figures came in
MARK = "window.stillTheSamePage = true"
IS_MARKED = "window.stillTheSamePage === true"
CHINESE = re.compile("[一-鿿]")
DONE_ABOVE = """(least) => {
  const done = document.querySelector("[data-progress-bar]")?.value;
  return done > least ? done : null;
}"""
FILLED = """(keys) => keys.every((key) => {
  const places = document.querySelectorAll(`[data-figure^="${key}"]`);
  return places.length > 0 && [...places].some((place) => /[0-9]/.test(place.textContent));
})"""


def look_at_the_project(walk: Walk) -> None:
    """The lead sees where the project stands and what is missing, in both languages."""
    page = walk.person("lead")
    walk.shot(page, "inbox-lead")
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Projects").click()
    walk.shot(page, "projects")
    page.get_by_role("link", name="Service desk assistant").first.click()
    for number in range(1, 13):
        expect(page.locator(f'[data-gate="G{number}"]')).to_be_visible()
    expect(page.locator('[data-gate="G1"]')).to_contain_text("met")
    expect(page.locator('[data-gate="G3"] .gate-missing')).to_contain_text("at least one interruption (S11)")
    expect(page.locator('[data-gate="G5"] .gate-missing')).to_contain_text("Runtime evidence (E2)")
    walk.shot(page, "project")
    page.get_by_role("button", name="中文").click()
    expect(page.locator("html")).to_have_attribute("lang", "zh-Hans")
    expect(page.locator('[data-section="gates"] h2')).to_have_text(CHINESE)
    expect(page.get_by_role("navigation").first).to_have_text(CHINESE)
    walk.shot(page, "project-zh")
    page.get_by_role("button", name="English").click()
    expect(page.locator("html")).to_have_attribute("lang", "en")


def too_early(walk: Walk) -> None:
    """Moving on before the evidence is there is refused with what is missing."""
    page = walk.person("lead")
    page.get_by_role("button", name="Move on to “Evidence complete”").click()
    refusal = page.locator("section.notice.error")
    expect(refusal).to_contain_text("G3")
    expect(refusal).to_contain_text("G5")
    walk.shot(page, "project-refused")


def run_the_matrix(walk: Walk) -> None:
    """The matrix runs on the embedded engine; its page and the page of a run move without a reload."""
    page = walk.person("lead")
    walk.visit(page, walk.path("matrix/"))
    walk.shot(page, "matrix-empty")
    page.get_by_role("button", name="Run the matrix").click()
    page.wait_for_url("**/matrix/1/")
    begun = time.monotonic()
    page.evaluate(MARK)
    expect(page.locator('[data-live="open"]')).to_have_text("live", timeout=LIVE_TIMEOUT_MS)
    first = page.locator("[data-run]").nth(0)
    followed = page.locator("[data-run]", has_text=STEADY)
    expect(first.locator('[data-state="measuring"], [data-state="complete"]').first).to_be_visible(
        timeout=LIVE_TIMEOUT_MS
    )
    walk.shot(page, "matrix-moving")
    walk.run = int(first.get_attribute("data-run") or 0)
    _follow_a_run(walk, int(followed.get_attribute("data-run") or 0))
    expect(followed.locator('[data-state="complete"]')).to_be_visible(timeout=LIVE_TIMEOUT_MS)
    total = page.locator("[data-run]").count()
    expect(page.locator('[data-run][data-ended="yes"]')).to_have_count(
        total, timeout=MATRIX_GIVEN_UP_S * 1000
    )
    walk.figures["matrix_s"] = round(time.monotonic() - begun, 1)
    walk.figures["matrix_target_s"] = MATRIX_TARGET_S
    assert page.evaluate(IS_MARKED), "the matrix page was loaded again"
    expect(page.locator('[data-part="progress"]')).to_contain_text(f"{total} / {total}")
    expect(page.locator('[data-part="progress"]')).to_contain_text(f"{total} count as evidence")
    expect(page.locator('[data-run] [data-state="complete"]')).to_have_count(total)
    walk.shot(page, "matrix-ended")
    walk.figures["runs"] = total


def _follow_a_run(walk: Walk, pk: int) -> None:
    """The page of a run that waits moves once its turn comes: progress, tiles, charts, slowest requests."""
    page = walk.person("contributor")
    walk.visit(page, f"/runs/{pk}/")
    page.evaluate(MARK)
    begun = walk.until(page, DONE_ABOVE, 0)
    walk.until(page, DONE_ABOVE, begun)
    walk.until(page, FILLED, ["ttft_ms", "tpot_ms", "output_tokens_per_second", "error_rate", "memory"])
    assert page.evaluate(IS_MARKED), "the run page was loaded again while it moved"
    expect(page.locator("[data-slowest] tr .badge").first).to_be_visible(timeout=LIVE_TIMEOUT_MS)
    waterfall = page.locator('[data-chart="waterfall"]')
    expect(waterfall.locator("canvas, svg").first).to_be_visible()
    walk.shot(page, "run-live")
    # ended, it shows what the server states
    expect(page.get_by_role("heading", name="Percentiles by phase")).to_be_visible(timeout=LIVE_TIMEOUT_MS)


def read_a_run(walk: Walk) -> None:
    """The ended run states percentiles by phase with n, validity and where the time goes."""
    page = walk.person("lead")
    walk.visit(page, f"/runs/{walk.run}/")
    expect(page.locator('h1 [data-state="complete"]')).to_be_visible()
    expect(page.locator('h1 [data-state="valid"]')).to_be_visible()
    table = page.locator("section", has=page.locator("#percentiles-title")).locator("table")
    for phase in ("Queue wait", "Prefill", "Time to first token (TTFT)", "Decode", "End to end"):
        row = table.locator("tr", has=page.get_by_role("rowheader", name=phase, exact=True))
        figures = [float(text.replace(",", "").rstrip("*")) for text in row.locator("td").all_inner_texts()]
        count, p50, p90, p95, p99, highest, _mean = figures
        assert count > 0, phase
        assert p50 <= p90 <= p95 <= p99 <= highest, phase
    verdict = page.locator("section", has=page.locator("#verdict-title"))
    walk.figures["verdict"] = verdict.locator(".verdict-sentence").inner_text()
    assert any(phase in walk.figures["verdict"].lower() for phase in ("queue", "prefill", "decode"))
    expect(verdict.locator("li").first).to_be_visible()
    walk.shot(page, "run-ended")
    page.get_by_role("link", name="Requests", exact=True).click()
    walk.shot(page, "run-requests")
    page.locator("table a").first.click()
    expect(page.locator("svg").first).to_be_visible()
    walk.shot(page, "run-request")
    walk.visit(page, walk.path("runs/"))
    walk.shot(page, "runs")
    walk.visit(page, walk.path("matrix/"))
    expect(page.locator("section", has=page.locator("#lacks-title"))).to_contain_text("met")
    walk.shot(page, "matrix-covered")


def add_up_every_request(walk: Walk) -> None:
    """Every run counts, and the intervals of every request add up to its end-to-end time."""
    worst, seen = 0.0, 0
    for item in walk.site.rows(f"/api/v1/projects/{walk.project}/runs/"):
        assert (item["state"], item["validity"]) == ("complete", "valid"), item
        for request in walk.site.rows(f"/api/v1/runs/{item['id']}/requests/"):
            seen += 1
            if request["e2e_ms"] is None:
                continue
            parts = sum(request["intervals_ms"].get(name) or 0.0 for name in FROM_SENT)
            worst = max(worst, abs(parts - request["e2e_ms"]))
    walk.figures["requests"] = seen
    walk.figures["largest_gap_of_sum_ms"] = round(worst, 4)
    assert seen > 0
    assert worst <= SUM_TOLERANCE_MS
