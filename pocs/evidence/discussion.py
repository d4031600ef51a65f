"""Threads beside the lines of a revision: which are carried to it, and which line they speak of is gone."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from django.db.models import Prefetch
from django.utils.functional import lazy

from pocs.evidence.choices import ThreadState
from pocs.evidence.lines import Line, Lines, lines_of
from pocs.evidence.models import Comment, Evidence, EvidenceRevision, Thread


@dataclass(frozen=True)
class PlacedThread:
    """A thread as one revision shows it; `changed`: what stands at its line is not what it was opened on."""

    thread: Thread
    comments: list[Comment]
    changed: bool
    label: str  # of the line in the reader's language; as it was stored where the line is gone

    @property
    def is_open(self) -> bool:
        return self.thread.state == ThreadState.OPEN


@dataclass(frozen=True)
class Discussion:
    """The threads of one revision by the field they stand at, and those whose line it no longer has."""

    by_field: dict[str, list[PlacedThread]] = field(default_factory=dict)
    gone: list[PlacedThread] = field(default_factory=list)

    @property
    def open_count(self) -> int:
        placed = [thread for threads in self.by_field.values() for thread in threads]
        return sum(thread.is_open for thread in placed + self.gone)


def threads_of(evidence: Evidence) -> Iterable[Thread]:
    """Every thread of the evidence, oldest first, with its comments."""
    comments = Prefetch("comments", Comment.objects.select_related("author"))
    return evidence.threads.select_related("opened_by", "resolved_by", "revision").prefetch_related(comments)


def discussion_of(revision: EvidenceRevision) -> Discussion:
    """Threads opened on this revision or an earlier one, each at its line while the line exists."""
    lines = lines_of(revision)
    found = Discussion()
    for thread in threads_of(revision.evidence):
        if thread.revision.number > revision.number:
            continue
        line = line_at(lines, thread.path, thread.quote)
        changed = line is not None and not thread.quote and line.text != thread.text
        label = thread.label if line is None else line.label
        placed = PlacedThread(thread, list(thread.comments.all()), changed, label)
        if line is None:
            found.gone.append(placed)
        else:
            found.by_field.setdefault(line.field, []).append(placed)
    return found


def _label(thread: Thread) -> str:
    line = lines_of(thread.revision).get(thread.path)
    return thread.label if line is None else line.label


#: the name of a thread's line, put together when it is read, in the language of the reader
label_of = lazy(_label, str)


def line_at(lines: Lines, path: str, quote: str = "") -> Line | None:
    """The line at `path`, if it is there and, where one line of a text is quoted, still says that."""
    line = lines.get(path)
    if line is None or (quote and quote not in line.parts):
        return None
    return line
