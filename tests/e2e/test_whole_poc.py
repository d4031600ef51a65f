"""One POC in the browser, from draft to observation, by everyone who takes part, on the real model."""

from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.e2e import deciding, measuring, reviewing
from tests.e2e.walk import Walk

pytestmark = pytest.mark.browser

STAGES = (
    measuring.look_at_the_project,
    measuring.too_early,
    measuring.run_the_matrix,
    measuring.read_a_run,
    measuring.add_up_every_request,
    reviewing.attach_the_run,
    reviewing.capture_the_configuration,
    reviewing.write_the_others,
    reviewing.review_by_someone_else,
    reviewing.conclude,
    reviewing.freeze,
    deciding.sign,
    deciding.decide,
    deciding.follow_through,
    deciding.read_the_sheet,
    deciding.stay_outside,
    deciding.time_the_pages,
    deciding.read_everything_in_chinese,
)


def test_a_poc_from_draft_to_decision_and_after(fresh_site: Any, browser: Browser) -> None:
    """One story: each stage stands on what the one before has left in the site.

    Times are written to figures.json beside the screenshots and judged by nobody here: the machines
    that run tests vary.
    """
    walk = Walk(fresh_site, browser)
    try:
        for stage in STAGES:
            stage(walk)
    finally:
        walk.record()
        walk.end()
    assert walk.errors == []
