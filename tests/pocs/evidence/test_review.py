"""The review methods as queries, the difference of revisions, and the gates G5 and G6."""

from collections.abc import Callable
from typing import Any

import pytest
from django.urls import reverse

from pocs.evidence import services
from pocs.evidence.choices import EvidenceType
from pocs.evidence.difference import changes_between
from pocs.evidence.gates import evidence_reviewed, review_methods_pass
from pocs.evidence.models import EvidenceRevision
from pocs.evidence.runtime import populations
from pocs.evidence.selectors import review_rows
from pocs.people.models import User
from pocs.projects.choices import ProjectState
from pocs.projects.gates import gates, missing_before
from pocs.reviews import database_guards
from pocs.runs.choices import Outcome, Validity
from pocs.runs.models import Run
from tests.factories import Cast, make_request_record, make_run
from tests.pocs.evidence.test_services import edit

Make = Callable[..., Any]


def two_populations(cast: Cast) -> Run:
    """Tenant a: 3 successes and a failure, tenant b: one success, and a warm-up request."""
    run = make_run(cast.project, records=False, tenant="", application="")
    for index, ttft_ms in enumerate((10.0, 20.0, 30.0)):
        make_request_record(run, index, tenant="a", application="chat", ttft_ms=ttft_ms)
    make_request_record(run, 3, tenant="a", application="chat", outcome=Outcome.FAILED, ttft_ms=900.0)
    make_request_record(run, 4, tenant="a", application="chat", outcome=Outcome.CANCELLED, ttft_ms=None)
    make_request_record(run, 5, tenant="b", application="", ttft_ms=40.0)
    make_request_record(run, 6, tenant="a", application="chat", ttft_ms=5000.0, warmup=True)
    return run


def test_runtime_rows_are_grouped_by_tenant_and_application(cast: Cast) -> None:
    run = two_populations(cast)
    first, second = populations([run])
    assert (first.tenant, first.application, first.runs) == ("a", "chat", (run.number,))
    assert (first.attempted, first.succeeded, first.errors, first.error_rate) == (5, 3, 1, 0.2)
    assert (first.ttft_ms["n"], first.ttft_ms["p50"], first.ttft_ms["p95"]) == (3, 20.0, 29.0)
    assert (second.tenant, second.application, second.ttft_ms["p50"]) == ("b", "", 40.0)
    assert (second.attempted, second.succeeded, second.ttft_ms["n"]) == (1, 1, 1)


def test_a_run_submitted_without_requests_is_told_by_its_summary(cast: Cast) -> None:
    run = make_run(cast.project, records=False)
    (group,) = populations([run])
    assert (group.source, group.tenant, group.attempted) == ("summary", "tenant-a", 4)
    assert group.ttft_ms["p50"] == 42.0
    assert group.tpot_ms["n"] == 4


def test_runtime_passes_by_tenant_or_application(make_evidence: Make, run: Run) -> None:
    result = review_rows(make_evidence("runtime").revisions.get())
    assert result.passes
    (row,) = result.rows
    assert (row["tenant"], row["application"], row["attempted"]) == ("tenant-a", "help-desk", 4)
    assert row["ttft_ms"] == {"n": 4, "p50": 42.0, "p95": 42.0}
    assert "mean" not in row["ttft_ms"]


def test_runtime_that_cannot_be_queried_does_not_pass(cast: Cast, make_evidence: Make, body_of: Make) -> None:
    nameless = make_run(cast.project, tenant="", application="")
    body = body_of("runtime") | {"tenants": ["tenant-z"], "applications": []}
    result = review_rows(make_evidence("runtime", runs=[nameless], body=body).revisions.get())
    assert not result.passes
    assert result.missing == [
        "4 requests carry neither tenant nor application, so they cannot be queried by one.",
        "The evidence says that it covers the tenant “tenant-z”, but no request carries it.",
    ]


def test_runtime_without_first_token_or_generation_does_not_pass(
    cast: Cast, make_evidence: Make, run: Run
) -> None:
    revision = make_evidence("runtime").revisions.get()
    run.requests.update(ttft_ms=None, tpot_ms=None)
    assert review_rows(revision).missing == [
        "No first token was observed for tenant-a / help-desk (M1).",
        "No request shows the time per output token (M2).",
    ]


def test_configuration_rows_are_versions_and_their_changes(cast: Cast, make_evidence: Make, run: Run) -> None:
    evidence = make_evidence("configuration")
    changed = make_run(
        cast.project,
        configuration={"model_digest": "a" * 64, "engine": {"dtype": "bfloat16"}, "versions": {"torch": "3"}},
        configuration_digest="d" * 64,
    )
    old = evidence.revisions.get()
    services.revision_submit(actor=cast.contributor.as_actor(), revision=old)
    texts = {name: old.body[name] for name in ("policy", "permissions")}
    body = services.configuration_from_run(changed) | texts | {"change_note": "Faster torch."}
    newer = edit(cast, evidence, body=body, runs=[])
    result = review_rows(newer)
    assert result.passes
    assert [row["revision"] for row in result.rows] == [2, 1]
    changes = {change["label"]: (change["before"], change["after"]) for change in result.rows[0]["changes"]}
    assert changes["Versions · torch"] == ("2", "3")
    assert changes["Engine or service settings · dtype"] == ("float32", "bfloat16")
    assert changes["Captured from run"] == (str(run), str(changed))
    assert changes["Change history"] == ("The first.", "Faster torch.")
    assert result.rows[1]["changes"] == []


