"""A project's whole file as one archive: packages, evidence, signatures, audit slice, and its own verifier.

An auditor checks it offline with `verify.py` inside it (`pocs.common.verify_bundle`, standard library
alone). Contents are written in the byte form their digests were taken over, so a file's SHA-256 is
the digest in the manifest.
"""

import json
import re
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db import transaction
from django.db.models import Model
from django.utils import timezone
from django.utils.translation import override

from pocs.common import audit, checkpoints, verify_bundle
from pocs.common.actors import Actor
from pocs.common.canonical import canonical_json
from pocs.common.models import AuditEntry
from pocs.evidence.content import content_of, read_chunks
from pocs.evidence.models import Attachment, EvidenceRevision
from pocs.projects.models import Project
from pocs.projects.selectors import project_get
from pocs.reviews.choices import CURRENT_APPROVALS, SignOffState
from pocs.reviews.models import (
    Condition,
    Decision,
    FollowThroughTask,
    Objection,
    Observation,
    ObservationReading,
    Package,
    SignOff,
    Waiver,
)
from pocs.runs.models import Run

#: checkpoints beyond the newest that go along: more would cost the verifier time and prove nothing more
CHECKPOINTS_MAX = 50
README = """\
This archive is the whole file of one project, exported by PhaseGate.

  python verify.py .                (in the unpacked folder)
  python verify.py BUNDLE.zip --key KEY

checks it without PhaseGate and without a network. Take verify.py from a source that you trust and the
key from the audit page of the installation. bundle.json lists every file with its digest and is
signed. audit/chain.jsonl holds the project's own entries in full and of all others only their hashes.
statements/ holds one in-toto test-result statement a package.
"""


@dataclass(frozen=True)
class MadeBundle:
    """The archive as an open file at its start, and its name."""

    file: IO[bytes]
    name: str


def bundle_of(actor: Actor, pk: int) -> MadeBundle:
    """The project's whole file, for who may export it; the export itself is an entry of the audit."""
    project = project_get(actor, pk, "project.export")
    with transaction.atomic():
        audit.record(
            actor=actor,
            verb="project.exported",
            obj=project,
            project_id=project.pk,
            after={"name": project.name},
        )
    checkpoints_now = audit.checkpoint_now(project.organisation_id)
    file = tempfile.TemporaryFile()  # noqa: SIM115 the answer closes it
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive, override("en"):
        _write(archive, project, actor, with_checkpoints=checkpoints_now)
    file.seek(0)
    slug = re.sub(r"[^A-Za-z0-9]+", "-", project.name).strip("-").lower()[:40] or "project"
    return MadeBundle(file, f"phasegate-{project.pk}-{slug}.zip")


def _write(archive: zipfile.ZipFile, project: Project, actor: Actor, *, with_checkpoints: bool) -> None:
    listed = []
    for name, octets in _files(project):
        archive.writestr(name, octets)
        listed.append({"path": name, "size_bytes": len(octets), "sha256": sha256(octets).hexdigest()})
    statement = {
        "schema": verify_bundle.SCHEMA,
        "project": {"id": project.pk, "name": project.name, "state": project.state},
        "organisation": project.organisation.name,
        "at": timezone.now().isoformat(),
        "by": actor.label,
        "checkpoint_written": with_checkpoints,
        "files": listed,
    }
    signed = statement | checkpoints.sign(statement)
    archive.writestr(verify_bundle.LIST, _pretty(signed))


def _files(project: Project) -> Iterator[tuple[str, bytes]]:
    packages = list(
        project.packages.prefetch_related("signoffs__signer", "signoffs__on_behalf_of").order_by("number")
    )
    yield "README.txt", README.encode()
    yield "verify.py", Path(verify_bundle.__file__).read_bytes()
    yield "project.json", _pretty(_project(project, packages))
    for package in packages:
        folder = f"packages/P{package.number}"
        yield f"{folder}/manifest.json", canonical_json(package.manifest)
        yield f"{folder}/package.json", _pretty(_package(package))
        yield f"statements/P{package.number}.json", _pretty(_statement(package))
    yield from _evidence(project)
    for run in (
        Run.objects.filter(project=project).select_related("scenario_version__scenario").order_by("number")
    ):
        yield f"runs/R{run.number}.json", _pretty(_run(run))
    yield "reviews.json", _pretty(_reviews(project))
    yield "audit/chain.jsonl", b"".join(_chain(project))
    yield "audit/checkpoints.jsonl", b"".join(_checkpoints(project))


