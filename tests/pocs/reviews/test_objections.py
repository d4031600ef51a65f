"""Objections: anyone cites a line and a rule, the owner answers, a third without a part in it decides."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import override
from rest_framework.test import APIClient

from pocs.common.errors import Conflict, GateNotMet, InvalidInput, NotFound, NotPermitted
from pocs.evidence.choices import EvidenceType
from pocs.evidence.models import Evidence
from pocs.people.models import User
from pocs.people.roles import OrganisationRole
from pocs.projects.choices import ProjectState
from pocs.reviews import services
from pocs.reviews.choices import ObjectionState, PackageState, Slot
from pocs.reviews.citations import citations_of, line_in_words
from pocs.reviews.inbox import inbox_of
from pocs.reviews.models import Objection, Package
from tests.factories import Cast, make_ci_token, make_user
from tests.pocs.reviews import walk

ByType = dict[EvidenceType, Evidence]


@pytest.fixture
def key(evidence: ByType, package: Package) -> str:
    """The line about errors in the runtime evidence."""
    return f"{evidence[EvidenceType.RUNTIME].pk}:errors"


def object_to(cast: Cast, package: Package, key: str, who: User | None = None, rule: str = "G6") -> Objection:
    actor = (who or cast.viewer).as_actor()
    return services.objection_raise(
        actor=actor, package=package, key=key, rule=rule, statement="No log is named."
    )


def answer(cast: Cast, objection: Objection, who: User | None = None) -> Objection:
    return services.objection_answer(
        actor=(who or cast.contributor).as_actor(), objection=objection, answer="It is in the call log."
    )


def rule(cast: Cast, objection: Objection, *, upheld: bool, who: User | None = None) -> Objection:
    actor = (who or cast.decision_maker).as_actor()
    return services.objection_rule(actor=actor, objection=objection, upheld=upheld, ruling="Seen.")


def test_the_lines_of_a_package_can_be_cited(package: Package, key: str) -> None:
    found = citations_of(package)
    assert found[key].text == "Stated."
    assert found[key].revision is not None
    assert any(name.startswith("conclusion:") for name in found)
    assert any(name.startswith("affected:") for name in found)


def test_nothing_is_approved_until_it_is_dismissed(cast: Cast, package: Package, key: str) -> None:
    objection = object_to(cast, package, key)
    assert (objection.quote, objection.revision is not None) == ("Stated.", True)
    with pytest.raises(GateNotMet) as refused:
        walk.sign(cast, package, Slot.BUSINESS)
    assert [item.code for item in refused.value.missing] == ["objection.undecided"]
    with pytest.raises(Conflict):
        rule(cast, objection, upheld=False)  # nobody has answered
    objection = answer(cast, objection)
    assert rule(cast, objection, upheld=False).state == ObjectionState.DISMISSED
    walk.sign(cast, package)
    assert package.state == PackageState.APPROVED


def test_one_raised_after_the_signatures_blocks_the_decision(cast: Cast, package: Package, key: str) -> None:
    walk.sign(cast, package)
    decision = walk.propose(cast, package)
    objection = object_to(cast, package, key)
    with pytest.raises(GateNotMet):
        services.decision_confirm(actor=cast.decision_maker.as_actor(), decision=decision)
    services.objection_withdraw(actor=cast.viewer.as_actor(), objection=objection)
    services.decision_confirm(actor=cast.decision_maker.as_actor(), decision=decision)
    with pytest.raises(Conflict):
        object_to(cast, package, key)


def test_an_upheld_one_makes_the_package_stale(cast: Cast, package: Package, key: str) -> None:
    walk.sign(cast, package, Slot.BUSINESS)
    other = object_to(cast, package, "conclusion:0", cast.business, "G7")
    objection = answer(cast, object_to(cast, package, key))
    rule(cast, objection, upheld=True)
    for row in (package, cast.project, other):
        row.refresh_from_db()
    assert package.state == PackageState.STALE
    assert package.stale_by["label"] == str(cast.decision_maker)
    assert cast.project.state == ProjectState.EVIDENCE_COMPLETE
    assert other.state == ObjectionState.OVERTAKEN


def test_a_rejection_needs_no_ruling(cast: Cast, package: Package, key: str) -> None:
    object_to(cast, package, key)
    walk.sign(cast, package, Slot.SECURITY, verdict="reject", comment="No audit trail.")
    assert package.state == PackageState.REJECTED
    with pytest.raises(Conflict):
        object_to(cast, package, key)


def test_who_answers_and_who_decides(cast: Cast, package: Package, key: str) -> None:
    for stranger in (cast.bystander, cast.outsider):
        with pytest.raises(NotFound):
            object_to(cast, package, key, stranger)
    objection = object_to(cast, package, key, cast.decision_maker)
    for person in (cast.viewer, cast.reviewer, cast.decision_maker):
        with pytest.raises(NotPermitted):
            answer(cast, objection, person)
    assert len(inbox_of(cast.lead.as_actor()).objections) == 1
    objection = answer(cast, objection, cast.lead)
    # raised it, reviewed the evidence, answered it, has no role for it
    for person in (cast.decision_maker, cast.reviewer, cast.lead, cast.business):
        with pytest.raises(NotPermitted):
            rule(cast, objection, upheld=False, who=person)
    with pytest.raises(NotPermitted):
        services.objection_withdraw(actor=cast.viewer.as_actor(), objection=objection)


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [({"key": "1:nothing"}, "/key"), ({"rule": "G99"}, "/rule"), ({"statement": "  "}, "/statement")],
)
def test_what_an_objection_needs(
    cast: Cast, package: Package, key: str, fields: dict[str, str], pointer: str
) -> None:
    values = {"key": key, "rule": "G6", "statement": "Wrong."} | fields
    with pytest.raises(InvalidInput) as refused:
        services.objection_raise(actor=cast.viewer.as_actor(), package=package, **values)
    assert [error.pointer for error in refused.value.errors] == [pointer]
    object_to(cast, package, key)
    with pytest.raises(Conflict):
        object_to(cast, package, key)


def test_the_policy_keeps_a_window_open(cast: Cast, evidence: ByType) -> None:
    admin = make_user(cast.organisation, "admin", organisation_role=OrganisationRole.ADMIN)
    services.policy_save(actor=admin.as_actor(), objection_days=2)
    package = walk.freeze(cast)
    services.policy_save(actor=admin.as_actor(), objection_days=0)  # not for what is frozen
    walk.sign(cast, package)
    decision = walk.propose(cast, package)
    with pytest.raises(GateNotMet) as refused:
        services.decision_confirm(actor=cast.decision_maker.as_actor(), decision=decision)
    assert "objection.window" in [item.code for item in refused.value.missing]
    from pocs.reviews import database_guards

    database_guards.remove()
    Package.objects.filter(pk=package.pk).update(frozen_at=timezone.now() - timedelta(days=3))
    services.decision_confirm(actor=cast.decision_maker.as_actor(), decision=decision)


def test_over_pages_and_api(
    cast: Cast,
    package: Package,
    key: str,
    api_as: Callable[..., APIClient],
    page_as: Callable[[User], Client],
) -> None:
    api, page = reverse("api-objections", args=[package.pk]), reverse("reviews:package", args=[package.pk])
    body = {"key": key, "rule": "G6", "statement": "No log is named."}
    _, plaintext = make_ci_token(cast.project, sponsor=cast.viewer, scopes=("read",))
    assert api_as(token=plaintext).post(api, body).status_code == 403
    lines = api_as(cast.viewer).get(reverse("api-package-lines", args=[package.pk])).json()["results"]
    assert key in [line["key"] for line in lines]
    assert api_as(cast.viewer).post(api, body | {"rule": "X"}).status_code == 400
    raised = api_as(cast.viewer).post(api, body)
    assert (raised.status_code, raised.json()["quote"]) == (201, "Stated.")
    form = {"object-key": "conclusion:1", "object-rule": "G7", "object-statement": ""}
    url = reverse("reviews:objection_raise", args=[package.pk])
    assert page_as(cast.business).post(url, form).status_code == 400
    assert page_as(cast.business).post(url, form | {"object-statement": "Vague."}).status_code == 302
    assert "Vague." in page_as(cast.lead).get(page).content.decode()

    mine = raised.json()["id"]
    answering = reverse("reviews:objection_answer", args=[mine])
    assert page_as(cast.viewer).post(answering, {f"answer-{mine}-answer": "Mine."}).status_code == 403
    assert page_as(cast.lead).post(answering, {f"answer-{mine}-answer": " "}).status_code == 400
    assert (
        page_as(cast.lead).post(answering, {f"answer-{mine}-answer": "In the call log."}).status_code == 302
    )
    ruling = {"upheld": False, "ruling": "It is."}
    deciding = reverse("api-objection-rule", args=[mine])
    assert api_as(cast.reviewer).post(deciding, ruling).status_code == 403
    assert api_as(cast.decision_maker).post(deciding, ruling | {"ruling": ""}).status_code == 400
    assert api_as(cast.decision_maker).post(deciding, ruling).json()["state"] == "dismissed"
    assert api_as(cast.decision_maker).post(deciding, ruling).status_code == 409
    theirs = Objection.objects.get(state=ObjectionState.OPEN).pk
    assert (
        page_as(cast.business).post(reverse("reviews:objection_withdraw", args=[theirs])).status_code == 302
    )


def test_a_cited_line_is_named_in_the_readers_language(cast: Cast, package: Package, key: str) -> None:
    of_evidence = object_to(cast, package, key)
    of_project = object_to(cast, package, "conclusion:0", rule="G7")
    assert line_in_words(of_evidence) == of_evidence.line
    assert line_in_words(of_project) == of_project.line
    with override("zh-hans"):
        assert line_in_words(of_evidence).startswith("运行证据（E2） · runtime of the pilot · ")
        assert "Conclusion" not in line_in_words(of_project)
