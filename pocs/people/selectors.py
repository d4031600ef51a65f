"""Reading people and teams: only those of the actor's own organisation."""

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from pocs.common.actors import Actor
from pocs.common.errors import NotFound
from pocs.people.models import Team, User
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


def person_behind(actor: Actor) -> User | None:
    """The active person whom the actor stands for: themselves, or a token's sponsor."""
    return active_person(actor).first()


def is_admin(actor: Actor) -> bool:
    """Whether the actor administers the organisation's people."""
    person = person_behind(actor) if actor.is_person else None
    return person is not None and person.organisation_role == OrganisationRole.ADMIN
