"""Changing people: their own preferences, and who belongs to the organisation."""

import secrets
import zoneinfo

from django.conf import settings
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _

from pocs.common import audit
from pocs.common.actors import Actor
from pocs.common.errors import Conflict, FieldError, InvalidInput, NotFound, NotPermitted
from pocs.common.versions import changed
from pocs.people.models import Organisation, Team, User
from pocs.people.roles import OrganisationRole
from pocs.people.selectors import is_admin


def user_preferences_set(*, actor: Actor, user: User, language: str, time_zone: str) -> User:
    """Set one's own language (empty: as the browser asks) and time zone (an IANA name)."""
    if not actor.is_person or actor.user_id != user.pk:
        raise NotPermitted(_("Everybody sets their own preferences."))
    wrong = []
    if language and language not in dict(settings.LANGUAGES):
        wrong.append(FieldError("/language", "unknown", _("There is no such language here.")))
    if time_zone not in zoneinfo.available_timezones():
        wrong.append(FieldError("/time_zone", "unknown", _("There is no such time zone.")))
    if wrong:
        raise InvalidInput(_("The preferences cannot be saved."), wrong)
    with transaction.atomic():
        before, after = changed(user, {"language": language, "time_zone": time_zone})
        if after:
            user.language, user.time_zone = language, time_zone
            user.save(update_fields=list(after))
            audit.record(actor=actor, verb="user.preferences_set", obj=user, before=before, after=after)
    return user


def user_add(
    *,
    actor: Actor,
    username: str,
    first_name: str = "",
    last_name: str = "",
    email: str = "",
    role: str = OrganisationRole.MEMBER,
    team: Team | None = None,
) -> tuple[User, str]:
    """Add a person to the organisation; the second value is the first password, seen only here."""
    _require_admin(actor)
    username = username.strip()
    wrong = _check_role_and_team(actor, role, team)
    try:
        UnicodeUsernameValidator()(username)
    except ValidationError as error:
        wrong.append(FieldError("/username", "invalid", error.messages[0]))
    if len(username) > 150:
        wrong.append(FieldError("/username", "max_length", _("At most 150 characters.")))
    elif User.objects.filter(username__iexact=username).exists():
        wrong.append(FieldError("/username", "taken", _("This user name is taken.")))
    if wrong:
        raise InvalidInput(_("The person cannot be added like this."), wrong)
    password = secrets.token_urlsafe(15)
    with transaction.atomic():
        user = User.objects.create_user(
            username,
            email=email.strip(),
            password=password,
            first_name=first_name.strip(),
            last_name=last_name.strip(),
            organisation_id=actor.organisation_id,
            organisation_role=role,
            team=team,
        )
        after = {"username": username, "role": role, "team": team.pk if team else None, "active": True}
        audit.record(actor=actor, verb="user.added", obj=user, after=after)
    return user, password


def user_place(*, actor: Actor, user: User, role: str, team: Team | None) -> User:
    """Set a person's role in the organisation and their team."""
    _require_admin(actor, user)
    wrong = _check_role_and_team(actor, role, team)
    if wrong:
        raise InvalidInput(_("The person cannot be placed like this."), wrong)
    with transaction.atomic():
        _lock(actor)
        if user.organisation_role == OrganisationRole.ADMIN and role != OrganisationRole.ADMIN:
            _require_another_admin(user)
        before, after = changed(user, {"organisation_role": role, "team_id": team.pk if team else None})
        if after:
            user.organisation_role, user.team = role, team
            user.save(update_fields=["organisation_role", "team"])
            audit.record(actor=actor, verb="user.placed", obj=user, before=before, after=after)
    return user


def user_activate(*, actor: Actor, user: User, active: bool) -> User:
    """Deactivate a person or let them in again; people are never deleted, what they did stays theirs."""
    _require_admin(actor, user)
    if user.pk == actor.user_id:
        raise Conflict(_("You cannot deactivate yourself."))
    with transaction.atomic():
        _lock(actor)
        if not active and user.organisation_role == OrganisationRole.ADMIN:
            _require_another_admin(user)
        if User.objects.filter(pk=user.pk).exclude(is_active=active).update(is_active=active):
            verb = "user.activated" if active else "user.deactivated"
            audit.record(
                actor=actor, verb=verb, obj=user, before={"active": not active}, after={"active": active}
            )
    user.is_active = active
    return user


def team_create(*, actor: Actor, name: str, contact: str = "") -> Team:
    """Add a team, with the contact or alert route by which it is reached."""
    _require_admin(actor)
    name, contact = name.strip(), contact.strip()
    wrong = []
    if not name or len(name) > 120:
        wrong.append(FieldError("/name", "required", _("A team needs a name of at most 120 characters.")))
    if len(contact) > 200:
        wrong.append(FieldError("/contact", "max_length", _("At most 200 characters.")))
    if Team.objects.filter(organisation_id=actor.organisation_id, name=name).exists():
        wrong.append(FieldError("/name", "taken", _("There is already a team of this name.")))
    if wrong:
        raise InvalidInput(_("The team cannot be added like this."), wrong)
    with transaction.atomic():
        team = Team.objects.create(organisation_id=actor.organisation_id, name=name, contact=contact)
        audit.record(actor=actor, verb="team.created", obj=team, after={"name": name, "contact": contact})
    return team


def _require_admin(actor: Actor, user: User | None = None) -> None:
    if user is not None and user.organisation_id != actor.organisation_id:
        raise NotFound(_("There is no such person in your organisation."))
    if not is_admin(actor):
        raise NotPermitted(_("Only administrators of the organisation may do this."))


def _require_another_admin(user: User) -> None:
    others = User.objects.filter(
        organisation=user.organisation, organisation_role=OrganisationRole.ADMIN, is_active=True
    ).exclude(pk=user.pk)
    if not others.exists():
        raise Conflict(_("An organisation keeps at least one administrator."))


def _check_role_and_team(actor: Actor, role: str, team: Team | None) -> list[FieldError]:
    wrong = []
    if role not in OrganisationRole.values:
        wrong.append(FieldError("/role", "unknown", _("There is no such role in an organisation.")))
    if team is not None and team.organisation_id != actor.organisation_id:
        wrong.append(FieldError("/team", "unknown", _("There is no such team in your organisation.")))
    return wrong


def _lock(actor: Actor) -> None:
    """Order the changes of one organisation's people."""
    Organisation.objects.select_for_update().get(pk=actor.organisation_id)
