"""Who may sign a slot of a package, for themselves or for whom, and in words why another may not."""

from dataclasses import dataclass

from django.utils.translation import gettext as _

from pocs.common.errors import Text
from pocs.people.models import User
from pocs.people.roles import CAPABILITIES
from pocs.people.selectors import current_delegations
from pocs.projects.models import Project
from pocs.reviews.choices import CURRENT_APPROVALS, SignOffState, Slot
from pocs.reviews.contributions import contributors
from pocs.reviews.models import Package

#: states in which a signature fills its seat
FILLING = [*CURRENT_APPROVALS, SignOffState.REJECTED]


@dataclass(frozen=True)
class Candidate:
    """Someone with the role for a slot, or their deputy; `hindrance` is empty when they may sign it now."""

    user: User
    hindrance: Text = ""
    on_behalf_of: User | None = None

    @property
    def eligible(self) -> bool:
        return not self.hindrance

    def __str__(self) -> str:
        if self.on_behalf_of is None:
            return str(self.user)
        names = {"deputy": self.user, "principal": self.on_behalf_of}
        return _("%(deputy)s for %(principal)s") % names


def role_holders(project: Project) -> dict[str, list[User]]:
    """For each slot the people with the role that signs it, the deactivated included."""
    roles = {slot.value: CAPABILITIES[f"signoff.{slot}"] for slot in Slot}
    members = list(
        project.members.filter(role__in=frozenset().union(*roles.values()))
        .select_related("user")
        .order_by("user__username")
    )
    return {slot: [row.user for row in members if row.role in wanted] for slot, wanted in roles.items()}


def taken_slots(package: Package | None) -> dict[int, str]:
    """Slot by number of each person who fills a seat of the package, or for whom a deputy does."""
    if package is None:
        return {}
    rows = package.signoffs.filter(state__in=FILLING).values_list("slot", "signer_id", "on_behalf_of_id")
    return {person: slot for slot, *people in rows for person in people if person is not None}


def candidates(project: Project, package: Package | None = None) -> dict[str, list[Candidate]]:
    """For each slot those with its role and their deputies, each with what hinders them from signing."""
    contributed = contributors(project)
    taken = taken_slots(package)
    holders = role_holders(project)
    principals = {user.pk for users in holders.values() for user in users}
    given = current_delegations().filter(
        principal_id__in=principals, deputy__organisation_id=project.organisation_id
    )
    deputies = {row.principal_id: row.deputy for row in given.select_related("deputy")}
    found: dict[str, list[Candidate]] = {}
    for slot, users in holders.items():
        found[slot] = []
        for user in users:
            hindrance = _hindrance(project, user, slot, contributed, taken)
            found[slot].append(Candidate(user, hindrance))
            if user.pk in deputies:
                deputy = deputies[user.pk]
                own = _hindrance(project, deputy, slot, contributed, taken)
                found[slot].append(Candidate(deputy, own or hindrance, on_behalf_of=user))
    return found


def _hindrance(project: Project, user: User, slot: str, contributed: set[int], taken: dict[int, str]) -> Text:
    if not user.is_active:
        return _("deactivated")
    if user.organisation_id != project.organisation_id:
        return _("belongs to another organisation")
    if user.pk in contributed:
        return _("contributed to what is signed")
    if user.pk in taken:
        if taken[user.pk] == slot:
            return _("has signed this slot of this package")
        return _("has signed another slot of this package")
    return ""
