"""The pages of runs: what they show, to whom, and what happens to a cancelled one."""

import json
from collections.abc import Callable
from html.parser import HTMLParser

import pytest
from django.test import Client
from django.urls import reverse

from pocs.people.models import User
from pocs.projects.models import Project
from pocs.runs.choices import RunState, Validity
from pocs.runs.models import Run
from tests.factories import Cast, make_request_record, make_run, make_scenario_version

PageAs = Callable[[User], Client]


def drawing_in(html: str) -> dict:
    """The JSON that the page hands to its script."""

    class Finder(HTMLParser):
        inside = False
        text = ""

        def handle_starttag(self, tag: str, attributes: list) -> None:
            self.inside = tag == "script" and ("id", "run-drawing") in attributes

        def handle_data(self, data: str) -> None:
            if self.inside:
                self.text += data

        def handle_endtag(self, tag: str) -> None:
            self.inside = False

    finder = Finder()
    finder.feed(html)
    return json.loads(finder.text)


@pytest.mark.parametrize("name", ["detail", "requests", "request"])
def test_only_people_of_the_project_see_a_run(cast: Cast, run: Run, page_as: PageAs, name: str) -> None:
    url = reverse(f"runs:{name}", args=[run.pk, 0] if name == "request" else [run.pk])
    assert page_as(cast.viewer).get(url).status_code == 200
    assert page_as(cast.auditor).get(url).status_code == 200
    assert page_as(cast.outsider).get(url).status_code == 404
    assert page_as(cast.bystander).get(url).status_code == 404
    assert Client().get(url).status_code == 302


@pytest.mark.parametrize("name", ["list", "matrix", "targets", "compare"])
def test_only_people_of_the_project_see_its_runs(cast: Cast, run: Run, page_as: PageAs, name: str) -> None:
    url = reverse(f"runs:{name}", args=[cast.project.pk])
    assert page_as(cast.viewer).get(url).status_code == 200
    assert page_as(cast.outsider).get(url).status_code == 404
    assert page_as(cast.bystander).get(url).status_code == 404


def test_an_ended_run_states_percentiles_outcomes_verdict_and_configuration(
    cast: Cast, run: Run, page_as: PageAs
) -> None:
    html = page_as(cast.viewer).get(reverse("runs:detail", args=[run.pk])).content.decode()
    assert "Percentiles by phase" in html
    assert "Time to first token (TTFT)" in html
    assert "thin: fewer than 100 samples" in html
    assert "Most of the time goes into decode" in html
    assert "of attempted" in html
    assert run.configuration_digest in html
    assert html.count('class="timeline-svg') == 4


def test_a_mean_is_never_shown_without_percentiles(cast: Cast, run: Run, page_as: PageAs) -> None:
    run.summary["ttft_ms"] = {"n": 0, "mean": None}
    run.save()
    html = page_as(cast.viewer).get(reverse("runs:detail", args=[run.pk])).content.decode()
    assert ">mean<" in html
    assert html.index(">p50<") < html.index(">mean<")


def test_the_charts_of_an_ended_run_hold_its_samples_and_phases(
    cast: Cast, run: Run, page_as: PageAs
) -> None:
    drawing = drawing_in(page_as(cast.viewer).get(reverse("runs:detail", args=[run.pk])).content.decode())
    assert drawing["live"] is False
    assert [row["at_ms"] for row in drawing["rows"]] == [500.0, 1000.0]
    assert drawing["rows"][0]["memory_rss_bytes"] == 800 * 2**20
    assert {part["row"] for part in drawing["waterfall"]["rows"]} == {0, 1, 2, 3}
    assert {part["phase"] for part in drawing["waterfall"]["rows"]} >= {"queue_wait", "prefill", "decode"}


def test_an_active_run_follows_its_stream_and_can_be_cancelled(
    cast: Cast, project: Project, page_as: PageAs
) -> None:
    run = make_run(project, state=RunState.QUEUED, validity=Validity.PENDING, summary=None, finished_at=None)
    url = reverse("runs:detail", args=[run.pk])
    lead = page_as(cast.lead)
    html = lead.get(url).content.decode()
    drawing = drawing_in(html)
    assert drawing["live"] is True
    assert drawing["stream"] == f"run:{run.pk}"
    assert set(drawing["words"]["final"]) == {"complete", "failed", "cancelled", "interrupted"}
    assert reverse("runs:cancel", args=[run.pk]) in html
    assert reverse("runs:cancel", args=[run.pk]) not in page_as(cast.viewer).get(url).content.decode()

    assert page_as(cast.viewer).post(reverse("runs:cancel", args=[run.pk])).status_code == 403
    answer = lead.post(reverse("runs:cancel", args=[run.pk]), follow=True)
    assert answer.status_code == 200
    assert Run.objects.get(pk=run.pk).state == RunState.CANCELLED
    again = lead.post(reverse("runs:cancel", args=[run.pk]), follow=True).content.decode()
    assert "already ended" in again


