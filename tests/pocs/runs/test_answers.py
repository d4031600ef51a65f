"""Samples of answers: drawn by a seed, judged by the business, bound into the package."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from pocs.common.errors import Conflict, InvalidInput, NotPermitted, StaleVersion
from pocs.common.models import AuditEntry
from pocs.people.models import User
from pocs.reviews.manifest import manifest_of
from pocs.runs import services
from pocs.runs.choices import AnswerVerdict
from pocs.runs.models import RequestRecord, Run, SampledAnswer
from tests.factories import Cast, make_run, make_scenario_version


def answered(cast: Cast, slug: str, count: int = 12) -> Run:
    """A counting run whose requests have prompts and answers."""
    run = make_run(cast.project, scenario_version=make_scenario_version(cast.project, slug))
    run.requests.all().delete()
    RequestRecord.objects.bulk_create(
        RequestRecord(
            run=run,
            index=index,
            request_id=f"r{index}",
            outcome="success",
            text=f"answer {index}",
            detail={"prompt": f"<prompt {index}>"},
        )
        for index in range(count)
    )
    return run


def draw(cast: Cast, **fields: Any) -> list[SampledAnswer]:
    sample = services.answer_sample_draw(actor=cast.lead.as_actor(), project=cast.project, **fields)
    return list(sample.answers.all())


def test_a_seed_draws_the_same_answers_of_each_scenario(cast: Cast) -> None:
    answered(cast, "short")
    answered(cast, "long")
    first = draw(cast, seed="s", per_scenario=3)
    again = draw(cast, seed="s", per_scenario=3)
    other = draw(cast, seed="t", per_scenario=3)

    def places(found: list[SampledAnswer]) -> list[tuple[int, int]]:
        return [(answer.run_id, answer.request_index) for answer in found]

    assert places(first) == places(again) != places(other)
    assert len(first) == 6
    assert len({answer.run_id for answer in first}) == 2
    assert first[0].prompt.startswith("<prompt")


def test_without_answers_there_is_no_sample(cast: Cast) -> None:
    with pytest.raises(Conflict, match="run the matrix first"):
        draw(cast)
    answered(cast, "short")
    with pytest.raises(InvalidInput):
        draw(cast, per_scenario=0)


def judge(cast: Cast, answer: SampledAnswer, **fields: Any) -> SampledAnswer:
    call: dict[str, Any] = {"verdict": AnswerVerdict.ACCEPTED, "version": answer.version} | fields
    who = call.pop("who", cast.business)
    return services.answer_judge(actor=who.as_actor(), answer=answer, **call)


def test_a_refusal_needs_its_reason_and_both_are_audited(cast: Cast) -> None:
    answered(cast, "short")
    one, other, *_rest = draw(cast)
    with pytest.raises(InvalidInput, match="needs its reason"):
        judge(cast, one, verdict=AnswerVerdict.REFUSED, reason=" ")
    judge(cast, one, verdict=AnswerVerdict.REFUSED, reason="invents an invoice")
    judge(cast, other)
    with pytest.raises(StaleVersion):
        judge(cast, one)
    verbs = list(AuditEntry.objects.filter(object_type="runs.sampledanswer").values_list("verb", flat=True))
    assert verbs == ["answer.refused", "answer.accepted"]
    one.refresh_from_db()
    assert (one.verdict, one.reason, one.judged_by) == ("refused", "invents an invoice", cast.business)


def test_who_measured_does_not_judge(cast: Cast) -> None:
    answered(cast, "short")
    answer = draw(cast)[0]
    for who in (cast.contributor, cast.lead, cast.viewer):
        with pytest.raises(NotPermitted):
            judge(cast, answer, who=who)


def test_only_the_newest_sample_is_judged(cast: Cast) -> None:
    answered(cast, "short")
    old = draw(cast)[0]
    draw(cast)
    with pytest.raises(Conflict, match="no longer the newest"):
        judge(cast, old)


def test_the_package_holds_what_was_said(cast: Cast) -> None:
    assert "answers" not in manifest_of(cast.project, 1)
    answered(cast, "short")
    answer = draw(cast, per_scenario=1)[0]
    judge(cast, answer, verdict=AnswerVerdict.REFUSED, reason="wrong unit")
    held = manifest_of(cast.project, 1)["answers"]
    assert [(entry["verdict"], entry["reason"]) for entry in held] == [("refused", "wrong unit")]


def test_the_page_of_the_business_reviewer(cast: Cast, page_as: Callable[[User], Client]) -> None:
    answered(cast, "short")
    path = f"/projects/{cast.project.pk}/answers/"
    assert page_as(cast.outsider).get(path).status_code == 404
    lead, signer = page_as(cast.lead), page_as(cast.business)
    assert lead.post(path + "draw/", {"per_scenario": 2, "seed": "x"}).status_code == 302
    assert b'name="accept"' not in lead.get(path).content
    page = signer.get(path).content.decode()
    assert "&lt;prompt" in page
    assert page.count('name="accept"') == 2
    answer = SampledAnswer.objects.first()
    assert answer is not None
    url, prefix = f"/answers/{answer.pk}/judge/", f"a{answer.pk}"
    typed = {f"{prefix}-version": answer.version, f"{prefix}-reason": ""}
    refused = signer.post(url, typed | {"refuse": "1"})
    assert refused.status_code == 400
    assert b"A refusal needs its reason." in refused.content
    assert signer.post(url, typed | {"accept": "1"}).status_code == 302
    assert b"1 accepted, 0 refused, 1 open" in signer.get(path).content
    assert lead.post(url, typed | {"accept": "1"}).status_code == 403
    assert page_as(cast.outsider).post(url, typed | {"accept": "1"}).status_code == 404
    assert b"1 accepted, 0 refused, 1 open" in lead.get(f"/projects/{cast.project.pk}/").content
