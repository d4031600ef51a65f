"""What answers are read from: the newest package's frozen content, and what happened after it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from django.db.models import Q
from django.urls import reverse
from django.utils.translation import gettext as _

from pocs.evidence.choices import EvidenceType
from pocs.evidence.models import EvidenceRevision
from pocs.projects.models import Project
from pocs.reviews import selectors
from pocs.reviews.figures import RunFigures, figures_of, runs_of_package
from pocs.reviews.manifest import manifest_of
from pocs.reviews.models import Decision, Package
from pocs.reviews.selectors import SlotView
from pocs.runs.choices import ExperimentState
from pocs.runs.models import Experiment, Run
from pocs.runs.selectors import counting_runs


@dataclass(frozen=True)
class Line:
    """One statement of an answer: its text, and the place it rests on."""

    text: str
    source: str = ""
    url: str = ""


@dataclass
class Material:
    """One project's material, each part read when a question needs it."""

    project: Project
    package: Package | None = field(init=False)
    manifest: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        self.package = selectors.latest_package(self.project)
        self.manifest = self.package.manifest if self.package else manifest_of(self.project, 0)

    @property
    def facts(self) -> dict[str, Any]:
        """What the project declares, as in the package."""
        found: dict[str, Any] = self.manifest["project"]
        return found

    @cached_property
    def runs(self) -> list[Run]:
        """Those of the package; before there is one, those that count."""
        return runs_of_package(self.package) if self.package else counting_runs(self.project)

    @cached_property
    def figures(self) -> list[RunFigures]:
        return figures_of(self.runs)

    @cached_property
    def slots(self) -> dict[str, SlotView]:
        """The three slots of the package; empty before there is one."""
        views = selectors.slot_views(self.package) if self.package else []
        return {view.slot.value: view for view in views}

    @cached_property
    def decision(self) -> Decision | None:
        return selectors.current_decision(self.project)

    @cached_property
    def revisions(self) -> list[EvidenceRevision]:
        """The revisions that the package holds."""
        wanted = Q(pk__in=[])
        for entry in self.manifest["evidence"]:
            wanted |= Q(evidence_id=entry["id"], number=entry["revision"])
        rows = EvidenceRevision.objects.filter(wanted, evidence__project=self.project)
        return list(rows.select_related("evidence").order_by("evidence__type", "evidence_id"))

    @cached_property
    def experiments(self) -> list[Experiment]:
        """Ended experiments with a comparison, newest first."""
        rows = self.project.experiments.filter(state=ExperimentState.COMPLETE).order_by("-number")
        return [row for row in rows if row.result and "problem" not in row.result]

    def written(self, kind: EvidenceType, field_name: str) -> list[Line]:
        """What the evidence of this type says in one of its fields."""
        return [
            Line(str(revision.body[field_name]), self.source_of(revision), url_of(revision))
            for revision in self.revisions
            if revision.evidence.type == kind and revision.body.get(field_name)
        ]

    def concluded(self, name: str) -> list[Line]:
        """What the conclusion says about one of its points."""
        text = (self.manifest["conclusion"] or {}).get(name)
        return [Line(text, _("Conclusion"), self.url("reviews:conclusion"))] if text else []

    def stated(self, *names: str, labels: Iterable[str] = ()) -> list[Line]:
        """What the project's own page of facts says in these fields."""
        where, url = _("Project details"), self.url("projects:edit")
        titles = [*labels] or [""] * len(names)
        return [
            Line(f"{title}: {self.facts[name]}" if title else self.facts[name], where, url)
            for name, title in zip(names, titles, strict=True)
            if self.facts[name]
        ]

    def url(self, route: str) -> str:
        return reverse(route, args=[self.project.pk])

    def package_url(self) -> str:
        return reverse("reviews:package", args=[self.package.pk]) if self.package else ""

    def source_of(self, revision: EvidenceRevision) -> str:
        return _("“%(title)s”, revision %(number)d") % {"title": revision.title, "number": revision.number}


def url_of(revision: EvidenceRevision) -> str:
    return reverse("evidence:detail", args=[revision.evidence_id]) + f"?revision={revision.number}"


def run_url(run: Run) -> str:
    return reverse("runs:detail", args=[run.pk])


#: finds the lines that answer one question
Answering = Callable[[Material], list[Line]]
