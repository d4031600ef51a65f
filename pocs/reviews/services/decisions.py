"""Services of the decision: proposed by one, confirmed by another, with conditions that must close."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from pocs.common import audit
from pocs.common.actors import Actor
from pocs.common.errors import Conflict, FieldError, InvalidInput, NotPermitted
from pocs.evidence.choices import CURRENT_STATES
from pocs.evidence.models import EvidenceRevision
from pocs.people import policies
from pocs.people.models import User
from pocs.projects import services as project_services
from pocs.projects.choices import ProjectState
from pocs.projects.models import Project
from pocs.reviews.choices import (
    ACCEPTING,
    DecisionOutcome,
    DecisionState,
    NextStep,
    PackageState,
    SignOffState,
)
from pocs.reviews.contributions import contributed
from pocs.reviews.models import Condition, Decision, Package
from pocs.reviews.services.requests import approvals_age, approvals_keep
from pocs.reviews.services.support import (
    require_choice,
    require_date,
    require_member,
    require_open,
    require_person,
    require_text,
    state_of,
    tell,
)


@dataclass(frozen=True, kw_only=True)
class ConditionInput:
    """A condition as it is proposed: what, who sees to it, until when."""

    text: str
    owner: User | None
    due_on: date | None


@transaction.atomic
def decision_propose(
    *,
    actor: Actor,
    package: Package,
    outcome: str,
    next_step: str,
    rationale: str,
    conditions: Sequence[ConditionInput] = (),
) -> Decision:
    """Propose a decision on the current package; an earlier proposal is superseded.

    An accepting outcome needs a package approved by all three; the others may also rest on one
    that a signer rejected. Raises Conflict otherwise, InvalidInput for outcome, next step and
    conditions that do not fit together.
    """
    user_id = require_person(actor)
    policies.require(actor, "decision.propose", package.project)
    require_choice("/outcome", outcome, DecisionOutcome)
    require_choice("/next_step", next_step, NextStep)
    rationale = require_text("/rationale", rationale, _("Give the reasons for the decision."))
    project = Project.objects.select_for_update().get(pk=package.project_id)
    require_open(project)
    package = Package.objects.select_for_update().get(pk=package.pk)
    _require_decidable(project, package, outcome)
    _require_fit(package, outcome, next_step, conditions)
    current = (
        Decision.objects.select_for_update().filter(project=project, state=DecisionState.PROPOSED).first()
    )
    if current is not None:
        _end(actor, current, DecisionState.SUPERSEDED, _("another decision was proposed"))
    decision = Decision.objects.create(
        project=project,
        package=package,
        outcome=outcome,
        next_step=next_step,
        rationale=rationale,
        proposed_by_id=user_id,
    )
    for index, condition in enumerate(conditions):
        at = f"/conditions/{index}"
        Condition.objects.create(
            decision=decision,
            text=require_text(f"{at}/text", condition.text, _("Say what the condition is.")),
            owner=require_member(f"{at}/owner", project, condition.owner),
            due_on=require_date(f"{at}/due_on", condition.due_on),
        )
    _record(actor, decision, "decision.proposed", None)
    return decision


@transaction.atomic
def decision_confirm(*, actor: Actor, decision: Decision) -> Decision:
    """Confirm a proposed decision and move the project to `decided` (G9 and G10 are checked).

    Raises NotPermitted for the proposer and for anyone who contributed to the package's content.
    """
    user_id = require_person(actor)
    policies.require(actor, "decision.confirm", decision.project)
    project = Project.objects.select_for_update().get(pk=decision.project_id)
    row = Decision.objects.select_for_update().select_related("package").get(pk=decision.pk)
    hindrance = confirm_hindrance(row, user_id)
    if hindrance:
        raise NotPermitted(hindrance)
    if row.state != DecisionState.PROPOSED:
        detail = _("The decision is “%(state)s”.") % {"state": DecisionState(row.state).label}
        raise Conflict(detail)
    _require_decidable(project, row.package, row.outcome)
    row.state, row.confirmed_by_id, row.confirmed_at = DecisionState.CONFIRMED, user_id, timezone.now()
    row.version += 1
    row.save()
    _record(actor, row, "decision.confirmed", DecisionState.PROPOSED)
    project_services.project_state_set(actor=actor, project=project, to=ProjectState.DECIDED)
    approvals_keep(row.package)  # only now: the gates have seen which of them still count
    return row


def confirm_hindrance(decision: Decision, user_id: int) -> str:
    """In words why this person may not confirm the decision; empty when nothing but the role decides."""
    if decision.proposed_by_id == user_id:
        return _("You proposed this decision; another person must confirm it.")
    if contributed(decision.project, user_id):
        return _("You contributed to what the decision rests on; another person must confirm it.")
    return ""


@transaction.atomic
def decision_revoke(*, actor: Actor, decision: Decision, reason: str) -> Decision:
    """Take back a proposed or confirmed decision, saying why; a project decided by it returns to review."""
    revoking_require(actor=actor, decision=decision)
    reason = require_text("/reason", reason, _("Say why the decision is taken back."))
    project = Project.objects.select_for_update().get(pk=decision.project_id)
    row = Decision.objects.select_for_update().get(pk=decision.pk)
    if row.state not in (DecisionState.PROPOSED, DecisionState.CONFIRMED):
        raise Conflict(_("The decision has ended already."))
    require_open(project)
    confirmed = row.state == DecisionState.CONFIRMED
    _end(actor, row, DecisionState.REVOKED, reason)
    if confirmed:
        approvals_age(row.package)
        project_services.project_state_set(actor=actor, project=project, to=ProjectState.IN_REVIEW)
    return row


@transaction.atomic
def condition_close(
    *, actor: Actor, condition: Condition, evidence: str, revision: EvidenceRevision | None = None
) -> Condition:
    """Close a condition with the evidence for it; its owner does, or whoever may confirm decisions.

    `revision` is the reviewed evidence of the project that shows it, where there is one.
    """
    user_id = closing_require(actor=actor, condition=condition)
    project = condition.decision.project
    require_open(project)
    evidence = require_text("/evidence", evidence, _("Say what shows that the condition is met."))
    if revision is not None:
        _require_evidence(project, revision)
    row = Condition.objects.select_for_update().select_related("decision").get(pk=condition.pk)
    if row.closed_at is not None:
        raise Conflict(_("The condition is closed already."))
    if row.decision.state != DecisionState.CONFIRMED:
        raise Conflict(_("Its decision is not confirmed."))
    row.closed_at, row.closed_by_id, row.closing_evidence = timezone.now(), user_id, evidence
    row.closing_revision = revision
    row.version += 1
    row.save()
    after = {"text": row.text, "evidence": evidence, "revision": str(revision) if revision else ""}
    audit.record(actor=actor, verb="condition.closed", obj=row, project_id=project.pk, after=after)
    tell(project, "condition", condition=row.pk, state="closed")
    return row


def closing_require(*, actor: Actor, condition: Condition) -> int:
    """The id of the person who may close the condition: its owner, or whoever may confirm decisions."""
    user_id = require_person(actor)
    may = "project.view" if condition.owner_id == user_id else "decision.confirm"
    policies.require(actor, may, condition.decision.project)
    return user_id


def _require_evidence(project: Project, revision: EvidenceRevision) -> None:
    if revision.evidence.project_id != project.pk:
        detail = _("There is no such evidence in this project.")
        raise InvalidInput(detail, [FieldError("/revision", "unknown", detail)])
    if revision.state not in CURRENT_STATES:
        detail = _("Only reviewed evidence closes a condition.")
        raise InvalidInput(detail, [FieldError("/revision", "not-reviewed", detail)])


def revoking_require(*, actor: Actor, decision: Decision) -> int:
    """The id of the person who may take the decision back: who proposed it, or who may confirm it."""
    user_id = require_person(actor)
    own_proposal = decision.state == DecisionState.PROPOSED and decision.proposed_by_id == user_id
    policies.require(actor, "decision.propose" if own_proposal else "decision.confirm", decision.project)
    return user_id


def _require_decidable(project: Project, package: Package, outcome: str) -> None:
    state = state_of(project)
    if state != ProjectState.IN_REVIEW:
        detail = _("The project is “%(state)s”; a decision is made while it is in review.")
        raise Conflict(detail % {"state": ProjectState(state).label})
    if package.state == PackageState.APPROVED:
        return
    newest = not Package.objects.filter(project=project, number__gt=package.number).exists()
    if package.state == PackageState.REJECTED and newest and outcome not in ACCEPTING:
        return
    detail = _("Package %(number)d is “%(state)s”; this outcome needs one approved by all three.")
    raise Conflict(detail % {"number": package.number, "state": PackageState(package.state).label})


def _require_fit(
    package: Package, outcome: str, next_step: str, conditions: Sequence[ConditionInput]
) -> None:
    """Outcome, next step (O2) and conditions must say the same."""
    if outcome in ACCEPTING and next_step == NextStep.STOP:
        detail = _("An accepted POC has a next step: a wider pilot or procurement.")
        raise InvalidInput(detail, [FieldError("/next_step", "no-fit", detail)])
    if outcome == DecisionOutcome.REJECTED and next_step != NextStep.STOP:
        detail = _("A rejected POC has no further step.")
        raise InvalidInput(detail, [FieldError("/next_step", "no-fit", detail)])
    if outcome == DecisionOutcome.EXTENDED_PILOT and next_step != NextStep.WIDER_PILOT:
        detail = _("An extended pilot goes on as a wider pilot.")
        raise InvalidInput(detail, [FieldError("/next_step", "no-fit", detail)])
    if outcome == DecisionOutcome.ACCEPTED_WITH_CONDITIONS and not conditions:
        detail = _("Name at least one condition, with its owner and date.")
        raise InvalidInput(detail, [FieldError("/conditions", "required", detail)])
    if outcome == DecisionOutcome.ACCEPTED and conditions:
        detail = _("With conditions, the outcome is “accepted with conditions”.")
        raise InvalidInput(detail, [FieldError("/outcome", "no-fit", detail)])
    conditional = package.signoffs.filter(state=SignOffState.APPROVED_WITH_CONDITIONS)
    if outcome == DecisionOutcome.ACCEPTED and conditional.exists():
        detail = _("A signature approves with conditions only; take them over into the decision.")
        raise InvalidInput(detail, [FieldError("/outcome", "conditions-dropped", detail)])


def _end(actor: Actor, decision: Decision, state: DecisionState, reason: str) -> None:
    before = decision.state
    decision.state, decision.ended_at, decision.ended_reason = state, timezone.now(), reason[:300]
    decision.version += 1
    decision.save()
    _record(actor, decision, f"decision.{state}", before)


def _record(actor: Actor, decision: Decision, verb: str, before: str | None) -> None:
    audit.record(
        actor=actor,
        verb=verb,
        obj=decision,
        project_id=decision.project_id,
        before=None if before is None else {"state": before},
        after={
            "state": decision.state,
            "outcome": decision.outcome,
            "next_step": decision.next_step,
            "package": decision.package.number,
            "digest": decision.package.digest,
            "rationale": decision.rationale,
            "reason": decision.ended_reason,
            "conditions": [condition.text for condition in decision.conditions.all()],
        },
    )
    tell(decision.project, "decision", decision=decision.pk, state=str(decision.state))
