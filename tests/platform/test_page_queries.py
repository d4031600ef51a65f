"""The heavy pages of a decided project ask the database no more than they did when they were fast enough.

How long they take is measured by `benchmarks/site.py`.
"""

from collections.abc import Callable

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from pocs.common.reading import one_reading, remembered
from pocs.people.models import User
from pocs.runs.models import Run
from tests.factories import Cast, make_run, make_scenario_version
from tests.pocs.reviews import walk

MOST = {
    "/": 20,
    "/projects/": 12,
    "/projects/{project}/": 40,
    "/projects/{project}/matrix/": 14,
    "/projects/{project}/follow-through/": 16,
    "/projects/{project}/observation/": 19,
    "/projects/{project}/packages/": 9,
    "/runs/{run}/": 10,
    "/runs/{run}/requests/": 10,
}


@pytest.fixture
def run(cast: Cast) -> Run:
    """The newest run of a decided project, which has more runs and scenarios than a matrix asks for."""
    walk.to_evidence_complete(cast)
    walk.to_decided(cast)
    for number in range(6):
        version = make_scenario_version(cast.project, f"more-{number}")
        newest = make_run(cast.project, scenario_version=version)
    return newest


def test_pages_ask_little(cast: Cast, run: Run, page_as: Callable[[User], Client]) -> None:
    """One story for all pages, because making a decided project takes longer than looking at it."""
    browser = page_as(cast.lead)
    asked = {}
    for page in MOST:
        path = page.format(project=cast.project.pk, run=run.pk)
        assert browser.get(path).status_code == 200
        with CaptureQueriesContext(connection) as queries:
            browser.get(path)
        asked[page] = len(queries)
    assert {page: count for page, count in asked.items() if count > MOST[page]} == {}


def test_a_reading_asks_once_for_the_same(cast: Cast) -> None:
    asked: list[object] = []

    @remembered
    def ask(what: object, *, how: str = "") -> int:
        asked.append((what, how))
        return len(asked)

    assert [ask(cast.lead), ask(cast.lead)] == [1, 2]
    with one_reading():
        same = User.objects.get(pk=cast.lead.pk)
        assert [ask(cast.lead), ask(same), ask(cast.lead, how="else"), ask(cast.viewer)] == [3, 3, 4, 5]
        with one_reading():
            assert ask(cast.lead) == 6
        assert ask(cast.lead) == 3
    assert ask(cast.lead) == 7


def test_nothing_is_remembered_from_one_page_to_the_next(
    cast: Cast, page_as: Callable[[User], Client]
) -> None:
    browser = page_as(cast.lead)
    path = f"/projects/{cast.project.pk}/members/"
    assert browser.get(path).status_code == 200
    cast.project.members.filter(user=cast.lead).delete()
    assert browser.get(path).status_code == 404
