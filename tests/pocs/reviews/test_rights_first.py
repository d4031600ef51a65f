"""Whoever may not do something hears that first, whatever is wrong with what they sent."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from rest_framework.test import APIClient

from pocs.people.models import User
from pocs.projects.choices import ProjectState
from pocs.reviews import services
from pocs.reviews.models import Decision, Objection, Observation, SignOff
from tests.factories import Cast
from tests.pocs.reviews import walk


@pytest.fixture
def everything(cast: Cast, decision: Decision) -> dict[str, int]:
    """A decided project with one of everything; numbers by the name of the route's argument."""
    walk.set_follow_through(cast)
    walk.advance(cast, ProjectState.FOLLOW_THROUGH)
    walk.set_observers(cast)
    waiver = services.waiver_request(
        actor=cast.lead.as_actor(), project=cast.project, guard="G3", reason="x", scope="y",
        expires_at=timezone.now() + timedelta(days=1),
    )  # fmt: skip
    objection = Objection.objects.create(
        package=decision.package,
        key="conclusion:0",
        line="x",
        rule="G7",
        statement="y",
        raised_by=cast.business,
    )
    condition = decision.conditions.create(text="x", owner=cast.lead, due_on=walk.in_days(3))
    signoff = SignOff.objects.filter(package=decision.package).first()
    assert signoff is not None
    return {
        "project": cast.project.pk, "package": decision.package_id, "waiver": waiver.pk,
        "decision": decision.pk,
        "objection": objection.pk, "condition": condition.pk, "signoff": signoff.pk,
    }  # fmt: skip


#: route, whose number it takes, further arguments, method
API = [
    ("api-conclusion", "project", [], "patch"), ("api-business-result", "project", [], "patch"),
    ("api-signoffs", "package", [], "post"), ("api-signoff-withdraw", "signoff", [], "post"),
    ("api-waivers", "project", [], "post"), ("api-waiver-refuse", "waiver", [], "post"),
    ("api-waiver-revoke", "waiver", [], "post"), ("api-decision", "project", [], "post"),
    ("api-decision-revoke", "decision", [], "post"), ("api-condition-close", "condition", [], "post"),
    ("api-task", "project", ["budget"], "put"), ("api-observation", "project", ["cost"], "put"),
    ("api-readings", "project", ["cost"], "post"), ("api-observation-schedule", "project", [], "put"),
    ("api-objection-answer", "objection", [], "post"), ("api-objection-rule", "objection", [], "post"),
    ("api-advance", "project", [], "post"), ("api-cancel", "project", [], "post"),
    ("api-members", "project", [], "post"), ("api-tokens", "project", [], "post"),
    ("api-affected", "project", [], "post"), ("api-scenarios", "project", [], "post"),
    ("api-review-policy", None, [], "patch"),
]  # fmt: skip
PAGES = [
    ("reviews:conclusion", "project", []), ("reviews:business_result", "project", []),
    ("reviews:sign", "package", ["business"]), ("reviews:withdraw", "signoff", []),
    ("reviews:waivers", "project", []), ("reviews:waiver_act", "waiver", ["refuse"]),
    ("reviews:decision", "project", []), ("reviews:decision_revoke", "decision", []),
    ("reviews:condition_close", "condition", []), ("reviews:task_set", "project", ["budget"]),
    ("reviews:observer_set", "project", ["cost"]), ("reviews:reading", "project", ["cost"]),
    ("reviews:schedule", "project", []), ("reviews:objection_answer", "objection", []),
    ("reviews:objection_rule", "objection", []), ("reviews:policy", None, []),
]  # fmt: skip


def test_a_viewer_with_nonsense_is_refused_for_the_right(
    cast: Cast,
    everything: dict[str, int],
    api_as: Callable[..., APIClient],
    page_as: Callable[[User], Client],
) -> None:
    assert Observation.objects.count() == 3
    client, wrong = api_as(cast.viewer), []
    for name, whose, more, method in API:
        url = reverse(name, args=[*([everything[whose]] if whose else []), *more])
        for body in ({}, {"nonsense": True}, []):
            status = getattr(client, method)(url, body).status_code
            if status != 403:
                wrong.append((name, body, status))
    browser = page_as(cast.viewer)
    for name, whose, more in PAGES:
        url = reverse(name, args=[*([everything[whose]] if whose else []), *more])
        status = browser.post(url, {}).status_code
        if status != 403:
            wrong.append((name, {}, status))
    assert wrong == []


def test_those_with_the_right_hear_what_is_wrong(
    cast: Cast, everything: dict[str, int], api_as: Callable[..., APIClient]
) -> None:
    url = reverse("api-waivers", args=[cast.project.pk])
    assert api_as(cast.lead).post(url, {}).status_code == 400
    assert api_as(cast.lead).put(reverse("api-task", args=[cast.project.pk, "budget"]), {}).status_code == 428
