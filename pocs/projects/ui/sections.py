"""Sections of the project page: each app adds its own, so the page needs no look upwards."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pocs.common.actors import Actor
from pocs.common.errors import Text
from pocs.projects.models import Project


@dataclass(frozen=True)
class Section:
    """One block of the project page: rendered from `template` with `context(project, actor)`."""

    key: str
    title: Text
    order: int
    template: str
    context: Callable[[Project, Actor], dict[str, Any]]


_sections: dict[str, Section] = {}


def register_section(section: Section) -> None:
    """Add or replace a section by its key."""
    _sections[section.key] = section


def sections() -> list[Section]:
    """All sections in page order."""
    return sorted(_sections.values(), key=lambda section: (section.order, section.key))
