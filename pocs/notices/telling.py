"""One event to tell, before it is stored for each person in their language."""

from dataclasses import dataclass
from datetime import date

from pocs.common.errors import Text
from pocs.common.phrases import Said
from pocs.projects.models import Project


@dataclass(frozen=True, kw_only=True)
class Telling:
    """One event to tell: a sentence (put together per reader), to whom, and the page that shows it."""

    kind: str
    key: str
    text: Text | Said
    user_ids: frozenset[int]
    path: str
    project: Project | None = None
    detail: Text | Said = ""
    due_on: date | None = None
