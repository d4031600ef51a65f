"""Reading people and teams: only those of the actor's own organisation."""

from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from pocs.common.actors import Actor
from pocs.common.errors import NotFound
from pocs.common.reading import remembered
from pocs.people.models import Delegation, Team, User
from pocs.people.roles import OrganisationRole


def people_of(actor: Actor) -> QuerySet[User]:
    """Everybody of the actor's organisation, deactivated people last."""
    people = User.objects.filter(organisation_id=actor.organisation_id).select_related("team")
    return people.order_by("-is_active", "username")


def active_people_of(actor: Actor) -> QuerySet[User]:
    """Those who may be given something to do."""
    return people_of(actor).filter(is_active=True)


def person_get(actor: Actor, pk: int) -> User:
    """One person of the own organisation; NotFound for anybody else."""
    person = people_of(actor).filter(pk=pk).first()
    if person is None:
        raise NotFound(_("There is no such person in your organisation."))
    return person


def teams_of(actor: Actor) -> QuerySet[Team]:
    """The teams of the actor's organisation."""
    return Team.objects.filter(organisation_id=actor.organisation_id)


def active_person(actor: Actor) -> QuerySet[User]:
    """The person whom the actor stands for, as long as they are active: one row or none."""
    people = User.objects.filter(organisation_id=actor.organisation_id, is_active=True)
    return people.none() if actor.user_id is None else people.filter(pk=actor.user_id)


@remembered
def person_behind(actor: Actor) -> User | None:
    """The active person whom the actor stands for: themselves, or a token's sponsor."""
    return active_person(actor).first()


def is_admin(actor: Actor) -> bool:
    """Whether the actor administers the organisation's people."""
    person = person_behind(actor) if actor.is_person else None
    return person is not None and person.organisation_role == OrganisationRole.ADMIN


def current_delegations() -> QuerySet[Delegation]:
    """Delegations that hold today (UTC), between people who are both active."""
    today = timezone.now().date()
    rows = Delegation.objects.filter(starts_on__lte=today, ends_on__gte=today, revoked_at=None)
    return rows.filter(principal__is_active=True, deputy__is_active=True)


def principals_of(actor: Actor) -> QuerySet[User]:
    """The people of the organisation for whom the acting person may sign today."""
    given = current_delegations().filter(deputy_id=actor.user_id or 0)
    return User.objects.filter(
        pk__in=given.values("principal_id"), organisation_id=actor.organisation_id
    ).order_by("username")


def delegations_of(actor: Actor) -> QuerySet[Delegation]:
    """The organisation's delegations for those who administer or audit it, else one's own; newest first."""
    rows = Delegation.objects.filter(organisation_id=actor.organisation_id)
    person = person_behind(actor) if actor.is_person else None
    if person is None:
        return rows.none()
    if person.organisation_role not in (OrganisationRole.ADMIN, OrganisationRole.AUDITOR):
        rows = rows.filter(Q(principal=person) | Q(deputy=person))
    return rows.select_related("principal", "deputy", "revoked_by")


def delegation_get(actor: Actor, pk: int) -> Delegation:
    """One delegation that the actor may see; NotFound for any other."""
    row = delegations_of(actor).filter(pk=pk).first()
    if row is None:
        raise NotFound(_("There is no such delegation."))
    return row
