"""The port through which an upper app says what shows a readiness point: its evidence (E9)."""

from collections.abc import Callable
from dataclasses import dataclass

from pocs.common.errors import Text
from pocs.projects.models import Project


@dataclass(frozen=True)
class SupportLink:
    """One piece of evidence for a readiness point: what it is called, where it is, its state in words."""

    text: Text
    url: str
    state: str
    state_label: Text


@dataclass(frozen=True)
class SupportSource:
    """Who knows the evidence: links by readiness kind, and the page on which they are chosen."""

    links: Callable[[Project], dict[str, list[SupportLink]]]
    url: Callable[[Project, str], str]


_sources: list[SupportSource] = []


def register_support(source: SupportSource) -> None:
    """Add a source; called once per process at start-up."""
    if source not in _sources:
        _sources.append(source)


def support_of(project: Project) -> dict[str, list[SupportLink]]:
    """Everything that shows the project's readiness points, by kind."""
    found: dict[str, list[SupportLink]] = {}
    for source in _sources:
        for kind, links in source.links(project).items():
            found.setdefault(kind, []).extend(links)
    return found


def support_url(project: Project, kind: str) -> str:
    """Where evidence for a point is chosen; empty in a process without the app that keeps it."""
    return _sources[0].url(project, kind) if _sources else ""
