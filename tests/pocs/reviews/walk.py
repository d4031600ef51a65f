"""A project on its way to the decision: each function takes it one step further, through the services."""

from datetime import timedelta
from typing import Any

from django.utils import timezone

from pocs.evidence import services as evidence_services
from pocs.evidence.bodies import empty_body
from pocs.evidence.choices import EvidenceType, ResponsibilityKind
from pocs.evidence.models import Evidence
from pocs.projects import services as project_services
from pocs.projects.choices import ProjectState, ScenarioKind
from pocs.projects.scenario_spec import Interruption
from pocs.reviews import services
from pocs.reviews.choices import ObservationKind, Slot, TaskKind
from pocs.reviews.manifest import CONCLUSION_FIELDS
from pocs.reviews.models import Decision, Package
from pocs.runs.models import Run
from tests.factories import PASSWORD, Cast, complete_plan, make_run, make_scenario_version, make_summary

SIGNERS = {Slot.BUSINESS: "business", Slot.PLATFORM: "platform", Slot.SECURITY: "security"}
SHARES = {"queue_wait": 0.08, "prefill": 0.22, "decode": 0.68, "unexplained": 0.02}


def add_runs(cast: Cast) -> list[Run]:
    """Two counting runs that cover the matrix, one of them with an interruption."""
    author = {"created_by": cast.contributor}
    short = make_scenario_version(cast.project, "short-request", **author)
    long = make_scenario_version(
        cast.project,
        "interruption",
        kind=ScenarioKind.INTERRUPTION,
        input_tokens=256,
        output_tokens=32,
        concurrency=4,
        interruptions=(Interruption(phase="decode"),),
        **author,
    )
    fields: dict[str, Any] = {
        "requested_by": cast.contributor,
        "diagnosis": {"where": "decode", "shares": SHARES, "n": 4},
        "manifest": {"requests": {"lines": 4, "sha256": "b" * 64}},
    }
    return [
        make_run(cast.project, scenario_version=short, **fields),
        make_run(
            cast.project, scenario_version=long, summary=make_summary(requests=4, cancelled=1), **fields
        ),
    ]


def bodies(cast: Cast, run: Run) -> dict[EvidenceType, dict[str, Any]]:
    """A complete body of each type."""
    text = {
        name: "Stated." for name in ("seen", "first_token", "generation", "errors", "resources", "call_logs")
    }
    rows = [
        {
            "kind": kind.value,
            "subject": "The service",
            "team": cast.team.pk,
            "person": cast.lead.pk,
            "alert_route": "#oncall",
            "on_call": "weekly",
        }
        for kind in ResponsibilityKind
    ]
    found = {
        EvidenceType.CONFIGURATION: evidence_services.configuration_from_run(run)
        | {
            "policy": "Only internal calls.",
            "permissions": "The platform team changes it.",
            "change_note": "The first one.",
        },
        EvidenceType.RUNTIME: text | {"tenants": ["tenant-a"], "applications": ["help-desk"]},
        EvidenceType.RESPONSIBILITY: {"rows": rows},
        EvidenceType.RETROSPECTIVE: {
            "degradation": "None seen.",
            "rollback_outcome": "Back within a minute.",
            "next_optimisation": "Prefix cache for the system prompt.",
            "conclusion": "Ready for a wider pilot.",
            "owner": cast.lead.pk,
        },
    }
    return {kind: empty_body(kind) | body for kind, body in found.items()}


def add_evidence(cast: Cast, runs: list[Run]) -> dict[EvidenceType, Evidence]:
    """All four types, written by the contributor and reviewed by the reviewer."""
    found = {}
    for kind, body in bodies(cast, runs[0]).items():
        evidence = evidence_services.evidence_create(
            actor=cast.contributor.as_actor(),
            project=cast.project,
            type=kind,
            title=f"{kind.value} of the pilot",
            body=body,
            runs=runs if kind == EvidenceType.RUNTIME else [],
        )
        review(cast, evidence)
        found[kind] = evidence
    return found


