"""The organisation's audit for auditors and leads: narrowed, verified, exported by project."""

from typing import Any
from urllib.parse import urlencode

from django import forms
from django.core.paginator import Paginator
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from pocs.common import checkpoints
from pocs.common.actors import Actor
from pocs.common.audit import named_verbs
from pocs.common.ui.mixins import actor_of, page
from pocs.people.selectors import people_of
from pocs.projects import selectors
from pocs.projects.audit_filter import AuditFilter
from pocs.projects.ui.entries import readable

PAGE_SIZE = 50


class AuditForm(forms.Form):
    """What to narrow the audit to; everything is optional."""

    project: forms.ModelChoiceField = forms.ModelChoiceField(
        label=_("Project"), queryset=None, required=False, empty_label=_("All projects")
    )
    person: forms.ModelChoiceField = forms.ModelChoiceField(
        label=_("Person"), queryset=None, required=False, empty_label=_("Everybody")
    )
    verb = forms.ChoiceField(label=_("Change"), required=False)
    since = forms.DateField(label=_("From"), required=False, widget=forms.DateInput(attrs={"type": "date"}))
    until = forms.DateField(label=_("Until"), required=False, widget=forms.DateInput(attrs={"type": "date"}))

    def __init__(self, *args: Any, actor: Actor, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["project"].queryset = selectors.audited_projects(actor)  # type: ignore[attr-defined]
        self.fields["person"].queryset = people_of(actor)  # type: ignore[attr-defined]
        verbs = sorted(((verb, str(name)) for verb, name in named_verbs().items()), key=lambda item: item[1])
        self.fields["verb"].choices = [("", _("every change")), *verbs]  # type: ignore[attr-defined]

    def wanted(self) -> AuditFilter:
        """The filter that was typed; what cannot be read narrows nothing."""
        given = self.cleaned_data if self.is_valid() else getattr(self, "cleaned_data", {})
        project, person = given.get("project"), given.get("person")
        return AuditFilter(
            project=project.pk if project else None,
            person=person.pk if person else None,
            verb=given.get("verb") or "",
            since=given.get("since"),
            until=given.get("until"),
        )


@require_http_methods(["GET", "POST"])
@page
def organisation_audit(request: HttpRequest) -> HttpResponseBase:
    """The entries that match; a POST verifies the whole chain."""
    actor = actor_of(request)
    form = AuditForm(request.GET or None, actor=actor)
    rows = selectors.organisation_history(actor, form.wanted())
    shown = Paginator(rows, PAGE_SIZE).get_page(request.GET.get("page"))
    narrowed = {name: value for name, value in request.GET.items() if name != "page" and value}
    context: dict[str, Any] = {
        "page": shown,
        "entries": readable(list(shown)),
        "form": form,
        "narrowed": urlencode(narrowed),
        "count": shown.paginator.count,
        "public_key": checkpoints.public_key(),
        "exportable": form.wanted().project,
    }
    if request.method == "POST":
        context |= {"verified": True, "problems": selectors.audit_problems(actor)}
    return render(request, "projects/audit.html", context)
