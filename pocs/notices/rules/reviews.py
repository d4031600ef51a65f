"""Rules about reviews: signatures, packages, waivers, decisions, duties.

What the reviews app sends through the port itself (objections, overdue duties, expired waivers and
signatures) has no rule here.
"""

from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from pocs.common.errors import Text
from pocs.common.models import AuditEntry
from pocs.common.phrases import Said, said, said_again
from pocs.notices.rules.drafts import Draft, Rule, after, holders, who
from pocs.reviews.choices import DecisionOutcome, ObservationKind, PackageState, Slot, TaskKind
from pocs.reviews.eligibility import candidates
from pocs.reviews.models import Decision, FollowThroughTask, Observation, Package, SignOff, Waiver


def _package_path(package: Package) -> str:
    return reverse("reviews:package", args=[package.pk])


def signature_requested(entry: AuditEntry, signoff: SignOff) -> Draft:
    """Everyone who may sign the slot now; the second seat of a slot tells nobody twice."""
    package = signoff.package
    able = {item.user.pk for item in candidates(package.project, package)[signoff.slot] if item.eligible}
    text = _("Package %(number)s of “%(project)s” waits for your signature: %(slot)s")
    slot = Slot(signoff.slot).label
    return Draft(
        kind="signature.requested",
        text=said(text, number=package.number, project=package.project.name, slot=slot),
        detail=_(signoff.meaning),
        user_ids=able,
        path=_package_path(package),
    )


def package_settled(entry: AuditEntry, package: Package) -> Draft | None:
    if package.state not in (PackageState.APPROVED, PackageState.REJECTED):
        return None
    state = PackageState(package.state).label
    text = _("Package %(number)s of “%(project)s”: %(state)s")
    return Draft(
        kind="package.settled",
        text=said(text, number=package.number, project=package.project.name, state=state),
        user_ids=holders(package.project, "package.freeze", "decision.confirm"),
        path=_package_path(package),
    )


def package_stale(entry: AuditEntry, package: Package) -> Draft:
    signers = package.signoffs.exclude(signer=None).values_list("signer_id", flat=True)
    text = _("%(who)s made package %(number)s of “%(project)s” stale; it has to be frozen and signed again")
    return Draft(
        kind="package.stale",
        text=said(text, who=who(entry), number=package.number, project=package.project.name),
        detail=_reason(entry),
        user_ids={pk for pk in signers if pk} | holders(package.project, "package.freeze"),
        path=_package_path(package),
    )


def _reason(entry: AuditEntry) -> Text | Said:
    """Why the change was made: in words to be read in any language where the system gave them."""
    facts = after(entry)
    return said_again(facts["said"]) if facts.get("said") else str(facts.get("reason", ""))


def waiver_requested(entry: AuditEntry, waiver: Waiver) -> Draft:
    text = _("%(who)s asks for a waiver of %(guard)s in “%(project)s”")
    return Draft(
        kind="waiver.requested",
        text=said(text, who=who(entry), guard=waiver.guard, project=waiver.project.name),
        detail=waiver.reason,
        user_ids=holders(waiver.project, "waiver.grant"),
        path=reverse("reviews:waivers", args=[waiver.project_id]),
    )


def waiver_decided(entry: AuditEntry, waiver: Waiver) -> Draft:
    texts = {
        "waiver.granted": _("%(who)s granted the waiver of %(guard)s in “%(project)s”"),
        "waiver.refused": _("%(who)s refused the waiver of %(guard)s in “%(project)s”"),
        "waiver.revoked": _("%(who)s revoked the waiver of %(guard)s in “%(project)s”"),
    }
    return Draft(
        kind="waiver.decided",
        text=said(texts[entry.verb], who=who(entry), guard=waiver.guard, project=waiver.project.name),
        detail=waiver.decision_note,
        user_ids={waiver.requested_by_id} | holders(waiver.project, "project.advance"),
        path=reverse("reviews:waivers", args=[waiver.project_id]),
    )


def decision_proposed(entry: AuditEntry, decision: Decision) -> Draft:
    text = _("%(who)s proposes for “%(project)s”: %(outcome)s. It waits for your confirmation")
    return Draft(
        kind="decision.proposed",
        text=_outcome(text, entry, decision),
        detail=decision.rationale,
        user_ids=holders(decision.project, "decision.confirm"),
        path=reverse("reviews:decision", args=[decision.project_id]),
    )


def decision_settled(entry: AuditEntry, decision: Decision) -> list[Draft]:
    """Everybody of the project hears of it; owners of its conditions hear that these are theirs."""
    texts = {
        "decision.confirmed": _("%(who)s confirmed for “%(project)s”: %(outcome)s"),
        "decision.revoked": _("%(who)s took the decision back for “%(project)s”: %(outcome)s"),
    }
    path = reverse("reviews:decision", args=[decision.project_id])
    members = set(decision.project.members.values_list("user_id", flat=True))
    drafts = [
        Draft(
            kind="decision.settled",
            text=_outcome(texts[entry.verb], entry, decision),
            detail=said_again(decision.ended_said) if decision.ended_said else decision.rationale,
            user_ids=members,
            path=path,
        )
    ]
    owners = set(decision.conditions.filter(closed_at=None).values_list("owner_id", flat=True))
    if entry.verb == "decision.confirmed" and owners:
        text = said(_("A condition of the decision on “%(project)s” is yours"), project=decision.project.name)
        drafts.append(Draft(kind="duty.assigned", text=text, user_ids=owners, path=path))
    return drafts


def _outcome(text: Text, entry: AuditEntry, decision: Decision) -> Said:
    label = DecisionOutcome(decision.outcome).label
    return said(text, who=who(entry), project=decision.project.name, outcome=label)


def _same(entry: AuditEntry, name: str) -> bool:
    """Whether the change left this part as it was."""
    return bool(entry.before) and entry.before.get(name) == after(entry).get(name)  # type: ignore[union-attr]


def task_assigned(entry: AuditEntry, task: FollowThroughTask) -> Draft | None:
    if task.owner_id is None or _same(entry, "owner"):
        return None
    text = _("%(task)s of “%(project)s” is yours")
    return Draft(
        kind="duty.assigned",
        text=said(text, task=TaskKind(task.kind).label, project=task.project.name),
        detail=task.note,
        user_ids=[task.owner_id],
        path=reverse("reviews:follow_through", args=[task.project_id]),
        due_on=task.due_on,
    )


def observation_assigned(entry: AuditEntry, observation: Observation) -> Draft | None:
    if observation.observer_id is None or _same(entry, "observer"):
        return None
    text = _("You observe %(what)s of “%(project)s”")
    return Draft(
        kind="duty.assigned",
        text=said(text, what=ObservationKind(observation.kind).label, project=observation.project.name),
        user_ids=[observation.observer_id],
        path=reverse("reviews:observation", args=[observation.project_id]),
        due_on=observation.next_reading_on,
    )


RULES: dict[str, Rule] = {
    "signoff.requested": signature_requested,
    "package.approved": package_settled,
    "package.rejected": package_settled,
    "package.stale": package_stale,
    "waiver.requested": waiver_requested,
    "waiver.granted": waiver_decided,
    "waiver.refused": waiver_decided,
    "waiver.revoked": waiver_decided,
    "decision.proposed": decision_proposed,
    "decision.confirmed": decision_settled,
    "decision.revoked": decision_settled,
    "task.set": task_assigned,
    "observation.set": observation_assigned,
}
