"""The policy of reviews in force: what is asked for a decision, as it is frozen into each package."""

from datetime import datetime, timedelta
from typing import Any

from django.utils import translation

from pocs.reviews.choices import SLOT_MEANING, Slot
from pocs.reviews.models import Package, ReviewPolicy

#: gates for which there is never a waiver: an evidence type, a signature, the confirmer, the observer
NEVER_WAIVED = frozenset({"G5", "G9", "G10", "G12"})
POLICY_FIELDS = (
    "quorum_business",
    "quorum_platform",
    "quorum_security",
    "request_days",
    "signature_days",
    "objection_days",
)


def slot_meaning(slot: str) -> str:
    """What a signature in this slot says, in the English that is stored and frozen."""
    with translation.override("en"):
        return str(SLOT_MEANING[Slot(slot)])


def policy_of(organisation_id: int) -> ReviewPolicy:
    """The organisation's policy; one that nobody has set yet is an unsaved row with version 0."""
    found = ReviewPolicy.objects.filter(organisation_id=organisation_id).first()
    return found or ReviewPolicy(organisation_id=organisation_id, version=0)


def policy_in_force(organisation_id: int) -> dict[str, Any]:
    """The rules a package is signed under; part of its manifest."""
    policy = policy_of(organisation_id)
    return {
        "version": 2,
        "signatures": {
            slot.value: {"quorum": getattr(policy, f"quorum_{slot}"), "meaning": slot_meaning(slot)}
            for slot in Slot
        },
        "one_slot_per_person": True,
        "contributors_may_sign": False,
        "rejection_is_veto": True,
        "request_days": policy.request_days,
        "signature_days": policy.signature_days,
        "objection_days": policy.objection_days,
        "never_waived": sorted(NEVER_WAIVED),
    }


def quorum_of(package: Package, slot: str) -> int:
    """How many people sign this slot of this package, by the policy it was frozen with."""
    return int(package.manifest["policy"]["signatures"][slot]["quorum"])


def request_ends(package: Package, asked_at: datetime) -> datetime | None:
    """Until when a signature asked for at `asked_at` may be given; None for a policy without a limit."""
    return _after(asked_at, package.manifest["policy"].get("request_days"))


def signature_ends(package: Package, signed_at: datetime) -> datetime | None:
    """Until when an approval of `signed_at` counts for a decision; None for a policy without a limit."""
    return _after(signed_at, package.manifest["policy"].get("signature_days"))


def objections_until(package: Package) -> datetime | None:
    """Before when no decision on the package is confirmed; None where the policy keeps no such window."""
    return _after(package.frozen_at, package.manifest["policy"].get("objection_days"))


def _after(moment: datetime, days: int | None) -> datetime | None:
    return moment + timedelta(days=days) if days else None
