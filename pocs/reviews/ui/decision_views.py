"""The page of the decision: proposing, confirming, taking back, closing conditions."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from pocs.common.actors import Actor
from pocs.common.ui.mixins import actor_of, page, service_errors, service_messages
from pocs.people import policies
from pocs.projects.choices import ProjectState
from pocs.projects.models import Project
from pocs.projects.selectors import project_get
from pocs.reviews import selectors, services
from pocs.reviews.choices import DecisionOutcome, DecisionState, SignOffState
from pocs.reviews.guards import check_confirmer, check_signatures
from pocs.reviews.models import Decision, Package, SignOff
from pocs.reviews.services.decisions import confirm_hindrance
from pocs.reviews.ui.forms import CloseConditionForm, DecisionForm, ReasonForm


@page
def decision(request: HttpRequest, pk: int) -> HttpResponse:
    """The decision now and before; POST proposes one on the newest package."""
    actor = actor_of(request)
    project = project_get(actor, pk)
    if request.method != "POST":
        return _render(request, actor, project)
    form = DecisionForm(request.POST, project=project)
    if not form.is_valid():
        return _render(request, actor, project, proposal=form, status=400)
    package = selectors.latest_package(project)
    if package is None:
        form.add_error(None, _("No package has been frozen yet; there is nothing to decide on."))
        return _render(request, actor, project, proposal=form, status=409)
    conditions = [services.ConditionInput(**values) for values in form.conditions()]
    with service_errors(form) as call:
        services.decision_propose(
            actor=actor,
            package=package,
            outcome=form.cleaned_data["outcome"],
            next_step=form.cleaned_data["next_step"],
            rationale=form.cleaned_data["rationale"],
            conditions=conditions,
        )
    if call.failed:
        return _render(request, actor, project, proposal=form, status=call.status)
    messages.success(request, _("The decision is proposed; another person confirms it."))
    return redirect("reviews:decision", pk=pk)


@page
@require_POST
def decision_confirm(request: HttpRequest, pk: int) -> HttpResponse:
    """Confirm a proposed decision by name."""
    actor = actor_of(request)
    row = selectors.decision_get(actor, pk)
    with service_messages(request, _("The decision is confirmed.")):
        services.decision_confirm(actor=actor, decision=row)
    return redirect("reviews:decision", pk=row.project_id)


@page
@require_POST
def decision_revoke(request: HttpRequest, pk: int) -> HttpResponse:
    """Take a decision back."""
    actor = actor_of(request)
    row = selectors.decision_get(actor, pk)
    form = ReasonForm(request.POST, prefix="revoke")
    status = 400
    if form.is_valid():
        with service_errors(form) as call:
            services.decision_revoke(actor=actor, decision=row, **form.cleaned_data)
        if not call.failed:
            return redirect("reviews:decision", pk=row.project_id)
        status = call.status
    return _render(request, actor, row.project, revoking=form, status=status)


@page
@require_POST
def condition_close(request: HttpRequest, pk: int) -> HttpResponse:
    """Close a condition with what shows that it is met."""
    actor = actor_of(request)
    condition = selectors.condition_get(actor, pk)
    project = condition.decision.project
    form = CloseConditionForm(request.POST, prefix=f"condition-{pk}", project=project)
    status = 400
    if form.is_valid():
        with service_errors(form) as call:
            services.condition_close(actor=actor, condition=condition, **form.cleaned_data)
        if not call.failed:
            return redirect("reviews:decision", pk=project.pk)
        status = call.status
    return _render(request, actor, project, closing=(pk, form), status=status)


def _render(
    request: HttpRequest,
    actor: Actor,
    project: Project,
    *,
    proposal: DecisionForm | None = None,
    revoking: ReasonForm | None = None,
    closing: tuple[int, CloseConditionForm] | None = None,
    status: int = 200,
) -> HttpResponse:
    decisions = list(selectors.decisions_of(actor, project))
    ended = (DecisionState.REVOKED, DecisionState.SUPERSEDED)
    current = next((row for row in decisions if row.state not in ended), None)
    package = selectors.latest_package(project)
    may_propose = policies.allowed(actor, "decision.propose", project)
    in_review = project.state == ProjectState.IN_REVIEW
    context: dict[str, Any] = {
        "project": project,
        "package": package,
        "current": current,
        "earlier": [row for row in decisions if row is not current],
        "missing": check_signatures(project) + check_confirmer(project) if in_review else [],
        "conditional": _conditional(package),
        "form": None,
        "revoke_form": None,
        "confirm": _confirm(actor, project, current),
        "conditions": _conditions(actor, project, current, closing),
    }
    if may_propose and in_review and (current is None or current.state == DecisionState.PROPOSED):
        context["form"] = proposal or DecisionForm(
            project=project, initial=_taken_over(context["conditional"])
        )
    if current is not None and _may_revoke(actor, project, current):
        context["revoke_form"] = revoking or ReasonForm(prefix="revoke")
    return render(request, "reviews/decision.html", context, status=status)


def _conditional(package: Package | None) -> list[SignOff]:
    """Signatures that approve with conditions: the proposal takes their conditions over."""
    if package is None:
        return []
    return list(package.signoffs.filter(state=SignOffState.APPROVED_WITH_CONDITIONS).select_related("signer"))


def _taken_over(conditional: list[SignOff]) -> dict[str, str]:
    """The signers' conditions as the first conditions of a proposal."""
    texts = {f"condition_{index}_text": row.comment for index, row in enumerate(conditional)}
    return {"outcome": DecisionOutcome.ACCEPTED_WITH_CONDITIONS.value} | texts if texts else {}


def _confirm(actor: Actor, project: Project, current: Decision | None) -> dict[str, Any] | None:
    """Whether the reader may confirm, and if not, why; None when there is nothing to confirm."""
    if current is None or current.state != DecisionState.PROPOSED:
        return None
    if not policies.allowed(actor, "decision.confirm", project) or actor.user_id is None:
        return {"may": False, "why": _("A decision maker of this project confirms it.")}
    why = confirm_hindrance(current, actor.user_id)
    return {"may": not why, "why": why}


def _may_revoke(actor: Actor, project: Project, current: Decision) -> bool:
    own_proposal = current.state == DecisionState.PROPOSED and current.proposed_by_id == actor.user_id
    capability = "decision.propose" if own_proposal else "decision.confirm"
    return policies.allowed(actor, capability, project)


def _conditions(
    actor: Actor, project: Project, current: Decision | None, closing: tuple[int, CloseConditionForm] | None
) -> list[dict[str, Any]]:
    if current is None:
        return []
    may_all = policies.allowed(actor, "decision.confirm", project)
    rows = []
    for condition in current.conditions.all():
        form = None
        mine = may_all or condition.owner_id == actor.user_id
        if condition.closed_at is None and current.state == DecisionState.CONFIRMED and mine:
            prefix = f"condition-{condition.pk}"
            form = CloseConditionForm(prefix=prefix, project=project)
            if closing and closing[0] == condition.pk:
                form = closing[1]
        rows.append({"condition": condition, "form": form})
    return rows
