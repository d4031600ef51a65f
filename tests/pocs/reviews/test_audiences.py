"""The views of the audiences: every question asked once at least, answered with its place or plainly not."""

import re
from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from pocs.people.models import User
from pocs.projects.models import Project
from pocs.reviews import services
from pocs.reviews.audiences.answering import ANSWERS, PLACES, audience_view
from pocs.reviews.audiences.questions import QUESTIONS, VIEWS, Audience
from pocs.reviews.models import Decision
from pocs.runs.models import Experiment
from tests.factories import Cast, make_scenario_version, make_target
from tests.pocs.reviews import walk

ALL = [f"Q{number}" for number in range(1, 29)]
#: what only an experiment, a stated supplier or the project's own page of facts can answer
OPEN_AT_THE_END = {"Q5", "Q23", "Q28"}


def test_every_question_is_asked_answered_and_has_its_place() -> None:
    assert list(QUESTIONS) == ALL
    assert list(ANSWERS) == ALL
    assert list(PLACES) == ALL
    assert {code for view in VIEWS.values() for code in view.questions} == set(ALL)
    assert set(VIEWS) == set(Audience)


def test_an_empty_project_answers_nothing_and_says_where(cast: Cast, page_as: Callable[..., Client]) -> None:
    for audience in Audience:
        view = audience_view(cast.project, audience)
        assert view.open == view.answers, audience
    shown = page_as(cast.viewer).get(reverse("reviews:audience", args=[cast.project.pk, "procurement"]))
    text = shown.content.decode()
    assert text.count("Not answered.") == len(VIEWS[Audience.PROCUREMENT].questions)
    for code in VIEWS[Audience.PROCUREMENT].questions:
        assert reverse(PLACES[code], args=[cast.project.pk]) in text


def test_what_a_decided_project_answers(cast: Cast, decision: Decision) -> None:
    """Each question has lines with a link; what nobody stated stays open."""
    walk.set_follow_through(cast)
    walk.set_observers(cast)
    views = [audience_view(cast.project, audience) for audience in reversed(Audience)]
    answers = {answer.code: answer for view in views for answer in view.answers}  # in the field's words
    assert {code for code, answer in answers.items() if not answer.answered} == OPEN_AT_THE_END
    assert all(line.url for answer in answers.values() for line in answer.lines)
    assert str(cast.decision_maker) in answers["Q18"].lines[0].text
    assert [line.text for line in answers["Q25"].lines] == ["Legal advice."]
    assert answers["Q22"].lines[-1].text.startswith(f"SHA-256 {decision.package.digest[:16]}")


def test_an_experiment_and_the_project_s_details_answer_the_rest(cast: Cast) -> None:
    """Q5, Q23 and Q28, which no step of the way asks for."""
    Project.objects.filter(pk=cast.project.pk).update(
        supplier="Vendor: the engine",
        budget_basis="By tokens",
        responsibility_boundary="To the API",
    )
    version = make_scenario_version(cast.project)
    target = make_target(cast.project)
    services.business_result_save(
        actor=cast.contributor.as_actor(), project=cast.project, version=0, cost_before="9", cost_after="4"
    )
    outputs = {"verdict": "changed", "identical": 3, "pairs": 4, "baseline_share": 1.0}
    Experiment.objects.create(
        project=cast.project, number=1, name="int8", scenario_version=version, candidate_version=version,
        baseline_target=target, candidate_target=target, declared_change="target.dtype", repeats=2,
        state="complete", result={"metrics": [], "outputs": outputs}, started_by=cast.lead,
    )  # fmt: skip
    cast.project.refresh_from_db()
    views = [audience_view(cast.project, audience) for audience in Audience]
    answers = {answer.code: answer for view in views for answer in view.answers}
    assert {code for code, answer in answers.items() if answer.answered} >= OPEN_AT_THE_END
    harm = answers["Q5"].lines
    assert harm[-1].text.startswith("The answers changed: 3 of 4")
    assert harm[-1].url == reverse("runs:experiment", args=[cast.project.pk, 1])
    assert [line.text for line in answers["Q3"].lines] == [
        "Operating cost before: 9; after: 4",
        "Budget basis: By tokens",
    ]
    assert answers["Q28"].lines[0].text == "Responsibility boundary: To the API"


def test_the_business_reads_of_waiting_and_never_of_a_mean(cast: Cast, decision: Decision) -> None:
    view = audience_view(cast.project, Audience.BUSINESS)
    question = next(answer for answer in view.answers if answer.code == "Q1")
    assert question.question == "How long do our users wait?"
    text = question.lines[0].text
    assert "half of the requests" in text
    assert "slowest 5 %" in text
    assert re.search(r"Failed: 0\.00 % of \d+\.$", text), "attempted requests are a number"
    assert "prefill" not in text.lower()
    assert "mean" not in text.lower()


def test_answers_are_those_of_the_package(cast: Cast, decision: Decision) -> None:
    """What is edited after the freeze changes no answer; the reader is told of which package they read."""
    services.conclusion_save(
        actor=cast.contributor.as_actor(), project=cast.project, version=1, release_in_time="Edited since."
    )
    view = audience_view(cast.project, Audience.TECHNICAL_LEAD)
    released = next(answer for answer in view.answers if answer.code == "Q6")
    assert [line.text for line in released.lines] == ["release_in_time: stated."]


@pytest.mark.parametrize(("who", "status"), [("viewer", 200), ("auditor", 200), ("outsider", 404)])
def test_who_reads_a_view(
    cast: Cast, api_as: Callable[[User], Client], page_as: Callable[[User], Client], who: str, status: int
) -> None:
    person = getattr(cast, who)
    page = page_as(person).get(reverse("reviews:audience", args=[cast.project.pk, "platform-team"]))
    assert page.status_code == status
    answer = api_as(person).get(reverse("api-audience", args=[cast.project.pk, "platform-team"]))
    assert answer.status_code == status
    if status == 200:
        body = answer.json()
        assert body["package"] is None
        assert {"code": "Q12", "answered": False}.items() <= body["answers"][0].items()


def test_an_unknown_audience_is_not_there(cast: Cast, api_as: Callable[[User], Client]) -> None:
    answer = api_as(cast.viewer).get(reverse("api-audience", args=[cast.project.pk, "score"]))
    assert answer.status_code == 404
