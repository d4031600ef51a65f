"""Evidence named for the project's readiness points (E9): who links it, and what the readiness page shows."""

from django.urls import reverse

from pocs.evidence.choices import EvidenceType
from pocs.evidence.models import Evidence, ReadinessSupport
from pocs.projects.models import Project
from pocs.projects.readiness_support import SupportLink, SupportSource, register_support


def supports_of(project: Project) -> dict[str, list[ReadinessSupport]]:
    """The evidence of each readiness point, in the order it was named."""
    rows = ReadinessSupport.objects.filter(project=project).select_related("evidence", "linked_by")
    found: dict[str, list[ReadinessSupport]] = {}
    for row in rows:
        found.setdefault(row.kind, []).append(row)
    return found


def _links(project: Project) -> dict[str, list[SupportLink]]:
    return {kind: [_link(row.evidence) for row in rows] for kind, rows in supports_of(project).items()}


def _link(evidence: Evidence) -> SupportLink:
    newest = evidence.revisions.order_by("-number")[0]
    return SupportLink(
        text=f"{evidence.title} ({EvidenceType(evidence.type).label}, r{newest.number})",
        url=reverse("evidence:detail", args=[evidence.pk]),
        state=str(newest.state),
        state_label=newest.get_state_display(),
    )


def _url(project: Project, kind: str) -> str:
    return reverse("evidence:readiness", args=[project.pk, kind])


SOURCE = SupportSource(links=_links, url=_url)


def register() -> None:
    """Show the evidence on the readiness page of projects."""
    register_support(SOURCE)
