"""Fixtures of evidence: complete bodies of each type, and evidence that waits for its review."""

from collections.abc import Callable
from io import BytesIO
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from pocs.evidence import services
from pocs.evidence.choices import EvidenceType, ResponsibilityKind
from pocs.evidence.models import Evidence, EvidenceRevision
from pocs.runs.models import Run
from tests.factories import Cast, make_run

PNG = b"\x89PNG\r\n\x1a\n" + b"\x00" * 16


@pytest.fixture(autouse=True)
def own_media(settings: Any, tmp_path: Any) -> None:
    """Files of a test lie in its own folder."""
    settings.MEDIA_ROOT = tmp_path / "media"


@pytest.fixture
def run(cast: Cast) -> Run:
    return make_run(cast.project, manifest={"requests": {"lines": 4, "sha256": "b" * 64}})


@pytest.fixture
def body_of(cast: Cast, run: Run) -> Callable[[str], dict[str, Any]]:
    """A body that a submission accepts, by type."""

    def make(type: str) -> dict[str, Any]:
        if type == EvidenceType.CONFIGURATION:
            texts = {
                "policy": "Routing by tenant.",
                "permissions": "Platform team.",
                "change_note": "The first.",
            }
            return services.configuration_from_run(run) | texts
        if type == EvidenceType.RUNTIME:
            return {
                "tenants": ["tenant-a"],
                "applications": ["help-desk"],
                "seen": "Queueing is short.",
                "first_token": "p95 67 ms.",
                "generation": "p95 29 ms a token.",
                "errors": "None.",
                "resources": "KV blocks at 14 %.",
                "call_logs": "Index llm-calls, by request id.",
            }
        if type == EvidenceType.RESPONSIBILITY:
            return {
                "rows": [
                    {
                        "kind": kind.value,
                        "subject": f"Subject of {kind}",
                        "team": cast.team.pk,
                        "person": cast.platform.pk,
                        "alert_route": "#oncall",
                        "on_call": "week 12",
                    }
                    for kind in ResponsibilityKind
                ]
            }
        return {
            "degradation": "Long contexts queue.",
            "rollback_outcome": "Back in two minutes.",
            "next_optimisation": "Chunked prefill.",
            "conclusion": "Usable for the help desk.",
            "owner": cast.contributor.pk,
        }

    return make


@pytest.fixture
def make_evidence(cast: Cast, run: Run, body_of: Callable[[str], dict[str, Any]]) -> Callable[..., Evidence]:
    """A draft that is ready to be submitted, written by the contributor."""

    def make(type: str = EvidenceType.RETROSPECTIVE, **given: Any) -> Evidence:
        arguments: dict[str, Any] = {
            "actor": cast.contributor.as_actor(),
            "project": cast.project,
            "type": type,
            "title": f"About {type}",
            "body": body_of(type),
            "runs": [run] if type == EvidenceType.RUNTIME else [],
        }
        return services.evidence_create(**(arguments | given))

    return make


@pytest.fixture
def submitted(cast: Cast, make_evidence: Callable[..., Evidence]) -> Callable[..., EvidenceRevision]:
    """A revision that waits for its review."""

    def make(type: str = EvidenceType.RETROSPECTIVE, **given: Any) -> EvidenceRevision:
        revision = make_evidence(type, **given).revisions.get()
        return services.revision_submit(actor=cast.contributor.as_actor(), revision=revision)

    return make


@pytest.fixture
def reviewed(cast: Cast, submitted: Callable[..., EvidenceRevision]) -> Callable[..., EvidenceRevision]:
    """A revision that the reviewer has accepted."""

    def make(type: str = EvidenceType.RETROSPECTIVE, **given: Any) -> EvidenceRevision:
        return services.revision_review(actor=cast.reviewer.as_actor(), revision=submitted(type, **given))

    return make


def upload(name: str = "log.txt", content: bytes = b"2026-01-01 error 12\n") -> SimpleUploadedFile:
    return SimpleUploadedFile(name, BytesIO(content).read())
