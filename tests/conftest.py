"""Fixtures of all tests: the cast around one project, and clients signed in as one of it."""

import os
from collections.abc import Callable, Iterator
from itertools import count

import pytest
from django.test import Client
from django.utils import translation
from pytest_django import Settings
from rest_framework.test import APIClient

from pocs.people.models import User
from pocs.projects.models import Project
from tests.factories import Cast, make_cast
from tests.stages import Stages

_serial = count(1)
#: files that start engines or whole sites: begun first, so that no worker is left with one at the end
BEGUN_FIRST = {
    "test_embedded.py",
    "test_engine.py",
    "test_engine_run.py",
    "test_measure_engine.py",
    "test_race.py",
    "test_up_for_real.py",
}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Long files first; on a database server, only what touches the database: the rest is the same there."""
    if "DATABASE_URL" in os.environ:
        left_out = [item for item in items if not _touches_database(item)]
        left_out += [item for item in items if item.get_closest_marker("any_database") is not None]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]
    items.sort(key=lambda item: item.path.name not in BEGUN_FIRST)


def _touches_database(item: pytest.Item) -> bool:
    fixtures = getattr(item, "fixturenames", ())
    return item.get_closest_marker("django_db") is not None or not {"db", "transactional_db"}.isdisjoint(
        fixtures
    )


@pytest.fixture(autouse=True)
def _own_checkpoints(settings: Settings) -> None:
    """Audit checkpoints of one test are not those of another, whose organisations have the same numbers."""
    settings.PHASEGATE_AUDIT_CHECKPOINTS = settings.VAR_DIR / f"audit-checkpoints-{next(_serial)}"


@pytest.fixture
def stages(db: None) -> Iterator[Stages]:
    """Where tests begin that need more than a draft: `stages.reach(name, build)`."""
    with Stages().watched() as stages:
        yield stages


@pytest.fixture
def cast(stages: Stages) -> Cast:
    """A draft project with one person per role, an auditor, a bystander and an outsider."""
    return stages.cast(make_cast)


@pytest.fixture
def project(cast: Cast) -> Project:
    return cast.project


@pytest.fixture
def page_as(db: None) -> Callable[[User], Client]:
    """A browser signed in as this person; failing views raise instead of answering 500."""

    def sign_in(user: User) -> Client:
        client = Client()
        client.force_login(user)
        return client

    return sign_in


@pytest.fixture
def api_as(db: None) -> Callable[..., APIClient]:
    """An API client: `api_as(user)` with a session, `api_as(token="pgt_…")` with a CI token."""

    def sign_in(user: User | None = None, *, token: str = "") -> APIClient:
        client = APIClient()
        if user is not None:
            client.force_login(user)
        if token:
            client.credentials(HTTP_AUTHORIZATION=f"Bearer {token}")
        return client

    return sign_in


@pytest.fixture(autouse=True)
def in_english() -> Iterator[None]:
    """Each test starts in English: a request in Chinese leaves its thread in Chinese, as Django does."""
    with translation.override("en"):
        yield
