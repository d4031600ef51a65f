"""Pages of packages: the list, one package with its signatures, signing and withdrawing."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from pocs.common.actors import Actor
from pocs.common.errors import DomainError, GateNotMet
from pocs.common.ui.mixins import actor_of, page, service_errors, service_messages
from pocs.people import policies
from pocs.people.selectors import person_behind
from pocs.projects.selectors import project_get
from pocs.reviews import selectors, services
from pocs.reviews.choices import CURRENT_APPROVALS, STANDING_STATES, ObjectionState, PackageState
from pocs.reviews.citations import line_in_words
from pocs.reviews.figures import figures_of, runs_of_package
from pocs.reviews.models import Package, SignOff
from pocs.reviews.objections import answer_hindrance, deciders
from pocs.reviews.policy import objections_until
from pocs.reviews.readable import manifest_sections
from pocs.reviews.ui.forms import AnswerForm, ObjectionForm, ReasonForm, RulingForm, SignForm

Bound = tuple[int, forms.Form]


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
    return package_page(request, actor, selectors.package_get(actor, pk))


@page
@require_POST
def sign(request: HttpRequest, pk: int, slot: str) -> HttpResponse:
    """Sign one slot; the form comes back as typed, without the password, when it is refused."""
    actor = actor_of(request)
    row = selectors.package_get(actor, pk)
    mine = [item for view in selectors.slot_views(row, actor) if view.slot == slot for item in view.mine]
    form = SignForm(request.POST, prefix=slot, candidates=mine)
    status = 400
    if form.is_valid():
        values = dict(form.cleaned_data)
        values.pop("capacity", None)
        behalf = selectors.person_of(row.project, form.principal_id or 0)
        with service_errors(form) as call:
            services.signoff_sign(actor=actor, package=row, slot=slot, on_behalf_of=behalf, **values)
        if not call.failed:
            messages.success(request, _("Your signature is stored and bound to the package's digest."))
            return redirect("reviews:package", pk=pk)
        row = selectors.package_get(actor, pk)
        status = call.status
    return package_page(request, actor, row, signing=(slot, form), status=status)


@page
@require_POST
def ask_again(request: HttpRequest, pk: int, slot: str) -> HttpResponse:
    """Ask anew for a signature whose time was over."""
    actor = actor_of(request)
    row = selectors.package_get(actor, pk)
    with service_messages(request, _("The signature is asked for again.")):
        services.signoff_ask_again(actor=actor, package=row, slot=slot)
    return redirect("reviews:package", pk=pk)


@page
@require_POST
def withdraw(request: HttpRequest, pk: int) -> HttpResponse:
    """Take one's own approval back."""
    actor = actor_of(request)
    signoff = selectors.signoff_get(actor, pk)
    form = ReasonForm(request.POST, prefix=f"withdraw-{pk}")
    status = 400
    if form.is_valid():
        with service_errors(form) as call:
            services.signoff_withdraw(actor=actor, signoff=signoff, **form.cleaned_data)
        if not call.failed:
            messages.success(request, _("Your signature is withdrawn; the slot is open again."))
            return redirect("reviews:package", pk=signoff.package_id)
        status = call.status
    row = selectors.package_get(actor, signoff.package_id)
    return package_page(request, actor, row, withdrawing=(pk, form), status=status)


def package_page(
    request: HttpRequest,
    actor: Actor,
    row: Package,
    *,
    signing: tuple[str, SignForm] | None = None,
    withdrawing: Bound | None = None,
    objecting: ObjectionForm | None = None,
    acting: Bound | None = None,
    status: int = 200,
) -> HttpResponse:
    """The page of a package; a form that was refused comes back in its place."""
    waiting = row.state == PackageState.FROZEN
    may_ask = waiting and policies.allowed(actor, "package.freeze", row.project)
    slots = []
    for view in selectors.slot_views(row, actor):
        form = None
        if waiting and not view.filled and not view.lapsed and any(item.eligible for item in view.mine):
            form = SignForm(prefix=view.slot.value, candidates=view.mine)
            if signing and signing[0] == view.slot:
                form = signing[1]
        seats = [
            {"row": seat, "withdraw": _withdraw_form(actor, row, seat, withdrawing)} for seat in view.seats
        ]
        slots.append({"view": view, "form": form, "seats": seats, "may_ask": may_ask and view.lapsed})
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
        **objections_context(actor, row, objecting, acting),
    }
    return render(request, "reviews/package.html", context, status=status)


def objections_context(
    actor: Actor, package: Package, objecting: ObjectionForm | None, acting: Bound | None
) -> dict[str, Any]:
    """The objections with what the reader may do about each, and the form to raise one."""
    rows = []
    user = person_behind(actor)
    objections = list(selectors.objections_of(actor, package))
    for objection in objections:
        answer: forms.Form | None = None
        ruling: forms.Form | None = None
        found = deciders(objection) if objection.state == ObjectionState.ANSWERED else []
        if user is not None and objection.undecided and not answer_hindrance(objection, user):
            answer = AnswerForm(prefix=f"answer-{objection.pk}", initial={"answer": objection.answer})
        if any(person.pk == actor.user_id and not why for person, why in found):
            ruling = RulingForm(prefix=f"ruling-{objection.pk}")
        if acting and acting[0] == objection.pk:
            answer, ruling = (acting[1], ruling) if isinstance(acting[1], AnswerForm) else (answer, acting[1])
        mine = objection.undecided and objection.raised_by_id == actor.user_id
        row = {"objection": objection, "answer": answer, "ruling": ruling, "mine": mine, "deciders": found}
        rows.append(row | {"line": line_in_words(objection)})
    contestable = (
        package.state in STANDING_STATES and not package.decisions.filter(state="confirmed").exists()
    )
    may_object = contestable and policies.allowed(actor, "objection.raise", package.project)
    return {
        "objections": rows,
        "disputed": any(objection.undecided for objection in objections),
        "object_form": (objecting or ObjectionForm(package=package, prefix="object")) if may_object else None,
        "objections_until": objections_until(package),
    }


def _withdraw_form(actor: Actor, row: Package, seat: SignOff, bound: Bound | None) -> forms.Form | None:
    if seat.state not in CURRENT_APPROVALS or actor.user_id not in (seat.signer_id, seat.on_behalf_of_id):
        return None
    if row.state not in (PackageState.FROZEN, PackageState.APPROVED):
        return None
    return bound[1] if bound and bound[0] == seat.pk else ReasonForm(prefix=f"withdraw-{seat.pk}")
