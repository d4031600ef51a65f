"""Files of evidence: attach, take off, download."""

from django.contrib import messages
from django.http import FileResponse, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from pocs.common.ui.mixins import actor_of, page, service_errors, service_messages
from pocs.evidence import selectors, services
from pocs.evidence.downloads import download
from pocs.evidence.files import too_large
from pocs.evidence.ui.detail import render_detail
from pocs.evidence.ui.review_forms import AttachmentForm
from pocs.evidence.uploads import limited_uploads


@limited_uploads
@page
@require_POST
def attachment_add(request: HttpRequest, pk: int) -> HttpResponse:
    """Attach a file to a draft."""
    actor = actor_of(request)
    revision = selectors.revision_get(actor, pk)
    form = AttachmentForm(request.POST, request.FILES)
    status = 400
    skipped = getattr(request, "too_large_files", [])
    if skipped:
        form.full_clean()
        form.errors.clear()
        form.add_error("file", str(too_large(skipped[0]).detail))
    elif form.is_valid():
        with service_errors(form) as call:
            services.attachment_add(actor=actor, revision=revision, upload=form.cleaned_data["file"])
        if not call.failed:
            messages.success(request, _("“%(name)s” is attached.") % {"name": form.cleaned_data["file"].name})
            return redirect("evidence:detail", revision.evidence_id)
        status = call.status
    return render_detail(
        request, revision.evidence_id, asked=str(revision.number), status=status, attachment_form=form
    )


@page
@require_POST
def attachment_remove(request: HttpRequest, pk: int) -> HttpResponse:
    """Take a file off a draft."""
    actor = actor_of(request)
    attachment = selectors.attachment_get(actor, pk)
    with service_messages(request, _("“%(name)s” is taken off.") % {"name": attachment.name}):
        services.attachment_remove(actor=actor, attachment=attachment)
    return redirect("evidence:detail", attachment.revision.evidence_id)


@page
@require_GET
def attachment_download(request: HttpRequest, pk: int, revision_pk: int | None = None) -> FileResponse:
    """The file as a download, on the flat route and below its revision."""
    return download(selectors.attachment_get(actor_of(request), pk, revision_pk=revision_pk))
