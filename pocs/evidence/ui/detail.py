"""The page of one piece of evidence: content, review rows, files, discussion, and what may be done."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

from pocs.common import audit
from pocs.common.actors import Actor
from pocs.common.errors import NotFound
from pocs.common.ui.mixins import actor_of
from pocs.evidence import selectors
from pocs.evidence.choices import (
    CHECK_FOCUS,
    REVIEW_METHOD,
    TYPE_CODES,
    EvidenceType,
    RequestState,
    RevisionState,
)
from pocs.evidence.content import ContentMismatch, check_content
from pocs.evidence.discussion import discussion_of
from pocs.evidence.models import EvidenceRevision
from pocs.evidence.presentation import shown_fields
from pocs.evidence.separation import review_refusal
from pocs.evidence.services.discussing import may_discuss
from pocs.evidence.ui.review_forms import (
    AttachmentForm,
    CommentForm,
    ReturnForm,
    ReviewForm,
    ReviewRequestForm,
    SubmitForm,
)
from pocs.evidence.validation import missing_fields
from pocs.people import policies
from pocs.projects.states import CLOSED_STATES


def render_detail(
    request: HttpRequest,
    pk: int,
    *,
    asked: str = "",
    status: int = 200,
    **forms: Any,
) -> HttpResponse:
    """The page; `forms` are those that were refused, with what was typed in them."""
    actor = actor_of(request)
    evidence = selectors.evidence_get(actor, pk)
    revisions = list(selectors.revision_lines(evidence))
    listed = next((item for item in revisions if str(item.number) == asked), None) if asked else revisions[0]
    if listed is None:
        raise NotFound(_("There is no such revision."))
    revision = selectors.revision_get(actor, listed.pk)
    context = {
        "project": evidence.project,
        "evidence": evidence,
        "revision": revision,
        "revisions": revisions,
        "newest": revisions[0],
        "code": TYPE_CODES[EvidenceType(evidence.type)],
        "focus": CHECK_FOCUS[EvidenceType(evidence.type)],
        "method": REVIEW_METHOD[EvidenceType(evidence.type)],
        "history": [(entry, audit.verb_name(entry.verb)) for entry in selectors.history(evidence)[:50]],
        "same_files": selectors.same_files(revision),
        **_content_context(revision),
        **_actions_context(actor, revision),
        **_forms_context(revision, forms),
    }
    return render(request, "evidence/detail.html", context, status=status)


def _content_context(revision: EvidenceRevision) -> dict[str, Any]:
    """What the revision says and what its review method returns, unless its content was tampered with."""
    mismatch = _mismatch(revision)
    if mismatch is not None:
        return {"mismatch": mismatch, "fields": [], "review": None, "discussion": None}
    is_draft = revision.state == RevisionState.DRAFT
    kind = revision.evidence.type
    lacks = missing_fields(type=kind, body=revision.body, runs=revision.runs.all()) if is_draft else []
    named = {str(lack.detail) for lack in lacks}
    review = selectors.review_rows(revision)
    return {
        "mismatch": None,
        "fields": shown_fields(revision),
        "review": review,
        "lacks": lacks,
        "review_lacks": [text for text in review.missing if text not in named],
        "discussion": discussion_of(revision),
    }


def _actions_context(actor: Actor, revision: EvidenceRevision) -> dict[str, Any]:
    """What the reader may do here, and why they may not review."""
    project = revision.evidence.project
    is_open = project.state not in CLOSED_STATES
    may_edit = policies.allowed(actor, "evidence.edit", project)
    requests = revision.review_requests.select_related("person", "requested_by")
    return {
        "may_edit": may_edit,
        "may_discuss": is_open and may_discuss(actor, project),
        "may_resolve": may_edit or policies.allowed(actor, "evidence.review", project),
        "may_request": is_open and (may_edit or policies.allowed(actor, "evidence.review", project)),
        "is_draft": revision.state == RevisionState.DRAFT,
        "is_submitted": revision.state == RevisionState.SUBMITTED,
        "review_refusal": review_refusal(actor, revision.evidence),
        "requests": requests,
        "asked_of_me": [
            item
            for item in requests
            if item.person_id == actor.user_id and item.state == RequestState.WAITING
        ],
        "me": actor.user_id,
    }


def _forms_context(revision: EvidenceRevision, refused: dict[str, Any]) -> dict[str, Any]:
    people = selectors.possible_reviewers(revision.evidence)
    return {
        "review_form": ReviewForm(),
        "return_form": ReturnForm(),
        "submit_form": SubmitForm(auto_id="id_submit_%s"),
        "attachment_form": AttachmentForm(),
        "request_form": ReviewRequestForm(auto_id="id_request_%s", people=people),
        "comment_form": CommentForm(),
        "comment_thread": None,
    } | refused


def _mismatch(revision: EvidenceRevision) -> str | None:
    """What is wrong with the stored content, in words; None when it is as it was saved."""
    try:
        check_content(revision)
    except ContentMismatch as error:
        return str(error)
    return None
