"""What the routes of people ask for."""

from typing import Any

from django.utils.translation import gettext_lazy as _

from pocs.common.access import Table
from pocs.common.actors import Actor
from pocs.people.access import ADMIN, PERSON, SIGNED_IN, needs_admin_of, rule
from pocs.people.delegations import revoking_require
from pocs.people.selectors import delegation_get, person_get

#: what one reads here is the organisation's own; a token is bound to a project and reads none of it
READS_PEOPLE = rule("reads-people", _("every person of the organisation; no token"))
READS_PERSON = rule("reads-person", _("everybody of the same organisation; no token"))
ADMIN_OF_PERSON = needs_admin_of(person_get)


def _ask_revoking(actor: Actor, pk: int, **arguments: Any) -> None:
    revoking_require(actor=actor, delegation=delegation_get(actor, pk))


REVOKES = rule(
    "delegation.revoke",
    _("whoever gave the delegation, and administrators; its deputy sees it"),
    _ask_revoking,
)

TABLE: Table = {
    "api-me": {"GET": SIGNED_IN},
    "api-people": {"GET": READS_PEOPLE},
    "api-teams": {"GET": READS_PEOPLE},
    "api-delegations": {"GET": PERSON, "POST": PERSON},
    "api-delegation-revoke": {"POST": REVOKES},
    "people:people": {"GET": READS_PEOPLE},
    "people:person_add": {"GET": ADMIN, "POST": ADMIN},
    "people:person": {"GET": READS_PERSON, "POST": ADMIN_OF_PERSON},
    "people:person_active": {"POST": ADMIN_OF_PERSON},
    "people:team_add": {"GET": ADMIN, "POST": ADMIN},
    "people:delegations": {"GET": PERSON, "POST": PERSON},
    "people:delegation_revoke": {"POST": REVOKES},
}