def test_a_failed_run_says_why_in_one_sentence(cast: Cast, project: Project, page_as: PageAs) -> None:
    run = make_run(
        project,
        state=RunState.FAILED,
        validity=Validity.INVALID,
        summary=None,
        diagnosis=None,
        error="No GPU <1>.",
    )
    html = page_as(cast.viewer).get(reverse("runs:detail", args=[run.pk])).content.decode()
    assert "No GPU &lt;1&gt;." in html
    assert "Percentiles by phase" not in html


def test_an_invalid_run_says_why_it_does_not_count(cast: Cast, run: Run, page_as: PageAs) -> None:
    run.validity = Validity.INVALID
    run.validity_reasons = [{"code": "dispatched_late", "figures": {"p99_ms": 83.0, "limit_ms": 50.0}}]
    run.save()
    html = page_as(cast.lead).get(reverse("runs:detail", args=[run.pk])).content.decode()
    assert "This run does not count as evidence." in html
    assert "sent requests late" in html
    assert "Attach as runtime evidence" not in html


def test_requests_are_filtered_by_tenant_application_and_outcome(
    cast: Cast, run: Run, page_as: PageAs
) -> None:
    make_request_record(run, 4, request_id="other", tenant="tenant-b", outcome="failed")
    page = page_as(cast.viewer)
    url = reverse("runs:requests", args=[run.pk])
    assert "5 requests" in page.get(url).content.decode()
    html = page.get(url, {"tenant": "tenant-b"}).content.decode()
    assert "1 request<" in html
    assert ">other</a>" in html
    assert (
        "No request matches" in page.get(url, {"tenant": "tenant-b", "outcome": "success"}).content.decode()
    )
    assert page.get(url, {"outcome": "nonsense"}).status_code == 200


def test_the_page_of_a_request_adds_its_intervals_up(cast: Cast, run: Run, page_as: PageAs) -> None:
    answer = page_as(cast.viewer).get(reverse("runs:request", args=[run.pk, 0]))
    html = answer.content.decode()
    assert answer.context["sum_after_sent_ms"] == pytest.approx(answer.context["record"].e2e_ms, abs=1)
    assert "first token" in html
    assert "Answer 0" in html
    assert reverse("runs:request", args=[run.pk, 1]) in html
    assert page_as(cast.viewer).get(reverse("runs:request", args=[run.pk, 99])).status_code == 404


def test_text_of_a_model_is_never_markup(cast: Cast, run: Run, page_as: PageAs) -> None:
    make_request_record(run, 4, request_id="</script><b>", text="<img src=x>")
    html = page_as(cast.viewer).get(reverse("runs:request", args=[run.pk, 4])).content.decode()
    assert "<img" not in html
    html = page_as(cast.viewer).get(reverse("runs:detail", args=[run.pk])).content.decode()
    assert "</script><b>" not in html


def test_the_list_is_filtered_and_says_so_when_nothing_is_left(
    cast: Cast, run: Run, project: Project, page_as: PageAs
) -> None:
    make_run(project, scenario_version=make_scenario_version(project, "long-context"), records=False)
    page = page_as(cast.viewer)
    url = reverse("runs:list", args=[project.pk])
    assert "long-context@" not in page.get(url, {"scenario": "short-request"}).content.decode()
    assert "No run matches" in page.get(url, {"state": "failed"}).content.decode()


def test_without_runs_the_list_says_what_to_do(cast: Cast, page_as: PageAs) -> None:
    html = page_as(cast.lead).get(reverse("runs:list", args=[cast.project.pk])).content.decode()
    assert "Nothing has run yet" in html
    assert reverse("runs:matrix", args=[cast.project.pk]) in html


def test_queries_do_not_grow_with_requests_or_runs(
    cast: Cast, run: Run, project: Project, page_as: PageAs, django_assert_max_num_queries: Callable
) -> None:
    for index in range(4, 40):
        make_request_record(run, index)
    for _ in range(6):
        make_run(project, scenario_version=run.scenario_version, records=False)
    page = page_as(cast.lead)
    for name, limit in {"detail": 15, "requests": 15}.items():
        with django_assert_max_num_queries(limit):
            page.get(reverse(f"runs:{name}", args=[run.pk]))
    for name, limit in {"list": 25, "matrix": 35, "targets": 20, "compare": 15}.items():
        with django_assert_max_num_queries(limit):
            page.get(reverse(f"runs:{name}", args=[project.pk]))
