"""Who may sign a slot of a package, and in words why another may not."""

from dataclasses import dataclass

from django.utils.translation import gettext as _

from pocs.common.errors import Text
from pocs.people.models import User
from pocs.people.roles import CAPABILITIES
from pocs.projects.models import Project
from pocs.reviews.choices import CURRENT_APPROVALS, SignOffState, Slot
from pocs.reviews.contributions import contributors
from pocs.reviews.models import Package

#: states in which a signature fills its slot
FILLING = [*CURRENT_APPROVALS, SignOffState.REJECTED]


@dataclass(frozen=True)
class Candidate:
    """Someone with the role for a slot; `hindrance` is empty when they may sign it now."""

    user: User
    hindrance: Text = ""

    @property
    def eligible(self) -> bool:
        return not self.hindrance


def role_holders(project: Project) -> dict[str, list[User]]:
    """For each slot the people with the role that signs it, the deactivated included."""
    roles = {slot.value: CAPABILITIES[f"signoff.{slot}"] for slot in Slot}
    members = list(
        project.members.filter(role__in=frozenset().union(*roles.values()))
        .select_related("user")
        .order_by("user__username")
    )
    return {slot: [row.user for row in members if row.role in wanted] for slot, wanted in roles.items()}


def candidates(project: Project, package: Package | None = None) -> dict[str, list[Candidate]]:
    """For each slot those with its role, each with what hinders them from signing `package`."""
    contributed = contributors(project)
    signed: dict[int, str] = {}
    if package is not None:
        rows = package.signoffs.filter(state__in=FILLING).values_list("signer_id", "slot")
        signed = {signer: slot for signer, slot in rows if signer is not None}
    return {
        slot: [Candidate(user, _hindrance(project, user, slot, contributed, signed)) for user in users]
        for slot, users in role_holders(project).items()
    }


def _hindrance(
    project: Project, user: User, slot: str, contributed: set[int], signed: dict[int, str]
) -> Text:
    if not user.is_active:
        return _("deactivated")
    if user.organisation_id != project.organisation_id:
        return _("belongs to another organisation")
    if user.pk in contributed:
        return _("contributed to what is signed")
    if user.pk in signed and signed[user.pk] != slot:
        return _("has signed another slot of this package")
    return ""
