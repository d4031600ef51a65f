"""Pages of packages: the list, one package with its signatures, signing and withdrawing."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from pocs.common.actors import Actor
from pocs.common.errors import DomainError, GateNotMet
from pocs.common.ui.mixins import actor_of, page, service_errors
from pocs.people import policies
from pocs.projects.selectors import project_get
from pocs.reviews import selectors, services
from pocs.reviews.choices import CURRENT_APPROVALS, PackageState
from pocs.reviews.figures import figures_of, runs_of_package
from pocs.reviews.models import Package
from pocs.reviews.readable import manifest_sections
from pocs.reviews.ui.forms import ReasonForm, SignForm


@page
def packages(request: HttpRequest, pk: int) -> HttpResponse:
    """The project's packages; POST freezes the next one."""
    actor = actor_of(request)
    project = project_get(actor, pk)
    error: DomainError | None = None
    if request.method == "POST":
        try:
            frozen = services.package_freeze(actor=actor, project=project)
        except GateNotMet as refused:
            error = refused
        except DomainError as refused:
            if refused.status in (403, 404):
                raise
            error = refused
        else:
            messages.success(
                request,
                _("Package %(number)d is frozen and waits for three signatures.") % {"number": frozen.number},
            )
            return redirect("reviews:package", pk=frozen.pk)
    context = {
        "project": project,
        "packages": selectors.packages_of(actor, project),
        "may_freeze": policies.allowed(actor, "package.freeze", project),
        "error": error,
        "missing": getattr(error, "missing", []),
    }
    return render(request, "reviews/packages.html", context, status=error.status if error else 200)


@page
def package(request: HttpRequest, pk: int) -> HttpResponse:
    """One package: what it holds, what its signatures mean and who gave them."""
    actor = actor_of(request)
    return _render(request, actor, selectors.package_get(actor, pk))


@page
@require_POST
def sign(request: HttpRequest, pk: int, slot: str) -> HttpResponse:
    """Sign one slot; the form comes back as typed, without the password, when it is refused."""
    actor = actor_of(request)
    row = selectors.package_get(actor, pk)
    form = SignForm(request.POST, prefix=slot)
    if form.is_valid():
        with service_errors(form) as call:
            services.signoff_sign(actor=actor, package=row, slot=slot, **form.cleaned_data)
        if not call.failed:
            messages.success(request, _("Your signature is stored and bound to the package's digest."))
            return redirect("reviews:package", pk=pk)
        row = selectors.package_get(actor, pk)
        return _render(request, actor, row, signing=(slot, form), status=call.status)
    return _render(request, actor, row, signing=(slot, form), status=400)


@page
@require_POST
def withdraw(request: HttpRequest, pk: int) -> HttpResponse:
    """Take one's own approval back."""
    actor = actor_of(request)
    signoff = selectors.signoff_get(actor, pk)
    form = ReasonForm(request.POST, prefix="withdraw")
    status = 400
    if form.is_valid():
        with service_errors(form) as call:
            services.signoff_withdraw(actor=actor, signoff=signoff, **form.cleaned_data)
        if not call.failed:
            messages.success(request, _("Your signature is withdrawn; the slot is open again."))
            return redirect("reviews:package", pk=signoff.package_id)
        status = call.status
    row = selectors.package_get(actor, signoff.package_id)
    return _render(request, actor, row, withdrawing=form, status=status)


def _render(
    request: HttpRequest,
    actor: Actor,
    row: Package,
    *,
    signing: tuple[str, SignForm] | None = None,
    withdrawing: ReasonForm | None = None,
    status: int = 200,
) -> HttpResponse:
    waiting = row.state == PackageState.FROZEN
    slots = []
    for view in selectors.slot_views(row, actor):
        form = None
        if waiting and not view.filled and view.mine and view.mine.eligible:
            form = signing[1] if signing and signing[0] == view.slot else SignForm(prefix=view.slot.value)
        slots.append({"view": view, "form": form, "withdraw": _withdraw_form(actor, row, view, withdrawing)})
    previous, differences = selectors.difference_to_previous(row)
    context = {
        "project": row.project,
        "package": row,
        "slots": slots,
        "waiting": waiting,
        "previous": previous,
        "differences": differences,
        "sections": manifest_sections(row.manifest),
        "figures": figures_of(runs_of_package(row)),
        "is_latest": not Package.objects.filter(project=row.project, number__gt=row.number).exists(),
    }
    return render(request, "reviews/package.html", context, status=status)


def _withdraw_form(
    actor: Actor, row: Package, view: selectors.SlotView, bound: ReasonForm | None
) -> ReasonForm | None:
    current = view.current
    if current is None or current.state not in CURRENT_APPROVALS or current.signer_id != actor.user_id:
        return None
    if row.state not in (PackageState.FROZEN, PackageState.APPROVED):
        return None
    return bound or ReasonForm(prefix="withdraw")
