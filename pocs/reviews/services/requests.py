"""Services of what surrounds a signature: it is asked for, it ends in time, it is asked for again."""

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from pocs.common import audit
from pocs.common.actors import Actor, system_actor
from pocs.common.errors import Conflict
from pocs.common.notices import Notice, send
from pocs.common.phrases import Said, kept, reason_facts, said
from pocs.people import policies
from pocs.reviews.choices import CURRENT_APPROVALS, DecisionState, PackageState, SignOffState, Slot
from pocs.reviews.models import Package, SignOff
from pocs.reviews.people import leads_of
from pocs.reviews.policy import quorum_of, request_ends, signature_ends, slot_meaning
from pocs.reviews.services.support import require_choice, require_person, tell

WAITING = (PackageState.FROZEN, PackageState.APPROVED)


def signoff_request(actor: Actor, package: Package, slot: str, seat: int) -> SignOff:
    """Ask for one signature; inside the transaction that holds the package's row."""
    row = SignOff.objects.create(
        package=package,
        slot=slot,
        seat=seat,
        meaning=slot_meaning(slot),
        digest=package.digest,
        expires_at=request_ends(package, timezone.now()),
    )
    audit.record(
        actor=actor,
        verb="signoff.requested",
        obj=row,
        project_id=package.project_id,
        after={"state": row.state, "slot": slot, "digest": package.digest},
    )
    return row


def signoffs_request(actor: Actor, package: Package) -> None:
    """Ask all slots of a package just frozen, each as often as its policy says."""
    for slot in Slot.values:
        for seat in range(1, quorum_of(package, slot) + 1):
            signoff_request(actor, package, slot, seat)


def signoff_end(actor: Actor, row: SignOff, state: SignOffState, reason: str | Said) -> None:
    """End a signature or the request for it, with its audit entry."""
    before = str(row.state)
    row.state, row.ended_at = state, timezone.now()
    row.ended_reason, row.ended_said = kept(reason)
    row.version += 1
    row.save(update_fields=["state", "ended_at", "ended_reason", "ended_said", "version", "updated_at"])
    project = row.package.project
    audit.record(
        actor=actor,
        verb=f"signoff.{state}",
        obj=row,
        project_id=project.pk,
        before={"state": before},
        after={"state": state, **reason_facts(reason), "digest": row.digest},
    )
    tell(project, "signoff", package=row.package.number, slot=row.slot, state=str(state))


def package_to(actor: Actor, package: Package, state: PackageState) -> None:
    """Move the package, with its audit entry; inside the transaction that holds its row."""
    before = package.state
    package.state = state
    package.version += 1
    package.save(update_fields=["state", "version", "updated_at"])
    audit.record(
        actor=actor,
        verb=f"package.{state}",
        obj=package,
        project_id=package.project_id,
        before={"state": before},
        after={"state": state, "digest": package.digest},
    )
    tell(package.project, "package", package=package.number, state=str(state))


@transaction.atomic
def signoff_ask_again(*, actor: Actor, package: Package, slot: str) -> list[SignOff]:
    """Ask anew for the signatures of a slot whose time was over; Conflict when none is missing."""
    require_person(actor)
    policies.require(actor, "package.freeze", package.project)
    require_choice("/slot", slot, Slot)
    package = Package.objects.select_for_update().select_related("project").get(pk=package.pk)
    if package.state != PackageState.FROZEN:
        detail = _("Package %(number)d is “%(state)s”; it takes no more signatures.")
        raise Conflict(detail % {"number": package.number, "state": PackageState(package.state).label})
    for row in package.signoffs.filter(slot=slot).select_related("package__project"):
        if row.lapsed:
            signoff_end(actor, row, SignOffState.EXPIRED, said(gettext_lazy("its time was over")))
    current = [SignOffState.REQUESTED, *CURRENT_APPROVALS, SignOffState.REJECTED]
    filled = set(package.signoffs.filter(slot=slot, state__in=current).values_list("seat", flat=True))
    empty = [seat for seat in range(1, quorum_of(package, slot) + 1) if seat not in filled]
    if not empty:
        raise Conflict(_("Every signature of this slot is given or asked for."))
    return [signoff_request(actor, package, slot, seat) for seat in empty]


def signoffs_expire() -> int:
    """End requests and approvals whose time is over and tell the leads; returns how many.

    What a confirmed decision rests on has served and no longer ends. A package that was approved
    waits again.
    """
    due = SignOff.objects.filter(
        state__in=[SignOffState.REQUESTED, *CURRENT_APPROVALS],
        package__state__in=WAITING,
        expires_at__lte=timezone.now(),
    ).exclude(package__decisions__state=DecisionState.CONFIRMED)
    count = 0
    for package_id in list(due.order_by().values_list("package_id", flat=True).distinct()):
        with transaction.atomic():
            package = Package.objects.select_for_update().select_related("project").get(pk=package_id)
            actor = system_actor(package.project.organisation_id)
            for row in due.filter(package=package).select_related("package__project"):
                signoff_end(actor, row, SignOffState.EXPIRED, said(gettext_lazy("its time was over")))
                count += 1
            if package.state == PackageState.APPROVED:
                package_to(actor, package, PackageState.FROZEN)
            send(
                Notice(
                    kind="signature.expired",
                    user_ids=leads_of(package.project),
                    title=said(
                        gettext_lazy("Signatures of package %(number)d ended: their time was over"),
                        number=package.number,
                    ),
                    project_id=package.project_id,
                    route="reviews:package",
                    route_args=(package.pk,),
                )
            )
    return count


def approvals_keep(package: Package) -> None:
    """What a decision was confirmed upon no longer ends by its time."""
    package.signoffs.filter(state__in=CURRENT_APPROVALS).update(expires_at=None)


def approvals_age(package: Package) -> None:
    """After the decision was taken back, the approvals end by their time again."""
    for row in package.signoffs.filter(state__in=CURRENT_APPROVALS):
        if row.signed_at is not None:
            SignOff.objects.filter(pk=row.pk).update(expires_at=signature_ends(package, row.signed_at))
