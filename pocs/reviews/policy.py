"""The policy of reviews in force: what is asked for a decision, as it is frozen into each package."""

from typing import Any

from django.utils import translation

from pocs.reviews.choices import SLOT_MEANING, Slot

#: gates for which there is never a waiver: an evidence type, a signature, the observer
NEVER_WAIVED = frozenset({"G5", "G9", "G12"})


def slot_meaning(slot: str) -> str:
    """What a signature in this slot says, in the English that is stored and frozen."""
    with translation.override("en"):
        return str(SLOT_MEANING[Slot(slot)])


def policy_in_force() -> dict[str, Any]:
    """The rules a package is signed under; part of its manifest."""
    return {
        "version": 1,
        "signatures": {slot.value: {"quorum": 1, "meaning": slot_meaning(slot)} for slot in Slot},
        "one_slot_per_person": True,
        "contributors_may_sign": False,
        "rejection_is_veto": True,
        "never_waived": sorted(NEVER_WAIVED),
    }
