"""Raising, answering and deciding objections, on the page of their package."""

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from pocs.common.ui.mixins import actor_of, page, service_errors, service_messages
from pocs.reviews import selectors, services
from pocs.reviews.models import Objection
from pocs.reviews.ui.forms import AnswerForm, ObjectionForm, RulingForm
from pocs.reviews.ui.package_views import package_page


@page
@require_POST
def objection_raise(request: HttpRequest, pk: int) -> HttpResponse:
    """Object to a line of the package."""
    actor = actor_of(request)
    package = selectors.package_get(actor, pk)
    form = ObjectionForm(request.POST, package=package, prefix="object")
    status = 400
    if form.is_valid():
        with service_errors(form) as call:
            services.objection_raise(actor=actor, package=package, **form.cleaned_data)
        if not call.failed:
            messages.success(request, _("Your objection is raised; nothing is approved until it is decided."))
            return redirect(f"{package_url(pk)}#objections")
        status = call.status
    return package_page(request, actor, package, objecting=form, status=status)


@page
@require_POST
def objection_answer(request: HttpRequest, pk: int) -> HttpResponse:
    """Answer an objection."""
    actor = actor_of(request)
    row = selectors.objection_get(actor, pk)
    return _act(request, row, AnswerForm(request.POST, prefix=f"answer-{pk}"), services.objection_answer)


@page
@require_POST
def objection_rule(request: HttpRequest, pk: int) -> HttpResponse:
    """Decide an answered objection."""
    actor = actor_of(request)
    row = selectors.objection_get(actor, pk)
    return _act(request, row, RulingForm(request.POST, prefix=f"ruling-{pk}"), services.objection_rule)


@page
@require_POST
def objection_withdraw(request: HttpRequest, pk: int) -> HttpResponse:
    """Take one's own objection back."""
    actor = actor_of(request)
    row = selectors.objection_get(actor, pk)
    with service_messages(request, _("The objection is taken back.")):
        services.objection_withdraw(actor=actor, objection=row)
    return redirect(f"{package_url(row.package_id)}#objections")


def package_url(pk: int) -> str:
    return reverse("reviews:package", args=[pk])


def _act(request: HttpRequest, row: Objection, form: forms.Form, service: Callable[..., Any]) -> HttpResponse:
    actor = actor_of(request)
    status = 400
    if form.is_valid():
        with service_errors(form) as call:
            service(actor=actor, objection=row, **form.cleaned_data)
        if not call.failed:
            return redirect(f"{package_url(row.package_id)}#objections")
        status = call.status
    package = selectors.package_get(actor, row.package_id)
    return package_page(request, actor, package, acting=(row.pk, form), status=status)
