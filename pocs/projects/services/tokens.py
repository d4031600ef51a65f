"""CI tokens: issued to be shown once, bound to a project and a sponsor, and revoked."""

import ipaddress
from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from pocs.common import audit
from pocs.common.actors import Actor
from pocs.common.errors import Conflict, FieldError, InvalidInput, NotFound, NotPermitted
from pocs.people import policies
from pocs.people.models import User
from pocs.people.roles import SCOPES
from pocs.projects import tokens
from pocs.projects.models import CIToken, Project
from pocs.projects.services.projects import require_open

LONGEST_LIFE_DAYS = 366


def token_issue(
    *,
    actor: Actor,
    project: Project,
    name: str,
    scopes: Sequence[str],
    expires_at: datetime | None,
    allowed_addresses: Sequence[str] = (),
    sponsor: User | None = None,
) -> tuple[CIToken, str]:
    """Issue a token; the second value is the only sight of its plaintext.

    Its sponsor is the actor, or a contributor of the project who answers for it instead.
    `allowed_addresses` are IP addresses or networks; empty means any.
    """
    _require_person(actor)
    policies.require(actor, "project.tokens", project)
    require_open(project)
    name = name.strip()
    wrong: list[FieldError] = []
    if not name or len(name) > 80:
        wrong.append(FieldError("/name", "required", _("A token needs a name of at most 80 characters.")))
    unknown = sorted(set(scopes) - set(SCOPES))
    if unknown or not scopes:
        text = _("Choose at least one of these scopes: %(scopes)s.") % {"scopes": ", ".join(SCOPES)}
        wrong.append(FieldError("/scopes", "unknown" if unknown else "required", text))
    networks = _networks(allowed_addresses, wrong)
    _check_expiry(expires_at, wrong)
    sponsor_id = _sponsor(actor, project, sponsor, wrong)
    if wrong or expires_at is None:
        raise InvalidInput(_("The token cannot be issued like this."), wrong)
    plaintext = tokens.new_plaintext()
    with transaction.atomic():
        token = CIToken.objects.create(
            project=project,
            name=name,
            sponsor_id=sponsor_id,
            prefix=plaintext[: tokens.SHOWN_CHARACTERS],
            token_digest=tokens.digest_of(plaintext),
            scopes=sorted(set(scopes)),
            allowed_addresses=networks,
            expires_at=expires_at,
        )
        after = {
            "name": name,
            "prefix": token.prefix,
            "scopes": token.scopes,
            "allowed_addresses": networks,
            "expires_at": token.expires_at.isoformat(),
            "sponsor": sponsor_id,
        }
        audit.record(actor=actor, verb="token.issued", obj=token, project_id=project.pk, after=after)
    return token, plaintext


def token_revoke(*, actor: Actor, project: Project, token: CIToken) -> CIToken:
    """End a token now; it stays listed with its last use."""
    _require_person(actor)
    policies.require(actor, "project.tokens", project)
    if token.project_id != project.pk:
        raise NotFound(_("There is no such token in this project."))
    now = timezone.now()
    with transaction.atomic():
        if not CIToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=now):
            raise Conflict(_("The token was revoked before."))
        after = {"revoked_at": now.isoformat(), "prefix": token.prefix}
        audit.record(actor=actor, verb="token.revoked", obj=token, project_id=project.pk, after=after)
    token.revoked_at = now
    return token


def _require_person(actor: Actor) -> None:
    """No token makes or ends a token, and neither does the system."""
    if not actor.is_person:
        raise NotPermitted(_("Only a signed-in person can do this; a token or the system cannot."))


def _sponsor(actor: Actor, project: Project, sponsor: User | None, wrong: list[FieldError]) -> int:
    """Number of the person who answers for the token: they must be able to do what it does."""
    if sponsor is None:
        return actor.answers_with
    if not policies.allowed(sponsor.as_actor(), "run.execute", project):
        text = _("%(person)s contributes nothing to this project and cannot answer for a token.")
        wrong.append(FieldError("/sponsor", "no_contributor", text % {"person": sponsor}))
    return sponsor.pk


def _networks(addresses: Sequence[str], wrong: list[FieldError]) -> list[str]:
    """The addresses in canonical form; what is no address is added to `wrong`."""
    networks = []
    for index, address in enumerate(addresses):
        try:
            networks.append(str(ipaddress.ip_network(address.strip(), strict=False)))
        except ValueError:
            text = _("“%(address)s” is no IP address or network.") % {"address": address}
            wrong.append(FieldError(f"/allowed_addresses/{index}", "invalid", text))
    return networks


def _check_expiry(expires_at: datetime | None, wrong: list[FieldError]) -> None:
    now = timezone.now()
    if expires_at is None:
        wrong.append(FieldError("/expires_at", "required", _("Say when the token expires.")))
    elif expires_at <= now:
        wrong.append(FieldError("/expires_at", "past", _("The expiry lies in the past.")))
    elif expires_at > now + timedelta(days=LONGEST_LIFE_DAYS):
        wrong.append(FieldError("/expires_at", "too_far", _("A token lives at most a year.")))
