"""The manifest of a package: everything a signature stands for, in one canonical form."""

from typing import Any

from django.utils import timezone

from pocs.common.canonical import digest
from pocs.evidence.choices import RevisionState
from pocs.evidence.models import EvidenceRevision
from pocs.projects.choices import ScenarioState
from pocs.projects.models import Project, ScenarioVersion
from pocs.reviews.choices import WaiverState
from pocs.reviews.models import BusinessResult, Conclusion, Package
from pocs.reviews.policy import policy_in_force
from pocs.runs.answers import answers_manifest
from pocs.runs.models import Run

SCHEMA = "phasegate-package/1"
CONCLUSION_FIELDS = (
    "performance",
    "release_in_time",
    "batching_and_tail",
    "rollback_of_switch",
    "logs_locate_errors",
)
BUSINESS_PAIRS = (
    ("experience_before", "experience_after"),
    ("delivery_before", "delivery_after"),
    ("cost_before", "cost_after"),
)
BUSINESS_FIELDS = (*(name for pair in BUSINESS_PAIRS for name in pair), "statement")
PROJECT_FIELDS = (
    "name",
    "goal",
    "where_applies",
    "where_not",
    "demo_environment_only",
    "environment_note",
    "supplier",
    "budget_basis",
    "responsibility_boundary",
)


def newest_revisions(project: Project) -> list[EvidenceRevision]:
    """The newest revision of each evidence that was reviewed at least once, whatever its state.

    A newer draft takes the reviewed revision's place here: that is how an edit after the freeze
    shows in the digest at once, and why a restored text is still another revision.
    """
    ever_reviewed = EvidenceRevision.objects.filter(
        evidence__project=project, reviewed_at__isnull=False
    ).exclude(state=RevisionState.RETURNED)
    newest: dict[int, EvidenceRevision] = {}
    rows = EvidenceRevision.objects.filter(evidence__in=ever_reviewed.values("evidence_id"))
    for revision in (
        rows.select_related("evidence").prefetch_related("runs", "attachments").order_by("number")
    ):
        newest[revision.evidence_id] = revision
    return sorted(newest.values(), key=lambda revision: (revision.evidence.type, revision.evidence_id))


def manifest_of(project: Project, number: int, policy: dict[str, Any] | None = None) -> dict[str, Any]:
    """What package `number` of the project would hold if it were frozen now.

    The number is part of it, so that no two packages share a digest even over the same content.
    `policy` is that of a package frozen before: a later policy does not concern it.
    """
    project = Project.objects.get(pk=project.pk)
    revisions = newest_revisions(project)
    runs = sorted(
        {run.pk: run for revision in revisions for run in revision.runs.all()}.values(), key=_number
    )
    answers = answers_manifest(project)
    return {
        **({"answers": answers} if answers else {}),
        "schema": SCHEMA,
        "package": number,
        "project": _project_facts(project),
        "evidence": [_evidence(revision) for revision in revisions],
        "scenarios": _scenarios(project, runs),
        "runs": [_run(run) for run in runs],
        "conclusion": _texts(Conclusion.objects.filter(project=project).first(), CONCLUSION_FIELDS),
        "business_result": _texts(BusinessResult.objects.filter(project=project).first(), BUSINESS_FIELDS),
        "waivers": _waivers(project),
        "policy": policy_in_force(project.organisation_id) if policy is None else policy,
    }


def digest_now(package: Package) -> str:
    """The digest that the package would have if its project's material were frozen now in its place."""
    return digest(manifest_of(package.project, package.number, package.manifest["policy"]))


def _number(run: Run) -> int:
    return run.number


def _texts(row: Conclusion | BusinessResult | None, fields: tuple[str, ...]) -> dict[str, str] | None:
    return None if row is None else {name: getattr(row, name) for name in fields}


def _project_facts(project: Project) -> dict[str, Any]:
    return {
        "id": project.pk,
        **{name: getattr(project, name) for name in PROJECT_FIELDS},
        "affected": [
            {"kind": item.kind, "name": item.name, "owner": item.owner, "note": item.note}
            for item in project.affected.all()
        ],
        "readiness": [
            {
                "kind": item.kind,
                "ready": item.ready,
                "basis": item.basis,
                "team": item.team.name if item.team else None,
            }
            for item in project.readiness.select_related("team")
        ],
        "declarations": [
            {"kind": item.kind, "statement": item.statement, "source": item.source}
            for item in project.declarations.all()
        ],
    }


def _evidence(revision: EvidenceRevision) -> dict[str, Any]:
    return {
        "id": revision.evidence_id,
        "type": revision.evidence.type,
        "title": revision.title,
        "revision": revision.number,
        "sha256": revision.content_sha256,
        "runs": sorted(run.number for run in revision.runs.all()),
        "attachments": [
            {"name": item.name, "size_bytes": item.size_bytes, "sha256": item.sha256}
            for item in revision.attachments.all()
        ],
    }


def _scenarios(project: Project, runs: list[Run]) -> list[dict[str, Any]]:
    """Approved versions, and those that the runs were made with."""
    versions = ScenarioVersion.objects.filter(scenario__project=project).select_related("scenario")
    wanted = {run.scenario_version_id for run in runs}
    return [
        {"version": str(version), "kind": version.scenario.kind, "sha256": version.digest}
        for version in versions.order_by("scenario__slug", "number")
        if version.state == ScenarioState.APPROVED or version.pk in wanted
    ]


def _run(run: Run) -> dict[str, Any]:
    return {
        "id": run.pk,
        "number": run.number,
        "scenario": str(run.scenario_version),
        "state": run.state,
        "validity": run.validity,
        "origin": run.origin,
        "metric_set": run.metric_set,
        "configuration_sha256": run.configuration_digest or None,
        "records_sha256": digest(run.manifest) if run.manifest is not None else None,
        "summary_sha256": digest(run.summary) if run.summary is not None else None,
    }


def _waivers(project: Project) -> list[dict[str, Any]]:
    rows = project.waivers.filter(state=WaiverState.GRANTED, expires_at__gt=timezone.now())
    return [
        {
            "id": waiver.pk,
            "guard": waiver.guard,
            "reason": waiver.reason,
            "scope": waiver.scope,
            "granted_by": str(waiver.decided_by),
            "expires_at": waiver.expires_at.isoformat(),
        }
        for waiver in rows.select_related("decided_by").order_by("id")
    ]
