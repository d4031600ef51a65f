"""Pages of notices: what I was told, how I am told, and webhooks with the log of their deliveries."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from pocs.common.errors import StaleVersion
from pocs.common.ui.mixins import actor_of, page, service_errors, service_messages
from pocs.notices import selectors, services
from pocs.notices.models import Webhook
from pocs.notices.services.delivering import ATTEMPTS_MAX
from pocs.notices.ui.forms import EditWebhookForm, NewWebhookForm, PreferencesForm
from pocs.people.selectors import is_admin

PAGE_SIZE = 50


@require_GET
@page
def notice_list(request: HttpRequest) -> HttpResponse:
    """What the person was told, newest first."""
    found = Paginator(selectors.notices_of(actor_of(request)), PAGE_SIZE).get_page(request.GET.get("page"))
    return render(request, "notices/list.html", {"page": found})


@require_http_methods(["GET", "POST"])
@page
def preferences(request: HttpRequest) -> HttpResponse:
    """The channel of each kind, and the digest."""
    actor = actor_of(request)
    chosen = selectors.settings_of(actor)
    initial = {
        "digest_on": chosen.digest_on,
        "digest_hour": chosen.digest_hour,
        "version": chosen.version,
    }
    form = PreferencesForm(request.POST or None, kinds=selectors.kind_choices(chosen), initial=initial)
    status = 200
    if request.method == "POST":
        status = 400
        if form.is_valid():
            given = {name: form.cleaned_data[name] for name in ("digest_on", "digest_hour", "version")}
            with service_errors(form) as call:
                services.notice_settings_set(actor=actor, channels=form.channels(), **given)
            if not call.failed:
                messages.success(request, _("Your preferences are saved."))
                return redirect("notices:preferences")
            if isinstance(call.error, StaleVersion):
                _accept_stored(form, chosen.version)
            status = call.status
    context = {"form": form, "mail_is_sent": settings.PHASEGATE_EMAIL}
    return render(request, "notices/preferences.html", context, status=status)


@require_http_methods(["GET", "POST"])
@page
def webhooks(request: HttpRequest) -> HttpResponse:
    """The webhooks that the person keeps; a new one's secret is shown once, in the answer to its form."""
    actor = actor_of(request)
    form = NewWebhookForm(request.POST or None, is_admin=is_admin(actor))
    status = 200
    shown: dict[str, Any] = {}
    if request.method == "POST":
        status = 400
        if form.is_valid():
            with service_errors(form) as call:
                hook, secret = services.webhook_create(actor=actor, **form.cleaned_data)
            status = call.status
            if not call.failed:
                shown = {"secret": secret, "hook": hook}
                form = NewWebhookForm(is_admin=is_admin(actor))
    context = {"webhooks": selectors.webhooks_of(actor), "form": form} | shown
    return _unstored(render(request, "notices/webhooks.html", context, status=status), bool(shown))


@require_http_methods(["GET", "POST"])
@page
def webhook(request: HttpRequest, pk: int) -> HttpResponse:
    """One webhook: its settings and the log of its deliveries."""
    actor = actor_of(request)
    hook = selectors.webhook_get(actor, pk)
    form = EditWebhookForm(request.POST or None, initial=_initial(hook))
    status = 200
    if request.method == "POST":
        status = 400
        if form.is_valid():
            with service_errors(form) as call:
                services.webhook_update(actor=actor, webhook=hook, **form.cleaned_data)
            if not call.failed:
                messages.success(request, _("Saved."))
                return redirect("notices:webhook", pk)
            if isinstance(call.error, StaleVersion):
                _accept_stored(form, hook.version)
            status = call.status
    return _webhook_page(request, hook, form, status=status)


@require_POST
@page
def webhook_secret(request: HttpRequest, pk: int) -> HttpResponse:
    """A new secret, shown once in this answer."""
    actor = actor_of(request)
    hook, secret = services.webhook_secret_renew(actor=actor, webhook=selectors.webhook_get(actor, pk))
    form = EditWebhookForm(initial=_initial(hook))
    return _unstored(_webhook_page(request, hook, form, secret=secret), True)


@require_POST
@page
def webhook_try(request: HttpRequest, pk: int) -> HttpResponse:
    """A trial message; its outcome appears in the log."""
    actor = actor_of(request)
    with service_messages(request, _("A trial message is on its way; the log below shows what came of it.")):
        services.webhook_try(actor=actor, webhook=selectors.webhook_get(actor, pk))
    return redirect("notices:webhook", pk)


@require_POST
@page
def webhook_delete(request: HttpRequest, pk: int) -> HttpResponse:
    """Take a webhook away."""
    actor = actor_of(request)
    services.webhook_delete(actor=actor, webhook=selectors.webhook_get(actor, pk))
    messages.success(request, _("The webhook is gone."))
    return redirect("notices:webhooks")


@require_POST
@page
def delivery_repeat(request: HttpRequest, pk: int) -> HttpResponse:
    """Send an ended delivery once more."""
    actor = actor_of(request)
    delivery = selectors.delivery_get(actor, pk)
    with service_messages(request, _("It is sent again.")):
        services.delivery_repeat(actor=actor, delivery=delivery)
    return redirect("notices:webhook", delivery.webhook_id)


def _webhook_page(
    request: HttpRequest, hook: Webhook, form: EditWebhookForm, *, status: int = 200, secret: str = ""
) -> HttpResponse:
    found = Paginator(hook.deliveries.order_by("-id"), PAGE_SIZE).get_page(request.GET.get("page"))
    context = {"hook": hook, "form": form, "page": found, "secret": secret, "attempts_max": ATTEMPTS_MAX}
    return render(request, "notices/webhook.html", context, status=status)


def _initial(hook: Webhook) -> dict[str, Any]:
    return {name: getattr(hook, name) for name in ("name", "url", "kinds", "active", "version")}


def _accept_stored(form: Any, version: int) -> None:
    """Let a second save replace what is stored now."""
    form.data = form.data.copy()
    form.data["version"] = str(version)


def _unstored(response: HttpResponse, secret_shown: bool) -> HttpResponse:
    if secret_shown:
        response["Cache-Control"] = "no-store"
    return response
