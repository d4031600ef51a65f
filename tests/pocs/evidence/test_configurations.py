"""Configurations that runs recorded, texts compared word by word, evidence for readiness points."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from pocs.common.errors import Conflict, InvalidInput, NotPermitted
from pocs.evidence import services
from pocs.evidence.configurations import configurations_of, previous_configuration
from pocs.evidence.difference import Change, text_difference
from pocs.evidence.models import ReadinessSupport
from pocs.people.models import User
from pocs.projects.choices import ProjectState
from pocs.runs.models import Run
from tests.factories import Cast, make_run

Make = Callable[..., Any]
As = Callable[[User], Client]


def run_with(cast: Cast, dtype: str, digest: str) -> Run:
    configuration = {"engine": {"dtype": dtype}, "versions": {"torch": "2"}}
    return make_run(cast.project, configuration=configuration, configuration_digest=digest * 64)


def test_each_configuration_is_compared_with_the_one_before(cast: Cast, make_evidence: Make) -> None:
    one, two = run_with(cast, "float32", "a"), run_with(cast, "float32", "a")
    three = run_with(cast, "bfloat16", "b")
    make_run(cast.project, state="failed", validity="invalid", configuration_digest="f" * 64)
    body = services.configuration_from_run(three)
    evidence = make_evidence("configuration", body=body)
    newest, oldest = configurations_of(cast.project)[:2]
    assert (newest.first, newest.runs) == (three, 1)
    changes = {change.label: (change.before, change.after) for change in newest.changes}
    assert changes["Engine or service settings · dtype"] == ("float32", "bfloat16")
    assert [revision.evidence for revision in newest.revisions] == [evidence]
    assert (oldest.first, oldest.last_number, oldest.runs) == (one, two.number, 2)
    assert previous_configuration(three) == two


def test_the_page_and_the_api(cast: Cast, page_as: As, api_as: Callable[..., APIClient], run: Run) -> None:
    run_with(cast, "bfloat16", "b")
    url = reverse("evidence:configurations", args=[cast.project.pk])
    page = page_as(cast.contributor).get(url).content.decode()
    assert "Write evidence of it" in page
    assert page_as(cast.outsider).get(url).status_code == 404
    rows = api_as(cast.viewer).get(reverse("api-configurations", args=[cast.project.pk])).json()
    assert [row["first_run"] for row in rows] == [2, 1]
    assert api_as(cast.outsider).get(reverse("api-configurations", args=[cast.project.pk])).status_code == 404


def test_the_form_compares_what_it_captures(cast: Cast, page_as: As, run: Run) -> None:
    other = run_with(cast, "bfloat16", "b")
    url = reverse("evidence:create", args=[cast.project.pk, "configuration"])
    page = page_as(cast.contributor).get(url, {"run": other.pk}).content.decode()
    assert f"Compared with the configuration before, of run {run}" in page


def test_a_text_is_compared_by_words() -> None:
    pieces = text_difference("TTFT p95 is 820 ms at 16.", "TTFT p95 is 640 ms at 16.")
    assert [(piece.kind, piece.text) for piece in pieces] == [
        ("same", "TTFT p95 is "),
        ("removed", "820"),
        ("added", "640"),
        ("same", " ms at 16."),
    ]


def test_chinese_is_compared_by_characters() -> None:
    pieces = text_difference("长上下文排队。", "长上下文不排队。")
    assert [(piece.kind, piece.text) for piece in pieces] == [
        ("same", "长上下文"),
        ("added", "不"),
        ("same", "排队。"),
    ]


@pytest.mark.parametrize("unit", ["，", "词 ", "a b. ", "行\n"])
def test_a_long_text_is_compared_in_bounded_time_and_completely(unit: str) -> None:
    before, after = unit * 5000, "新" + unit * 4000 + "尾"
    pieces = text_difference(before, after)
    assert "".join(piece.text for piece in pieces if piece.kind != "added") == before
    assert "".join(piece.text for piece in pieces if piece.kind != "removed") == after


def test_short_values_and_other_texts_stand_side_by_side() -> None:
    assert Change("changed", "dtype", "float32", "bfloat16").pieces == []
    assert (
        Change("changed", "Conclusion", "Usable for the help desk only.", "Nein, gar nicht mehr.").pieces
        == []
    )
    assert Change(
        "changed", "Conclusion", "Usable for the help desk only.", "Usable for the help desk."
    ).pieces


def test_the_difference_over_the_api(
    cast: Cast, api_as: Callable[..., APIClient], submitted: Make, body_of: Make
) -> None:
    revision = submitted()
    body = body_of("retrospective") | {"degradation": "Long contexts queue for a second."}
    newer = services.revision_edit(
        actor=cast.contributor.as_actor(), evidence=revision.evidence, version=2, body=body, runs=[]
    )
    rows = api_as(cast.viewer).get(reverse("api-revision-difference", args=[newer.pk])).json()
    assert [row["label"] for row in rows] == ["Degradation"]
    assert any(piece["kind"] == "added" for piece in rows[0]["pieces"])
    assert api_as(cast.outsider).get(reverse("api-revision-difference", args=[newer.pk])).status_code == 404


def test_evidence_is_named_for_a_readiness_point(
    cast: Cast, make_evidence: Make, page_as: As, api_as: Callable[..., APIClient]
) -> None:
    first, second = make_evidence(), make_evidence(title="Rollback rehearsal")
    url = reverse("evidence:readiness", args=[cast.project.pk, "rollback"])
    client = page_as(cast.contributor)
    assert client.post(url, {"evidence": [second.pk]}).status_code == 302
    page = client.get(reverse("projects:readiness", args=[cast.project.pk])).content.decode()
    assert "Rollback rehearsal" in page
    api = api_as(cast.contributor)
    point = reverse("api-readiness-evidence", args=[cast.project.pk, "rollback"])
    assert api.get(point).json() == {"evidence": [second.pk]}
    assert api.put(point, {"evidence": [first.pk]}).json() == {"evidence": [first.pk]}
    assert api.put(point, {"evidence": [10**9]}).json()["errors"][0]["pointer"] == "/evidence/0"
    assert api_as(cast.viewer).put(point, {"evidence": []}).status_code == 403
    assert api_as(cast.outsider).put(point, {"evidence": []}).status_code == 404
    assert page_as(cast.viewer).get(url).status_code == 403
    assert client.get(reverse("evidence:readiness", args=[cast.project.pk, "luck"])).status_code == 404
    assert ReadinessSupport.objects.get().evidence == first


def test_readiness_support_is_guarded(cast: Cast, make_evidence: Make) -> None:
    evidence = make_evidence()
    given: dict[str, Any] = {"project": cast.project, "kind": "logs", "evidence": [evidence]}
    with pytest.raises(NotPermitted):
        services.readiness_support_set(actor=cast.viewer.as_actor(), **given)
    with pytest.raises(InvalidInput):
        services.readiness_support_set(actor=cast.lead.as_actor(), **(given | {"kind": "luck"}))
    cast.project.state = ProjectState.CANCELLED
    cast.project.save()
    with pytest.raises(Conflict):
        services.readiness_support_set(actor=cast.lead.as_actor(), **given)
