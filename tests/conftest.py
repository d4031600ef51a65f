"""Fixtures of all tests: the cast around one project, and clients signed in as one of it."""

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

_serial = count(1)


@pytest.fixture(autouse=True)
def _own_checkpoints(settings: Settings) -> None:
    """Audit checkpoints of one test are not those of another, whose organisations have the same numbers."""
    settings.PHASEGATE_AUDIT_CHECKPOINTS = settings.VAR_DIR / f"audit-checkpoints-{next(_serial)}"


@pytest.fixture
def cast(db: None) -> Cast:
    """A draft project with one person per role, an auditor, a bystander and an outsider."""
    return make_cast()


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
