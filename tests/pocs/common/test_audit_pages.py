"""The audit over pages and API: who reads which entries, narrowed how, in which words."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone, translation
from rest_framework.test import APIClient

from pocs.common import audit, checkpoints
from pocs.common.models import AuditEntry
from pocs.people.models import User
from pocs.projects import services
from pocs.projects.ui.entries import readable
from pocs.reviews.models import Package, SignOff
from tests.factories import Cast, make_ci_token

Api = Callable[..., APIClient]
Pages = Callable[[User], Client]


@pytest.fixture
def told(cast: Cast) -> Cast:
    """Entries of the project, of another project of the organisation, and of the organisation itself."""
    services.affected_add(actor=cast.lead.as_actor(), project=cast.project, kind="data", name="Tickets")
    services.affected_add(
        actor=cast.contributor.as_actor(), project=cast.project, kind="team", name="Support"
    )
    services.project_create(actor=cast.bystander.as_actor(), name="Another")
    return cast


def rows(client: APIClient, **narrowed: object) -> list[str]:
    answer = client.get(reverse("api-audit"), narrowed)
    assert answer.status_code == 200, answer.content
    return [row["verb"] for row in answer.json()["results"]]


def test_entry_by_entry_what_one_may_read(told: Cast, api_as: Api, page_as: Pages) -> None:
    assert rows(api_as(told.auditor)) == ["project.created", "affected.added", "affected.added"]
    assert rows(api_as(told.lead)) == ["affected.added", "affected.added"]
    assert rows(api_as(told.bystander)) == ["project.created"]  # leads the other project
    assert "affected.added" not in rows(api_as(told.outsider))
    _, plaintext = make_ci_token(told.project, sponsor=told.lead, scopes=("read",))
    assert api_as(token=plaintext).get(reverse("api-audit")).status_code == 403
    assert api_as(token=plaintext).post(reverse("api-audit-verification")).status_code == 403
    for person in (told.viewer, told.contributor):
        assert api_as(person).get(reverse("api-audit")).status_code == 403
        assert api_as(person).post(reverse("api-audit-verification")).status_code == 403
        assert page_as(person).get(reverse("projects:audit")).status_code == 403


def test_it_is_narrowed(told: Cast, api_as: Api, page_as: Pages) -> None:
    client = api_as(told.auditor)
    assert rows(client, project=told.project.pk) == ["affected.added", "affected.added"]
    assert rows(client, person=told.contributor.pk) == ["affected.added"]
    assert rows(client, verb="project") == ["project.created"]
    assert rows(client, verb="affected.removed") == []
    assert rows(client, object_type="projects.project") == ["project.created"]
    assert len(rows(client, since=str(timezone.now().date()))) == 3
    assert rows(client, until=str((timezone.now() - timedelta(days=1)).date())) == []
    # another lead's project narrows to nothing, not to its entries
    assert rows(api_as(told.bystander), project=told.project.pk) == []
    for wrong in ({"project": "x"}, {"since": "yesterday"}, {"colour": "red"}):
        assert client.get(reverse("api-audit"), wrong).status_code == 400
    page = page_as(told.auditor).get(reverse("projects:audit"), {"person": told.contributor.pk})
    text = page.content.decode()
    assert "Support" in text
    assert "Tickets" not in text
    assert checkpoints.public_key() in text
    narrowed = (
        page_as(told.auditor).get(reverse("projects:audit"), {"project": told.project.pk}).content.decode()
    )
    assert reverse("reviews:bundle", args=[told.project.pk]) in narrowed
    assert page_as(told.auditor).get(reverse("projects:audit"), {"since": "nonsense"}).status_code == 200


def test_it_verifies_over_page_and_api(told: Cast, api_as: Api, page_as: Pages) -> None:
    found = api_as(told.auditor).post(reverse("api-audit-verification")).json()
    assert (found["holds"], found["public_key"]) == (True, checkpoints.public_key())
    assert 'data-verified="yes"' in page_as(told.lead).post(reverse("projects:audit")).content.decode()


@pytest.mark.parametrize(
    ("language", "name"),
    [("en", "Security signature of package 1"), ("zh-hans", "")],
)
def test_the_history_speaks_in_words(cast: Cast, language: str, name: str) -> None:
    package = Package(project=cast.project, number=1)
    signoff = SignOff(package=package, slot="security", pk=7)
    package.pk = 3
    actor = cast.lead.as_actor()
    with transaction.atomic():
        audit.record(actor=actor, verb="signoff.approved", obj=signoff, project_id=cast.project.pk,
                     before={"state": "requested"},
                     after={"state": "approved", "slot": "security"})  # fmt: skip
        audit.record(actor=actor, verb="package.stale", obj=package, project_id=cast.project.pk,
                     after={"state": "stale", "object": "evidence.evidencerevision:5"})  # fmt: skip
    services.token_issue(
        actor=actor,
        project=cast.project,
        name="CI",
        scopes=["read"],
        expires_at=timezone.now() + timedelta(days=1),
    )
    with translation.override(language):
        shown = readable(list(AuditEntry.objects.order_by("sequence")))
    assert "P1" not in " ".join(entry.object for entry in shown)
    assert "evidencerevision" not in str(shown)
    sponsor = next(
        change.after for change in shown[2].changes if change.field in ("sponsor", "担保人", "责任人")
    )
    assert sponsor == str(cast.lead)
    if name:
        assert shown[0].object == name
