"""The lines of a package that an objection can cite: those of its evidence, and of the rest of its manifest.

A key is `<evidence id>:<path>` (paths of `pocs.evidence.lines`) or `<part>:<number>` for what the
manifest itself holds, such as the conclusion.
"""

from dataclasses import dataclass

from pocs.evidence.lines import lines_of
from pocs.evidence.models import EvidenceRevision
from pocs.projects.gates import gates
from pocs.reviews.models import Objection, Package
from pocs.reviews.readable import manifest_sections

#: parts of a manifest whose own lines can be cited; evidence is cited by its revisions' lines
CITABLE = (
    "runs",
    "scenarios",
    "conclusion",
    "business_result",
    "project",
    "affected",
    "readiness",
    "declarations",
)


@dataclass(frozen=True)
class Citation:
    """One line: its key, the part it stands in and its name in words, and what it says."""

    key: str
    part: str
    label: str
    text: str
    revision: EvidenceRevision | None = None


def citations_of(package: Package) -> dict[str, Citation]:
    """Every line of the package that says something, by its key, in the order of the manifest."""
    found: list[Citation] = []
    for revision in frozen_revisions(package):
        title = f"{revision.evidence.get_type_display()} · {revision.title}"
        found += [
            Citation(f"{revision.evidence_id}:{line.path}", title, line.label, line.text, revision)
            for line in lines_of(revision).values()
            if line.text
        ]
    for section in manifest_sections(package.manifest):
        if section.key in CITABLE:
            found += [
                Citation(f"{section.key}:{number}", str(section.title), str(line.label), str(line.text))
                for number, line in enumerate(section.lines)
            ]
    return {citation.key: citation for citation in found}


def line_in_words(objection: Objection) -> str:
    """The name of the cited line in the reader's language; as it was when cited where it is gone."""
    _number, _colon, path = objection.key.partition(":")
    if objection.revision is None:
        citation = citations_of(objection.package).get(objection.key)
        return f"{citation.part} · {citation.label}" if citation else objection.line
    line = lines_of(objection.revision).get(path)
    kind = objection.revision.evidence.get_type_display()
    return f"{kind} · {objection.revision.title} · {line.label}" if line else objection.line


def frozen_revisions(package: Package) -> list[EvidenceRevision]:
    """The revisions that the manifest names, in its order."""
    wanted = [(entry["id"], entry["revision"]) for entry in package.manifest["evidence"]]
    rows = EvidenceRevision.objects.filter(
        evidence_id__in=[pk for pk, _number in wanted], evidence__project_id=package.project_id
    )
    rows = rows.select_related("evidence__project", "created_by", "reviewed_by")
    found = {(row.evidence_id, row.number): row for row in rows.prefetch_related("runs", "attachments")}
    return [found[key] for key in wanted if key in found]


def rules() -> list[tuple[str, str]]:
    """The rules that an objection can cite: the gates, by code and title."""
    return [(gate.code, f"{gate.code} · {gate.title}") for gate in gates()]
