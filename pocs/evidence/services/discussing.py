"""Threads on lines of evidence: opened, answered, resolved, opened again; nothing said is ever changed."""

from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from pocs.common import audit, events
from pocs.common.actors import Actor
from pocs.common.errors import Conflict, FieldError, InvalidInput, NotPermitted
from pocs.evidence.choices import ThreadState
from pocs.evidence.discussion import line_at
from pocs.evidence.lines import lines_of
from pocs.evidence.models import Comment, EvidenceRevision, Thread
from pocs.evidence.services.support import require_not_closed
from pocs.people import policies
from pocs.projects.models import Project

COMMENT_MAX_CHARACTERS = 5_000


@transaction.atomic
def thread_open(*, actor: Actor, revision: EvidenceRevision, path: str, text: str, quote: str = "") -> Thread:
    """Start a thread on one line (`path` of `pocs.evidence.lines`; `quote`: one line of a longer text).

    Any member of the project may. Raises InvalidInput at `/path` or `/quote` for a line that the
    revision does not have, at `/text` for an empty comment.
    """
    project = revision.evidence.project
    user_id = discussing_require(actor=actor, project=project)
    require_not_closed(project)
    text = _clean_comment(text)
    lines = lines_of(revision)
    line = line_at(lines, path, quote)
    if line is None:
        pointer = "/quote" if path in lines else "/path"
        raise InvalidInput(
            _("This revision has no such line."),
            [FieldError(pointer, "not_found", _("This revision has no such line."))],
        )
    thread = Thread.objects.create(
        evidence=revision.evidence,
        revision=revision,
        path=line.path,
        label=line.label,
        quote=quote,
        text=quote or line.text,
        opened_by_id=user_id,
    )
    _say(thread, user_id, text)
    _tell(actor, thread, "thread.opened", comment=text)
    return thread


@transaction.atomic
def thread_comment(*, actor: Actor, thread: Thread, text: str) -> Comment:
    """Answer in a thread; a resolved one is opened again first (Conflict)."""
    user_id = discussing_require(actor=actor, project=thread.evidence.project)
    require_not_closed(thread.evidence.project)
    text = _clean_comment(text)
    row = _claim(thread)
    if row.state != ThreadState.OPEN:
        raise Conflict(_("The thread is resolved. Open it again to go on."))
    comment = _say(row, user_id, text)
    _tell(actor, row, "thread.commented", comment=text)
    return comment


@transaction.atomic
def thread_resolve(*, actor: Actor, thread: Thread) -> Thread:
    """Close a thread: whoever opened it, writes the evidence or reviews it."""
    user_id = resolving_require(actor=actor, thread=thread)
    require_not_closed(thread.evidence.project)
    row = _claim(thread)
    if row.state == ThreadState.RESOLVED:
        raise Conflict(_("The thread is resolved already."))
    return _move(actor, row, ThreadState.RESOLVED, resolved_by_id=user_id, resolved_at=timezone.now())


@transaction.atomic
def thread_reopen(*, actor: Actor, thread: Thread) -> Thread:
    """Open a resolved thread again; any member may who is not satisfied."""
    discussing_require(actor=actor, project=thread.evidence.project)
    require_not_closed(thread.evidence.project)
    row = _claim(thread)
    if row.state == ThreadState.OPEN:
        raise Conflict(_("The thread is open already."))
    return _move(actor, row, ThreadState.OPEN, resolved_by_id=None, resolved_at=None)


def may_discuss(actor: Actor, project: Project) -> bool:
    """Whether the actor is a person with a role on the project; auditors only read."""
    return actor.is_person and project.members.filter(user_id=actor.answers_with).exists()


def may_resolve(actor: Actor, thread: Thread) -> bool:
    """Whether the actor opened the thread, writes the evidence or reviews it."""
    project = thread.evidence.project
    by_role = any(policies.allowed(actor, name, project) for name in ("evidence.edit", "evidence.review"))
    return may_discuss(actor, project) and (thread.opened_by_id == actor.user_id or by_role)


def discussing_require(*, actor: Actor, project: Project) -> int:
    """The id of the person who may comment: a member of the project; NotPermitted for others."""
    policies.require(actor, "project.view", project)
    if actor.user_id is None or not may_discuss(actor, project):
        raise NotPermitted(_("Members of the project comment on its evidence; a token or an auditor cannot."))
    return actor.user_id


def resolving_require(*, actor: Actor, thread: Thread) -> int:
    """The id of the person who may resolve the thread; NotPermitted for others."""
    user_id = discussing_require(actor=actor, project=thread.evidence.project)
    if not may_resolve(actor, thread):
        raise NotPermitted(_("Whoever opened the thread, or writes or reviews the evidence, resolves it."))
    return user_id


def _clean_comment(text: str) -> str:
    text = text.replace("\r\n", "\n").strip()
    if not text:
        detail = _("Write a comment.")
        raise InvalidInput(detail, [FieldError("/text", "required", detail)])
    if len(text) > COMMENT_MAX_CHARACTERS or "\x00" in text:
        detail = _("A comment has at most %(max)d characters.") % {"max": COMMENT_MAX_CHARACTERS}
        raise InvalidInput(detail, [FieldError("/text", "max_length", detail)])
    return text


def _claim(thread: Thread) -> Thread:
    return (
        Thread.objects.select_for_update(of=("self",))
        .select_related("evidence__project", "revision__evidence")
        .get(pk=thread.pk)
    )


def _say(thread: Thread, user_id: int, text: str) -> Comment:
    return Comment.objects.create(thread=thread, author_id=user_id, text=text)


def _move(actor: Actor, thread: Thread, to: ThreadState, **changes: Any) -> Thread:
    before = {"state": str(thread.state)}
    thread.state = to
    thread.version += 1
    for name, value in changes.items():
        setattr(thread, name, value)
    thread.save(update_fields=["state", "version", "updated_at", *changes])
    verb = "thread.resolved" if to == ThreadState.RESOLVED else "thread.reopened"
    _tell(actor, thread, verb, before=before)
    return thread


def _tell(
    actor: Actor, thread: Thread, verb: str, *, before: dict[str, Any] | None = None, comment: str = ""
) -> None:
    project_id = thread.evidence.project_id
    after = {"state": str(thread.state), "revision": thread.revision.number, "line": thread.label}
    if comment:
        after["comment"] = comment
    audit.record(actor=actor, verb=verb, obj=thread, project_id=project_id, before=before, after=after)
    data = {"evidence": thread.evidence_id, "thread": thread.pk, "state": str(thread.state)}
    events.emit(f"project:{project_id}", "thread", data)
