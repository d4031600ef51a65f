"""Rules about evidence: reviews asked for and done, returns, discussions."""

from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from pocs.common.models import AuditEntry
from pocs.common.phrases import said
from pocs.evidence.choices import RequestState
from pocs.evidence.discussion import label_of
from pocs.evidence.models import Contribution, Evidence, EvidenceRevision, ReviewRequest, Thread
from pocs.evidence.selectors import possible_reviewers
from pocs.notices.rules.drafts import Draft, Rule, after, who


def _path(evidence_id: int) -> str:
    return reverse("evidence:detail", args=[evidence_id])


def _authors(evidence: Evidence) -> set[int]:
    rows = Contribution.objects.filter(revision__evidence=evidence)
    return set(rows.values_list("user_id", flat=True))


def review_requested(entry: AuditEntry, request: ReviewRequest) -> Draft:
    revision = request.revision
    return Draft(
        kind="review.requested",
        text=said(_("%(who)s asks you to review “%(title)s”"), who=who(entry), title=revision.title),
        detail=request.note,
        user_ids=[request.person_id],
        path=_path(revision.evidence_id),
    )


def submitted(entry: AuditEntry, revision: EvidenceRevision) -> Draft:
    """Everyone who may review it, save those whom a request of its own has told already."""
    asked = revision.review_requests.filter(state=RequestState.WAITING).values_list("person_id", flat=True)
    waiting = set(possible_reviewers(revision.evidence).values_list("pk", flat=True)) - set(asked)
    return Draft(
        kind="review.waiting",
        text=said(_("“%(title)s” waits for a review"), title=revision.title),
        detail=revision.submit_note,
        user_ids=waiting,
        path=_path(revision.evidence_id),
    )


def returned(entry: AuditEntry, revision: EvidenceRevision) -> Draft:
    return Draft(
        kind="evidence.returned",
        text=said(_("%(who)s returned “%(title)s”"), who=who(entry), title=revision.title),
        detail=revision.review_note,
        user_ids=_authors(revision.evidence),
        path=_path(revision.evidence_id),
    )


def reviewed(entry: AuditEntry, revision: EvidenceRevision) -> Draft:
    return Draft(
        kind="evidence.reviewed",
        text=said(_("%(who)s reviewed “%(title)s”: it holds"), who=who(entry), title=revision.title),
        detail=revision.review_note,
        user_ids=_authors(revision.evidence),
        path=_path(revision.evidence_id),
    )


def commented(entry: AuditEntry, thread: Thread) -> Draft:
    people = _authors(thread.evidence) | {thread.opened_by_id}
    people |= set(thread.comments.values_list("author_id", flat=True))
    text = _("%(who)s commented on “%(title)s”, %(line)s")
    return Draft(
        kind="comment",
        text=said(text, who=who(entry), title=thread.evidence.title, line=label_of(thread)),
        detail=str(after(entry).get("comment", "")),
        user_ids=people,
        path=f"{_path(thread.evidence_id)}?revision={thread.revision.number}#thread-{thread.pk}",
    )


def reopened(entry: AuditEntry, thread: Thread) -> Draft:
    text = _("%(who)s opened the discussion of “%(title)s”, %(line)s, again")
    people = _authors(thread.evidence) | {thread.opened_by_id}
    return Draft(
        kind="comment",
        text=said(text, who=who(entry), title=thread.evidence.title, line=label_of(thread)),
        user_ids=people,
        path=f"{_path(thread.evidence_id)}#thread-{thread.pk}",
    )


RULES: dict[str, Rule] = {
    "review.requested": review_requested,
    "evidence.submitted": submitted,
    "evidence.returned": returned,
    "evidence.reviewed": reviewed,
    "thread.opened": commented,
    "thread.commented": commented,
    "thread.reopened": reopened,
}