def _pretty(value: Any) -> bytes:
    return (
        json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True, cls=DjangoJSONEncoder).encode()
        + b"\n"
    )


def _project(project: Project, packages: list[Package]) -> dict[str, Any]:
    members = project.members.select_related("user").order_by("user__username", "role")
    return {
        "id": project.pk,
        "name": project.name,
        "state": project.state,
        "packages": [package.number for package in packages],
        "members": [{"id": row.user_id, "name": str(row.user), "role": row.role} for row in members],
    }


def _package(package: Package) -> dict[str, Any]:
    return {
        "id": package.pk,
        "number": package.number,
        "digest": package.digest,
        "state": package.state,
        "frozen_by": str(package.frozen_by),
        "frozen_at": package.frozen_at,
        "stale_at": package.stale_at,
        "stale_by": package.stale_by,
        "stale_reason": package.stale_reason,
        "signatures": [_signature(row) for row in package.signoffs.all()],
    }


def _signature(row: SignOff) -> dict[str, Any]:
    return {
        "id": row.pk,
        "slot": row.slot,
        "state": row.state,
        "verdict": _verdict(row),
        "meaning": row.meaning,
        "signer": row.signer_id,
        "signed_as": row.signed_as,
        "digest": row.digest,
        "comment": row.comment,
        "signed_at": row.signed_at,
        "ended_at": row.ended_at,
        "ended_reason": row.ended_reason,
    }


def _verdict(row: SignOff) -> str:
    """What the person said when signing, also of a signature that counts no longer; empty without one."""
    if row.signed_at is None:
        return ""
    if row.state in (*CURRENT_APPROVALS, SignOffState.REJECTED):
        return str(row.state)
    verbs = [f"signoff.{state}" for state in (*CURRENT_APPROVALS, SignOffState.REJECTED)]
    entries = AuditEntry.objects.filter(object_type="reviews.signoff", object_id=str(row.pk), verb__in=verbs)
    entry = entries.order_by("sequence").last()
    return entry.verb.partition(".")[2] if entry else ""


def _statement(package: Package) -> dict[str, Any]:
    """An in-toto statement: the frozen manifest as subject, the package's outcome as the test result."""
    result = {"approved": "PASSED", "rejected": "FAILED"}.get(str(package.state), "WARNED")
    standing = {row.slot: str(row.state) for row in package.signoffs.all()}
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [
            {"name": f"packages/P{package.number}/manifest.json", "digest": {"sha256": package.digest}}
        ],
        "predicateType": "https://in-toto.io/attestation/test-result/v0.1",
        "predicate": {
            "result": result,
            "configuration": [
                {"name": scenario["version"], "digest": {"sha256": scenario["sha256"]}}
                for scenario in package.manifest["scenarios"]
            ],
            "passedTests": sorted(slot for slot, state in standing.items() if state in CURRENT_APPROVALS),
            "failedTests": sorted(slot for slot, state in standing.items() if state == SignOffState.REJECTED),
            "warnedTests": sorted(
                slot
                for slot, state in standing.items()
                if state not in (*CURRENT_APPROVALS, SignOffState.REJECTED)
            ),
        },
    }


