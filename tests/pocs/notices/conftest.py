"""Fixtures of notices: the cast with addresses and languages, and what a mail server would have got."""

from collections.abc import Callable
from typing import Any

import pytest

from pocs.notices import services
from pocs.notices.models import Notice
from pocs.people.models import User
from tests.factories import Cast
from tests.pocs.evidence.conftest import (  # noqa: F401 fixtures of evidence, used by names
    body_of,
    make_evidence,
    own_media,
    reviewed,
    run,
    submitted,
)


@pytest.fixture(autouse=True)
def addresses(cast: Cast) -> None:
    """Everybody has an address; the reviewer reads Chinese and lives in Shanghai."""
    for user in User.objects.all():
        user.email = f"{user.username}@example.org"
        user.save()
    User.objects.filter(pk=cast.reviewer.pk).update(language="zh-hans", time_zone="Asia/Shanghai")


@pytest.fixture
def told() -> Callable[[User], list[Notice]]:
    """What a person was told, oldest first, after the chain was read."""

    def read(user: User) -> list[Notice]:
        services.entries_read()
        return list(Notice.objects.filter(recipient=user).order_by("pk"))

    return read


@pytest.fixture
def kinds(told: Callable[[User], list[Notice]]) -> Callable[[User], list[str]]:
    def read(user: User) -> list[str]:
        return [notice.kind for notice in told(user)]

    return read


def texts(notices: list[Any]) -> str:
    return "\n".join(notice.text for notice in notices)