def test_configuration_tells_of_runs_with_another_configuration(cast: Cast, make_evidence: Make) -> None:
    other = make_run(cast.project, configuration_digest="e" * 64)
    make_evidence("runtime", runs=[other])
    result = review_rows(make_evidence("configuration").revisions.get())
    assert result.passes
    assert result.notes == [
        f"Runs behind the runtime evidence were made with another configuration: {other}."
    ]


def test_responsibility_rows_lead_to_teams(cast: Cast, make_evidence: Make, body_of: Make) -> None:
    result = review_rows(make_evidence("responsibility").revisions.get())
    assert result.passes
    assert {row["team"] for row in result.rows} == {cast.team.name}
    assert {row["contact"] for row in result.rows} == {"#oncall"}
    body = body_of("responsibility")
    body["rows"][2]["team"] = None
    flagged = review_rows(make_evidence("responsibility", body=body).revisions.get())
    assert not flagged.passes
    assert flagged.rows[2]["team"] is None
    assert flagged.missing == ["Row 3: “Team” is missing."]


def test_retrospective_has_conclusion_and_owner(cast: Cast, make_evidence: Make) -> None:
    revision = make_evidence("retrospective").revisions.get()
    (row,) = review_rows(revision).rows
    assert (row["conclusion"], row["owner"], row["owner_team"]) == (
        "Usable for the help desk.",
        str(cast.contributor),
        cast.team.name,
    )
    User.objects.filter(pk=cast.contributor.pk).update(is_active=False)
    assert not review_rows(revision).passes
    empty = review_rows(make_evidence("retrospective", body={}, actor=cast.lead.as_actor()).revisions.get())
    assert empty.rows == []


def test_the_difference_is_told_field_by_field(cast: Cast, make_evidence: Make, submitted: Make) -> None:
    revision = submitted("responsibility")
    rows = revision.body["rows"]
    moved = [rows[1], rows[0] | {"on_call": "week 13"}, rows[3]]
    newer = edit(cast, revision.evidence, title="New title", body={"rows": moved})
    changes = [
        (c.kind, c.label, c.before, c.after)
        for c in changes_between(EvidenceRevision.objects.get(pk=revision.pk), newer)
    ]
    assert ("changed", "Title", "About responsibility", "New title") in changes
    assert ("changed", "Approval “Subject of approval” · On call", "week 12", "week 13") in changes
    assert ("removed", "Alert “Subject of alert” · Team", cast.team.name, "") in changes
    assert not [change for change in changes if "Ownership" in change[1] or "Handler" in change[1]]


# --- gates ------------------------------------------------------------------------------------


def test_both_gates_stand_before_evidence_complete() -> None:
    found = {gate.code: gate for gate in gates()}
    assert found["G5"].before == found["G6"].before == ProjectState.EVIDENCE_COMPLETE
    assert not found["G5"].waivable


def test_the_gates_name_every_type_that_is_missing(cast: Cast) -> None:
    missing = evidence_reviewed(cast.project)
    assert [item.code for item in missing] == ["E1", "E2", "E3", "E4"]
    assert str(missing[1].text) == "missing: Runtime evidence (E2)"
    assert missing[1].url == reverse("evidence:create", args=[cast.project.pk, "runtime"])
    (once,) = review_methods_pass(cast.project)  # G5 has said what to do about each
    assert "E1, E2, E3, E4" in str(once.text)
    assert {"G5", "G6"} <= {
        item.guard for item in missing_before(cast.project, ProjectState.EVIDENCE_COMPLETE)
    }


def test_the_gates_are_met_when_all_four_are_reviewed(cast: Cast, reviewed: Make) -> None:
    for type in EvidenceType.values:
        reviewed(type)
    assert evidence_reviewed(cast.project) == []
    assert review_methods_pass(cast.project) == []


def test_evidence_that_waits_is_told(cast: Cast, submitted: Make) -> None:
    revision = submitted("retrospective")
    told = {item.code: item for item in evidence_reviewed(cast.project)}
    assert str(told["E4"].text) == (
        "missing: the review of Retrospective evidence (E4): “About retrospective” is “Submitted”"
    )
    assert told["E4"].url == reverse("evidence:detail", args=[revision.evidence_id])


def test_a_returned_revision_does_not_unseat_the_reviewed_one(cast: Cast, reviewed: Make) -> None:
    for type in EvidenceType.values:
        revision = reviewed(type)
    newer = edit(cast, revision.evidence)
    services.revision_submit(actor=cast.contributor.as_actor(), revision=newer)
    services.revision_return(actor=cast.reviewer.as_actor(), revision=newer, reason="Not better.")
    assert evidence_reviewed(cast.project) == []


def test_tampered_evidence_opens_the_gate_again(cast: Cast, reviewed: Make) -> None:
    for type in EvidenceType.values:
        revision = reviewed(type)
    database_guards.remove()  # it refuses what is tried here
    EvidenceRevision.objects.filter(pk=revision.pk).update(body=revision.body | {"conclusion": "Perfect."})
    (item,) = evidence_reviewed(cast.project)
    assert item.code == "E4"
    assert "no longer matches its digest" in str(item.text)


@pytest.mark.parametrize("validity", [Validity.SUPERSEDED, Validity.INVALID])
def test_a_run_that_counts_no_longer_opens_the_gate_again(
    cast: Cast, run: Run, reviewed: Make, validity: str
) -> None:
    for type in EvidenceType.values:
        reviewed(type)
    Run.objects.filter(pk=run.pk).update(validity=validity)
    told = review_methods_pass(cast.project)
    assert [item.code for item in told] == ["E1", "E2"]
    assert str(run) in str(told[1].text)
