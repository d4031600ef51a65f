"""The configurations that a project's runs recorded, each compared with the one before it (E1)."""

from dataclasses import dataclass

from pocs.evidence.bodies import captured_configuration
from pocs.evidence.choices import EvidenceType
from pocs.evidence.difference import Change, changes_of_body
from pocs.evidence.models import EvidenceRevision
from pocs.evidence.presentation import Names
from pocs.projects.models import Project
from pocs.runs.models import Run
from pocs.runs.selectors import valid_runs


@dataclass(frozen=True)
class Configuration:
    """Consecutive counting runs with one configuration; `changes` are against the configuration before."""

    digest: str
    first: Run
    last_number: int
    runs: int
    changes: list[Change]
    revisions: list[EvidenceRevision]  # that state it, newest first


@dataclass
class _Span:
    digest: str
    first_pk: int
    last_number: int
    runs: int = 1


def configurations_of(project: Project) -> list[Configuration]:
    """Every change of configuration over the counting runs, newest first."""
    spans: list[_Span] = []
    rows = valid_runs(project).exclude(configuration_digest="").order_by("number")
    for pk, number, digest in rows.values_list("pk", "number", "configuration_digest"):
        if spans and spans[-1].digest == digest:
            spans[-1].last_number, spans[-1].runs = number, spans[-1].runs + 1
        else:
            spans.append(_Span(digest, pk, number))
    firsts = Run.objects.select_related("scenario_version__scenario", "target").in_bulk(
        [span.first_pk for span in spans]
    )
    stated = _stated_by(project)
    found = []
    before: Run | None = None
    for span in spans:
        run = firsts[span.first_pk]
        changes = run_changes(before, run) if before else []
        revisions = stated.get(span.digest, [])
        found.append(Configuration(span.digest, run, span.last_number, span.runs, changes, revisions))
        before = run
    return found[::-1]


def previous_configuration(run: Run) -> Run | None:
    """The last counting run before this one that had another configuration."""
    earlier = valid_runs(run.project).filter(number__lt=run.number).exclude(configuration_digest="")
    return earlier.exclude(configuration_digest=run.configuration_digest).first()


def run_changes(before: Run, after: Run) -> list[Change]:
    """Setting by setting, what one run recorded otherwise than another."""
    kind = EvidenceType.CONFIGURATION
    names = Names({}, {}, {})
    return changes_of_body(kind, captured_configuration(before), captured_configuration(after), names)


def _stated_by(project: Project) -> dict[str, list[EvidenceRevision]]:
    rows = EvidenceRevision.objects.filter(
        evidence__project=project, evidence__type=EvidenceType.CONFIGURATION
    ).select_related("evidence")
    found: dict[str, list[EvidenceRevision]] = {}
    for revision in rows.order_by("-pk"):
        found.setdefault(revision.body.get("configuration_digest") or "", []).append(revision)
    return found