def review(cast: Cast, evidence: Evidence) -> None:
    """Submit the newest revision and have it reviewed."""
    revision = evidence.revisions.order_by("-number")[0]
    evidence_services.revision_submit(actor=cast.contributor.as_actor(), revision=revision)
    evidence_services.revision_review(actor=cast.reviewer.as_actor(), revision=revision, note="Seen.")


def edit(cast: Cast, evidence: Evidence, **changes: Any) -> None:
    """Edit the newest revision's body."""
    evidence.refresh_from_db()
    newest = evidence.revisions.order_by("-number")[0]
    evidence_services.revision_edit(
        actor=cast.contributor.as_actor(),
        evidence=evidence,
        version=evidence.version,
        body=newest.body | changes,
        runs=list(newest.runs.all()),
    )


def write_findings(cast: Cast) -> None:
    actor = cast.contributor.as_actor()
    services.conclusion_save(
        actor=actor,
        project=cast.project,
        version=0,
        **{name: f"{name}: stated." for name in CONCLUSION_FIELDS},
    )
    services.business_result_save(
        actor=actor,
        project=cast.project,
        version=0,
        experience_before="12 s to a first answer",
        experience_after="2 s to a first answer",
        statement="Clerks stay with the tool.",
    )


def advance(cast: Cast, to: ProjectState) -> None:
    project_services.project_advance(actor=cast.lead.as_actor(), project=cast.project, to=to)
    cast.project.refresh_from_db()


def to_evidence_complete(cast: Cast) -> dict[EvidenceType, Evidence]:
    """From draft to `evidence_complete`, with conclusion and business result written."""
    complete_plan(cast.project, cast.team)
    advance(cast, ProjectState.PLANNED)
    advance(cast, ProjectState.RUNNING)
    evidence = add_evidence(cast, add_runs(cast))
    advance(cast, ProjectState.EVIDENCE_COMPLETE)
    write_findings(cast)
    return evidence


def freeze(cast: Cast) -> Package:
    package = services.package_freeze(actor=cast.lead.as_actor(), project=cast.project)
    cast.project.refresh_from_db()
    return package


def sign(cast: Cast, package: Package, *slots: Slot, verdict: str = "approve", comment: str = "") -> None:
    """Have each slot (all three by default) signed by its signer."""
    for slot in slots or tuple(SIGNERS):
        services.signoff_sign(
            actor=getattr(cast, SIGNERS[slot]).as_actor(),
            package=package,
            slot=slot.value,
            verdict=verdict,
            password=PASSWORD,
            comment=comment,
        )
    package.refresh_from_db()


def propose(cast: Cast, package: Package, **fields: Any) -> Decision:
    values = {"outcome": "accepted", "next_step": "wider_pilot", "rationale": "It answers in time."} | fields
    return services.decision_propose(actor=cast.lead.as_actor(), package=package, **values)


def to_decided(cast: Cast) -> Decision:
    """From `evidence_complete` to `decided`."""
    package = freeze(cast)
    sign(cast, package)
    decision = services.decision_confirm(
        actor=cast.decision_maker.as_actor(), decision=propose(cast, package)
    )
    cast.project.refresh_from_db()
    return decision


def in_days(days: int) -> Any:
    return (timezone.now() + timedelta(days=days)).date()


def set_follow_through(cast: Cast) -> None:
    for kind in TaskKind:
        services.task_set(
            actor=cast.lead.as_actor(),
            project=cast.project,
            kind=kind.value,
            owner=cast.procurement,
            due_on=in_days(30),
        )


def set_observers(cast: Cast) -> None:
    for kind in ObservationKind:
        services.observation_set(
            actor=cast.lead.as_actor(),
            project=cast.project,
            kind=kind.value,
            observer=cast.observer,
            next_reading_on=in_days(7),
        )
