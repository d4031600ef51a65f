"""Service of handing duties over in bulk: each is checked by itself, and all go or none."""

from collections.abc import Sequence

from django.db import transaction
from django.utils.translation import gettext as _

from pocs.common import audit
from pocs.common.actors import Actor
from pocs.common.errors import FieldError, InvalidInput, NotFound, NotPermitted
from pocs.people import policies
from pocs.people.models import User
from pocs.reviews.choices import ObservationState
from pocs.reviews.duties import Duty, open_duties
from pocs.reviews.models import Condition, Observation
from pocs.reviews.services.support import require_member, require_person, require_text, tell

ITEMS_MAX = 200
#: kind of duty -> the capability that gives it to another
CAPABILITY = {
    "condition": "decision.confirm",
    "task": "followthrough.edit",
    "observation": "observation.edit",
}


def duties_hand_over(*, actor: Actor, keys: Sequence[str], to: User | None, reason: str) -> list[Duty]:
    """Give duties (`task:7`, `condition:3`, `observation:2`) to another person, all of them or none.

    For each the actor needs what changing it alone would ask for, and `to` must be a member of its
    project. Raises NotFound for one that the actor may not see, NotPermitted for one they may not give
    away, each naming the item (`item`: its place in the list).
    """
    require_person(actor)
    reason = require_text("/reason", reason, _("Say why the duties are handed over."))
    if not keys or len(keys) > ITEMS_MAX:
        text = _("Name 1 to %(most)d duties.") % {"most": ITEMS_MAX}
        raise InvalidInput(text, [FieldError("/items", "length", text)])
    if to is None or to.organisation_id != actor.organisation_id or not to.is_active:
        text = _("There is no such person.")
        raise InvalidInput(text, [FieldError("/to", "unknown", text)])
    with transaction.atomic():
        known = {duty.key: duty for duty in open_duties()}
        done = [
            _hand_over(actor, known.get(key), index, to, reason)
            for index, key in enumerate(dict.fromkeys(keys))
        ]
    return done


def _hand_over(actor: Actor, duty: Duty | None, index: int, to: User, reason: str) -> Duty:
    if duty is None or not policies.allowed(actor, "project.view", duty.project):
        raise NotFound(_("Item %(number)d: there is no such open duty.") % {"number": index + 1}, item=index)
    if not policies.allowed(actor, CAPABILITY[duty.kind], duty.project):
        text = _("Item %(number)d: your role on “%(project)s” does not allow this.")
        raise NotPermitted(text % {"number": index + 1, "project": duty.project}, item=index)
    require_member(f"/items/{index}", duty.project, to)
    row = type(duty.row)._default_manager.select_for_update().get(pk=duty.row.pk)
    before = str(duty.owner) if duty.owner else None
    if isinstance(row, Observation):
        if row.state == ObservationState.ACTIVE and row.observer_id not in (None, to.pk):
            row.state = ObservationState.HANDED_OVER
        row.observer = to
    else:
        row.owner = to
    row.version += 1
    row.save()
    field = "observer" if isinstance(row, Observation) else "owner"
    state = {} if isinstance(row, Condition) else {"state": str(row.state)}
    audit.record(
        actor=actor,
        verb="duty.handed_over",
        obj=row,
        project_id=duty.project.pk,
        before={field: before},
        after={field: str(to), "reason": reason} | state,
    )
    tell(duty.project, "duty", duty=duty.key)
    return Duty(duty.kind, row, duty.project, duty.title, to, duty.due_on, duty.detail)
