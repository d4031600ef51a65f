"""The matrix pages: the grid, what it lacks, starting, following and cancelling an execution."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import translation

from pocs.people.models import User
from pocs.projects.choices import ScenarioKind, ScenarioState
from pocs.projects.models import Project
from pocs.runs.choices import RunState
from pocs.runs.models import MatrixExecution, Run
from pocs.runs.ui.grid import Column, grid_of, name_and_code
from tests.factories import Cast, make_run, make_scenario_version, make_target

PageAs = Callable[[User], Client]


@pytest.fixture(autouse=True)
def _no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs stay queued: nothing is executed by these tests."""
    monkeypatch.setattr("pocs.runs.services.running.enqueue", lambda run: None)


@pytest.fixture
def planned(project: Project) -> Project:
    """Two approved scenarios, the first with a run that counts, and a target."""
    make_target(project, name="engine")
    short = make_scenario_version(project, "short", input_tokens=32, output_tokens=16, concurrency=2)
    make_scenario_version(
        project, "long", kind=ScenarioKind.LONG_CONTEXT, input_tokens=512, output_tokens=16, concurrency=1
    )
    make_run(project, scenario_version=short)
    return project


def test_the_grid_has_a_run_or_says_missing(planned: Project) -> None:
    grid = grid_of(planned)
    assert grid.columns == [Column(32, 16, 2), Column(512, 16, 1)]
    assert [kind for kind, _cells in grid.rows] == [ScenarioKind.SHORT_REQUEST, ScenarioKind.LONG_CONTEXT]
    short, long = (cells for _kind, cells in grid.rows)
    assert short[0].counting is not None
    assert not short[1].planned
    assert long[1].planned
    assert long[1].counting is None
    assert (grid.covered, grid.planned) == (1, 2)


def test_a_run_that_does_not_count_is_shown_and_covers_nothing(planned: Project) -> None:
    version = planned.scenarios.get(slug="long").versions.get()
    make_run(planned, scenario_version=version, state=RunState.FAILED, records=False)
    grid = grid_of(planned)
    assert grid.rows[1][1][1].latest is not None
    assert grid.covered == 1


def test_the_page_says_what_the_matrix_lacks(cast: Cast, planned: Project, page_as: PageAs) -> None:
    html = page_as(cast.viewer).get(reverse("runs:matrix", args=[planned.pk])).content.decode()
    assert "at least one interruption (S11)" in html
    assert "missing" in html
    assert "1 of 2 cells" in html
    assert 'action="/projects' not in html  # a viewer starts nothing


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_each_kind_has_its_code_in_both_languages(language: str) -> None:
    with translation.override(language):
        found = [name_and_code(kind) for kind in ScenarioKind]
    with translation.override("en"):
        labels = [str(kind.label) for kind in ScenarioKind]
    assert [code for _name, code in found] == [label.rstrip(")").rpartition("(")[2] for label in labels]
    assert all(name and name[-1] not in " (（" for name, _code in found)


def test_the_matrix_page_opens_in_chinese(cast: Cast, planned: Project, page_as: PageAs) -> None:
    page = page_as(cast.lead)
    page.cookies["django_language"] = "zh-hans"
    answer = page.get(reverse("runs:matrix", args=[planned.pk]))
    assert answer.status_code == 200
    assert "<b>S1</b> 短请求" in answer.content.decode()


def test_the_matrix_is_started_followed_and_cancelled(cast: Cast, planned: Project, page_as: PageAs) -> None:
    lead = page_as(cast.lead)
    target = planned.targets.get(name="engine")
    answer = lead.post(reverse("runs:matrix_start", args=[planned.pk]), {"target": target.pk})
    matrix = MatrixExecution.objects.get(project=planned)
    detail = reverse("runs:matrix_detail", args=[planned.pk, matrix.number])
    assert answer.url == detail
    html = lead.get(detail).content.decode()
    assert f'"stream": "matrix:{matrix.pk}"' in html
    assert html.count("data-run=") == 2
    assert "Cancel what is left" in html

    lead.post(reverse("runs:matrix_cancel", args=[planned.pk, matrix.number]))
    assert set(matrix.runs.values_list("state", flat=True)) == {RunState.CANCELLED}
    assert page_as(cast.outsider).get(detail).status_code == 404


def test_who_may_not_execute_starts_no_matrix(cast: Cast, planned: Project, page_as: PageAs) -> None:
    target = planned.targets.get(name="engine")
    for person, status in ((cast.viewer, 403), (cast.outsider, 404)):
        answer = page_as(person).post(reverse("runs:matrix_start", args=[planned.pk]), {"target": target.pk})
        assert answer.status_code == status
    assert not MatrixExecution.objects.exists()


def test_a_refused_start_keeps_the_page_and_says_why(cast: Cast, project: Project, page_as: PageAs) -> None:
    target = make_target(project)
    answer = page_as(cast.lead).post(reverse("runs:matrix_start", args=[project.pk]), {"target": target.pk})
    assert answer.status_code == 409
    assert "no approved scenario yet" in answer.content.decode()
    foreign = make_target(cast.outsider.project_roles.get().project)
    answer = page_as(cast.lead).post(reverse("runs:matrix_start", args=[project.pk]), {"target": foreign.pk})
    assert answer.status_code == 400


def test_a_single_scenario_is_started(cast: Cast, planned: Project, page_as: PageAs) -> None:
    version = planned.scenarios.get(slug="long").versions.get()
    target = planned.targets.get(name="engine")
    url = reverse("runs:start", args=[planned.pk])
    lead = page_as(cast.lead)
    assert "long@1" in lead.get(url).content.decode()
    answer = lead.post(url, {"scenario_version": version.pk, "target": target.pk, "tenant": "retail"})
    run = Run.objects.get(state=RunState.QUEUED)
    assert answer.url == reverse("runs:detail", args=[run.pk])
    assert run.tenant == "retail"
    assert page_as(cast.viewer).get(url).status_code == 403


def test_only_approved_versions_are_offered(cast: Cast, planned: Project, page_as: PageAs) -> None:
    draft = make_scenario_version(planned, "draft-only", state=ScenarioState.DRAFT)
    url = reverse("runs:start", args=[planned.pk])
    lead = page_as(cast.lead)
    assert "draft-only" not in lead.get(url).content.decode()
    answer = lead.post(url, {"scenario_version": draft.pk, "target": planned.targets.get(name="engine").pk})
    assert answer.status_code == 400
    assert not Run.objects.filter(scenario_version=draft).exists()


def test_the_project_page_has_both_sections(cast: Cast, planned: Project) -> None:
    from pocs.projects.ui.sections import sections

    found = {section.key: section for section in sections()}
    assert {"matrix", "runs"} <= found.keys()
    actor = cast.viewer.as_actor()
    assert found["matrix"].context(planned, actor)["grid"].covered == 1
    assert len(found["runs"].context(planned, actor)["recent"]) == 1
