"""Comments on lines of evidence, and asking a person for its review."""

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from pocs.common.errors import NotFound
from pocs.common.ui.mixins import actor_of, page, service_errors, service_messages
from pocs.evidence import selectors, services
from pocs.evidence.lines import Line, lines_of
from pocs.evidence.models import EvidenceRevision, Thread
from pocs.evidence.ui.detail import render_detail
from pocs.evidence.ui.review_forms import CommentForm, LineCommentForm, ReviewRequestForm


@page
@require_http_methods(["GET", "POST"])
def thread_open(request: HttpRequest, pk: int) -> HttpResponse:
    """A comment on one of the lines of `?field=`; the lines to choose from stand on the page."""
    actor = actor_of(request)
    revision = selectors.revision_get(actor, pk)
    name = request.GET.get("field", "")
    lines = [line for line in lines_of(revision).values() if line.field == name]
    if not lines:
        raise NotFound(_("There is no field “%(name)s” here.") % {"name": name})
    form = LineCommentForm(request.POST or None, lines=lines)
    status = 200
    if request.method == "POST":
        status = 400
        if form.is_valid():
            with service_errors(form) as call:
                thread = services.thread_open(
                    actor=actor, revision=revision, text=form.cleaned_data["text"], **form.anchor()
                )
            if not call.failed:
                return redirect(_place(revision, thread))
            status = call.status
    context = {
        "project": revision.evidence.project,
        "evidence": revision.evidence,
        "revision": revision,
        "form": form,
        "heading": _heading(lines),
    }
    return render(request, "evidence/comment.html", context, status=status)


def _heading(lines: list[Line]) -> str:
    return lines[0].label.split(" · ")[0]


def _place(revision: EvidenceRevision, thread: Thread) -> str:
    url = reverse("evidence:detail", args=[revision.evidence_id])
    return f"{url}?revision={revision.number}#thread-{thread.pk}"


@page
@require_POST
def thread_comment(request: HttpRequest, pk: int) -> HttpResponse:
    """Answer in a thread; a refused answer stands in its form again."""
    actor = actor_of(request)
    thread = selectors.thread_get(actor, pk)
    shown = _shown(request, thread)
    form = CommentForm(request.POST)
    status = 400
    if form.is_valid():
        with service_errors(form) as call:
            services.thread_comment(actor=actor, thread=thread, text=form.cleaned_data["text"])
        if not call.failed:
            return redirect(_place(shown, thread))
        status = call.status
    return render_detail(
        request,
        thread.evidence_id,
        asked=str(shown.number),
        status=status,
        comment_form=form,
        comment_thread=thread.pk,
    )


@page
@require_POST
def thread_state(request: HttpRequest, pk: int, to: str) -> HttpResponse:
    """Resolve a thread, or open it again."""
    change: dict[str, Callable[..., Any]] = {
        "resolve": services.thread_resolve,
        "reopen": services.thread_reopen,
    }
    actor = actor_of(request)
    thread = selectors.thread_get(actor, pk)
    if to not in change:
        raise NotFound(_("There is no such discussion."))
    with service_messages(request):
        change[to](actor=actor, thread=thread)
    return redirect(_place(_shown(request, thread), thread))


def _shown(request: HttpRequest, thread: Thread) -> EvidenceRevision:
    """The revision on whose page the button was pressed."""
    number = request.POST.get("revision", "")
    found = thread.evidence.revisions.filter(number=int(number)).first() if number.isdecimal() else None
    return found or thread.revision


@page
@require_POST
def review_request(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask a person for the review."""
    actor = actor_of(request)
    revision = selectors.revision_get(actor, pk)
    form = ReviewRequestForm(request.POST, people=selectors.possible_reviewers(revision.evidence))
    status = 400
    if form.is_valid():
        with service_errors(form) as call:
            services.review_request(actor=actor, revision=revision, **form.cleaned_data)
        if not call.failed:
            text = _("%(person)s is asked for the review.") % {"person": form.cleaned_data["person"]}
            messages.success(request, text)
            return redirect("evidence:detail", revision.evidence_id)
        status = call.status
    return render_detail(
        request, revision.evidence_id, asked=str(revision.number), status=status, request_form=form
    )


@page
@require_POST
def review_request_withdraw(request: HttpRequest, pk: int) -> HttpResponse:
    """Take a request back."""
    actor = actor_of(request)
    asked = selectors.review_request_get(actor, pk)
    with service_messages(request, _("The request is taken back.")):
        services.review_request_withdraw(actor=actor, request=asked)
    return redirect("evidence:detail", asked.revision.evidence_id)
