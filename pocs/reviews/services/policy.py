"""Service of the organisation's review policy: for packages still to be frozen, never for frozen ones."""

from django.db import transaction
from django.utils.translation import gettext as _

from pocs.common import audit
from pocs.common.actors import Actor
from pocs.common.errors import FieldError, InvalidInput, NotPermitted
from pocs.people.models import Organisation
from pocs.people.selectors import is_admin
from pocs.reviews.models import ReviewPolicy
from pocs.reviews.policy import POLICY_FIELDS, policy_of
from pocs.reviews.services.support import require_person, require_version

#: field -> (least, most)
LIMITS = {
    "quorum_business": (1, 9),
    "quorum_platform": (1, 9),
    "quorum_security": (1, 9),
    "request_days": (1, 365),
    "signature_days": (1, 730),
    "objection_days": (0, 90),
}


def policy_require(*, actor: Actor) -> int:
    """The id of the administrator who acts; NotPermitted for everybody else."""
    user_id = require_person(actor)
    if not is_admin(actor):
        raise NotPermitted(_("Only administrators of the organisation may do this."))
    return user_id


@transaction.atomic
def policy_save(*, actor: Actor, version: int | None = None, **fields: int) -> ReviewPolicy:
    """Save fields of POLICY_FIELDS; the others stay. Packages frozen before keep the policy they hold.

    Raises InvalidInput for a quorum of none, a day of none, or an unknown field.
    """
    user_id = policy_require(actor=actor)
    _check(fields)
    Organisation.objects.select_for_update().get(pk=actor.organisation_id)
    row = policy_of(actor.organisation_id)
    require_version(row, version)
    before = {name: getattr(row, name) for name in fields if getattr(row, name) != fields[name]}
    if row.pk is not None and not before:
        return row
    for name, value in fields.items():
        setattr(row, name, value)
    row.version += 1
    row.updated_by_id = user_id
    row.save()
    after = {name: fields[name] for name in before}
    audit.record(actor=actor, verb="policy.saved", obj=row, before=before, after=after)
    return row


def _check(fields: dict[str, int]) -> None:
    wrong = []
    for name, value in fields.items():
        if name not in POLICY_FIELDS:
            wrong.append(FieldError(f"/{name}", "unknown", _("There is no such field.")))
            continue
        least, most = LIMITS[name]
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            text = _("A whole number from %(least)d to %(most)d.") % {"least": least, "most": most}
            wrong.append(FieldError(f"/{name}", "range", text))
    if wrong:
        raise InvalidInput(_("The policy cannot be saved like this."), wrong)
