"""The playground: who may open it and ask from it, its stream with phases, and saving a request."""

import json
from collections.abc import Callable
from typing import Any

import httpx2 as httpx
import pytest
from django.conf import settings
from django.test import Client

from pocs.people.models import User
from pocs.projects.models import Project, Scenario
from pocs.runs.models import Target
from pocs.serving.limits import limits
from tests.factories import Cast
from tests.pocs.serving.conftest import Site
from tests.pocs.serving.fakes import ANSWER, FakeEngine

PageAs = Callable[[User], Client]
TOKEN = "t" * 32


def body(**changed: Any) -> dict[str, Any]:
    hello = [{"role": "user", "content": "Hello"}]
    return {"model": "small-model", "stream": True, "metrics": True, "messages": hello} | changed


def ask(site: Site, client: Client | None, project: Project, *, token: str = TOKEN) -> httpx.Response:
    """One question by the session of `client`, as the page's script sends it."""
    cookies = {settings.CSRF_COOKIE_NAME: TOKEN}
    if client is not None:
        cookies[settings.SESSION_COOKIE_NAME] = client.cookies[settings.SESSION_COOKIE_NAME].value
    headers = {
        "X-CSRFToken": token,
        "Cookie": "; ".join(f"{name}={value}" for name, value in cookies.items()),
    }
    url = f"{site.base_url.removesuffix('/v1')}/projects/{project.pk}/playground/answer/"
    return httpx.post(url, json=body(), headers=headers, timeout=20, trust_env=False)


def url(project: Project) -> str:
    return f"/projects/{project.pk}/playground/"


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("desk")
def test_an_answer_tells_its_phases_and_only_those_with_the_right_get_one(
    site: Site, cast: Cast, target: Target, page_as: PageAs, engine: FakeEngine
) -> None:
    answer = ask(site, page_as(cast.contributor), cast.project)
    assert answer.status_code == 200
    events = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: {")]
    phases = [event["phase"] for event in events if event["object"] == "phasegate.phase"]
    assert [phase for phase in phases if phase != "waiting"] == ["taken", "queued", *["text"] * 6, "end"]
    pieces = [event["choices"][0]["delta"].get("content") or "" for event in events if event.get("choices")]
    assert "".join(pieces) == "".join(ANSWER)
    assert events[-1]["metrics"]["prefill_ms"] == pytest.approx(2.0)

    assert ask(site, None, cast.project).status_code == 401
    forged = ask(site, page_as(cast.contributor), cast.project, token="f" * 32)
    assert (forged.status_code, forged.json()["error"]["code"]) == (403, "csrf_failed")
    assert ask(site, page_as(cast.viewer), cast.project).status_code == 403
    assert ask(site, page_as(cast.outsider), cast.project).status_code == 404
    assert ask(site, page_as(cast.bystander), cast.project).status_code == 404
    assert len(engine.requests) == 1
    assert limits().token_open > 1


def test_the_page_and_its_cast(cast: Cast, target: Target, page_as: PageAs) -> None:
    page = page_as(cast.lead).get(url(cast.project)).content.decode()
    assert '<option value="small-model">' in page
    assert page_as(cast.viewer).get(url(cast.project)).status_code == 403
    assert page_as(cast.outsider).get(url(cast.project)).status_code == 404
    assert page_as(cast.viewer).post(url(cast.project), {"prompt": "x"}).status_code == 403


def test_a_request_becomes_a_scenario_and_joins_another(cast: Cast, target: Target, page_as: PageAs) -> None:
    client = page_as(cast.contributor)
    given = {
        "prompt": "Reset my password",
        "name": "From the desk",
        "kind": "short_request",
        "input_tokens": "12",
        "output_tokens": "40",
        "temperature": "0",
        "seed": "7",
    }
    wrong = client.post(url(cast.project), given | {"name": ""})
    assert wrong.status_code == 400
    assert "Reset my password" in wrong.content.decode()
    made = client.post(url(cast.project), given)
    assert made.headers["Location"].endswith("/scenarios/from-the-desk/edit/")
    scenario = Scenario.objects.get(project=cast.project)
    client.post(url(cast.project), {"scenario": scenario.slug, "prompt": "Unlock my account"})
    again = client.post(url(cast.project), {"scenario": scenario.slug, "prompt": "Unlock my account"})
    assert again.status_code == 400
    first, second = scenario.versions.order_by("number")
    assert first.spec["prompts"] == ["Reset my password"]
    assert second.spec["prompts"] == ["Reset my password", "Unlock my account"]
    assert (first.spec["seed"], second.state) == (7, "draft")