def _evidence(project: Project) -> Iterator[tuple[str, bytes]]:
    rows = EvidenceRevision.objects.filter(evidence__project=project).order_by("evidence_id", "number")
    rows = rows.select_related("evidence", "created_by", "submitted_by", "reviewed_by", "token")
    index = []
    for row in rows.prefetch_related("runs", "attachments").iterator(chunk_size=200):
        yield f"evidence/{row.evidence_id}/r{row.number}.json", canonical_json(content_of(row))
        index.append(
            {
                "evidence": row.evidence_id,
                "revision": row.number,
                "title": row.title,
                "state": row.state,
                "sha256": row.content_sha256,
                "created_by": str(row.created_by),
                "token": str(row.token) if row.token else None,
                "submitted_by": str(row.submitted_by) if row.submitted_by else None,
                "reviewed_by": str(row.reviewed_by) if row.reviewed_by else None,
                "reviewed_at": row.reviewed_at,
                "review_note": row.review_note,
            }
        )
    yield "evidence/index.json", _pretty(index)
    files = Attachment.objects.filter(revision__evidence__project=project).order_by("sha256", "pk")
    done: set[str] = set()
    for attachment in files:
        if attachment.sha256 not in done:
            done.add(attachment.sha256)
            yield f"attachments/{attachment.sha256}", _octets(attachment)


def _octets(attachment: Attachment) -> bytes:
    """The stored bytes; what is lost is exported as empty, so that the verifier says which file it was."""
    try:
        with attachment.file.open("rb") as stored:
            return b"".join(read_chunks(stored))
    except OSError:
        return b""


def _run(run: Run) -> dict[str, Any]:
    return {
        "number": run.number,
        "scenario": str(run.scenario_version),
        "state": run.state,
        "validity": run.validity,
        "origin": run.origin,
        "configuration_sha256": run.configuration_digest,
        "configuration": run.configuration,
        "manifest": run.manifest,
        "summary": run.summary,
        "diagnosis": run.diagnosis,
        "started_at": run.started_at,
        "finished_at": run.finished_at,
    }


#: what is written of each kind of row, beside the packages
REVIEW_FIELDS: dict[str, tuple[type[Model], str, tuple[str, ...]]] = {
    "waivers": (Waiver, "project", (
        "id", "guard", "reason", "scope", "state", "requested_by__username", "decided_by__username",
        "decided_at", "decision_note", "expires_at")),
    "objections": (Objection, "package__project", (
        "id", "package__number", "line", "quote", "rule", "statement", "state", "raised_by__username",
        "answer", "answered_by__username", "ruling", "ruled_by__username", "ended_at")),
    "decisions": (Decision, "project", (
        "id", "package__number", "outcome", "next_step", "rationale", "state", "proposed_by__username",
        "confirmed_by__username", "confirmed_at", "ended_at", "ended_reason")),
    "conditions": (Condition, "decision__project", (
        "id", "decision_id", "text", "owner__username", "due_on", "closed_at", "closed_by__username",
        "closing_evidence", "closing_revision_id")),
    "follow_through": (FollowThroughTask, "project", (
        "kind", "owner__username", "due_on", "note", "state", "done_at", "done_by__username")),
    "observations": (Observation, "project", ("kind", "observer__username", "state", "next_reading_on")),
    "readings": (ObservationReading, "observation__project", (
        "observation__kind", "at", "value", "unit", "note", "source", "run__number",
        "entered_by__username")),
}  # fmt: skip


def _reviews(project: Project) -> dict[str, Any]:
    """Waivers, objections, decisions and what followed, as they stand: for reading; the audit proves them."""
    return {
        name: list(model._default_manager.filter(**{path: project}).order_by("pk").values(*fields))
        for name, (model, path, fields) in REVIEW_FIELDS.items()
    }


def _chain(project: Project) -> Iterator[bytes]:
    """The organisation's chain: the project's entries in full, of the others what links them."""
    entries = AuditEntry.objects.filter(organisation_id=project.organisation_id).order_by("sequence")
    others = entries.exclude(project_id=project.pk).values_list("sequence", "previous_hash", "hash")
    links = {
        number: {"sequence": number, "previous": previous, "hash": own} for number, previous, own in others
    }
    for entry in entries.filter(project_id=project.pk):
        links[entry.sequence] = {
            "sequence": entry.sequence,
            "previous": entry.previous_hash,
            "hash": entry.hash,
            "payload": audit.entry_payload(entry),
        }
    for number in sorted(links):
        yield canonical_json(links[number]) + b"\n"


def _checkpoints(project: Project) -> Iterator[bytes]:
    """The newest signed lines of the checkpoint file, as they lie there."""
    for line in checkpoints.newest_lines(project.organisation_id, CHECKPOINTS_MAX):
        yield line.encode() + b"\n"
