"""Pages of evidence: list, editor, one piece with its revisions, difference, transitions."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST, require_safe

from pocs.common.errors import NotFound
from pocs.common.ui.mixins import actor_of, page, service_errors, service_messages
from pocs.evidence import selectors, services
from pocs.evidence.choices import EvidenceType
from pocs.evidence.difference import changes_between
from pocs.evidence.ui.detail import render_detail
from pocs.evidence.ui.editor import Editor, tell_saved
from pocs.evidence.ui.forms import initial_of
from pocs.evidence.ui.review_forms import ReturnForm, ReviewForm, SubmitForm
from pocs.evidence.ui.section import context as section_context
from pocs.evidence.uploads import limited_uploads
from pocs.evidence.validation import run_refusal
from pocs.people import policies
from pocs.projects.models import Project
from pocs.projects.selectors import project_get
from pocs.runs.selectors import run_get


@page
@require_safe
def evidence_list(request: HttpRequest, pk: int) -> HttpResponse:
    """All evidence of a project by type."""
    actor = actor_of(request)
    project = project_get(actor, pk)
    return render(request, "evidence/list.html", section_context(project, actor))


@limited_uploads
@page
def evidence_new(request: HttpRequest, pk: int, type: str = EvidenceType.RUNTIME) -> HttpResponse:
    """New evidence of a type; `?run=` captures its configuration or attaches it."""
    actor = actor_of(request)
    project = project_get(actor, pk, "evidence.edit")
    if type not in EvidenceType.values:
        raise NotFound(_("There is no such type of evidence."))

    def save(editor: Editor) -> str:
        evidence = services.evidence_create(
            actor=actor,
            project=project,
            type=type,
            title=editor.form.cleaned_data["title"],
            body=editor.body(),
            runs=editor.form.chosen_runs(),
            uploads=editor.form.uploads(),
        )
        tell_saved(request, evidence.revisions.get())
        return reverse("evidence:detail", args=[evidence.pk])

    initial = {} if request.method == "POST" else _initial_from_run(request, project, EvidenceType(type))
    return Editor(request, actor, project, EvidenceType(type), save, initial=initial).respond()


def _initial_from_run(request: HttpRequest, project: Project, type: EvidenceType) -> dict[str, Any]:
    """What a form for the run named by `?run=` starts with; a run that is no evidence is told so."""
    asked = request.GET.get("run", "")
    if not asked.isdigit():
        return {}
    run = run_get(actor_of(request), int(asked))
    if run.project_id != project.pk:
        raise NotFound(_("There is no such run in this project."))
    if not run.counts_as_evidence:
        messages.error(request, run_refusal(run))
        return {}
    if type == EvidenceType.CONFIGURATION:
        body = services.configuration_from_run(run)
        title = _("Configuration of run %(run)s") % {"run": run}
        return initial_of(type, title=title, body=body)
    if type != EvidenceType.RUNTIME:
        return {}
    seen = run.requests.filter(warmup=False).order_by()
    tenants = seen.exclude(tenant="").values_list("tenant", flat=True).distinct()
    applications = seen.exclude(application="").values_list("application", flat=True).distinct()
    return {
        "title": _("Run %(run)s: %(scenario)s") % {"run": run, "scenario": run.scenario_version},
        "runs": [run.pk],
        "tenants": "\n".join(sorted(tenants)),
        "applications": "\n".join(sorted(applications)),
    }


@limited_uploads
@page
def evidence_edit(request: HttpRequest, pk: int) -> HttpResponse:
    """Edit the draft, or write the next revision of what was submitted already."""
    actor = actor_of(request)
    evidence = selectors.evidence_get(actor, pk)
    policies.require(actor, "evidence.edit", evidence.project)
    latest = selectors.revisions_of(evidence)[0]

    def save(editor: Editor) -> str:
        revision = services.revision_edit(
            actor=actor,
            evidence=evidence,
            version=editor.form.cleaned_data.get("version") or 0,
            title=editor.form.cleaned_data["title"],
            body=editor.body(),
            runs=editor.form.chosen_runs(),
            uploads=editor.form.uploads(),
        )
        tell_saved(request, revision)
        return reverse("evidence:detail", args=[evidence.pk])

    return Editor(request, actor, evidence.project, EvidenceType(evidence.type), save, latest).respond()


@page
@require_safe
def evidence_detail(request: HttpRequest, pk: int) -> HttpResponse:
    """One piece of evidence at its newest revision, or at `?revision=`."""
    return render_detail(request, pk, asked=request.GET.get("revision", ""))


@page
@require_GET
def evidence_difference(request: HttpRequest, pk: int) -> HttpResponse:
    """What changed from one revision (`?from=`) to another (`?to=`); by default the last two."""
    actor = actor_of(request)
    evidence = selectors.evidence_get(actor, pk)
    revisions = {str(item.number): item for item in selectors.revision_lines(evidence)}
    numbers = list(revisions)
    newer = request.GET.get("to") or numbers[0]
    older = request.GET.get("from") or str(max(int(newer) - 1, 1) if newer.isdigit() else 1)
    if newer not in revisions or older not in revisions:
        raise NotFound(_("There is no such revision."))
    before, after = (selectors.revision_get(actor, revisions[number].pk) for number in (older, newer))
    context = {
        "project": evidence.project,
        "evidence": evidence,
        "revisions": list(revisions.values()),
        "older": before,
        "newer": after,
        "changes": changes_between(before, after),
    }
    return render(request, "evidence/difference.html", context)


@page
@require_POST
def revision_submit(request: HttpRequest, pk: int) -> HttpResponse:
    """Hand the draft over; what is missing comes back as messages."""
    actor = actor_of(request)
    revision = selectors.revision_get(actor, pk)
    form = SubmitForm(request.POST)
    form.is_valid()
    success = _("Revision %(number)d waits for its review by someone who did not contribute.")
    with service_messages(request, success % {"number": revision.number}):
        services.revision_submit(actor=actor, revision=revision, note=form.cleaned_data.get("note", ""))
    return redirect("evidence:detail", revision.evidence_id)


@page
@require_POST
def revision_review(request: HttpRequest, pk: int) -> HttpResponse:
    """Accept a submitted revision."""
    actor = actor_of(request)
    revision = selectors.revision_get(actor, pk)
    form = ReviewForm(request.POST)
    form.is_valid()
    with service_errors(form) as call:
        services.revision_review(actor=actor, revision=revision, note=form.cleaned_data.get("note", ""))
    if call.failed:
        return render_detail(
            request, revision.evidence_id, asked=str(revision.number), status=call.status, review_form=form
        )
    messages.success(request, _("Revision %(number)d is reviewed.") % {"number": revision.number})
    return redirect("evidence:detail", revision.evidence_id)


@page
@require_POST
def revision_return(request: HttpRequest, pk: int) -> HttpResponse:
    """Send a submitted revision back with a reason."""
    actor = actor_of(request)
    revision = selectors.revision_get(actor, pk)
    form = ReturnForm(request.POST)
    status = 400
    if form.is_valid():
        with service_errors(form) as call:
            services.revision_return(actor=actor, revision=revision, reason=form.cleaned_data["reason"])
        if not call.failed:
            messages.success(request, _("Revision %(number)d is returned.") % {"number": revision.number})
            return redirect("evidence:detail", revision.evidence_id)
        status = call.status
    return render_detail(
        request, revision.evidence_id, asked=str(revision.number), status=status, return_form=form
    )
