"""Service of what is overdue (X17, X18): the owner's team is told, and a week later who leads and decides."""

from datetime import timedelta

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import override

from pocs.common import audit
from pocs.common.actors import system_actor
from pocs.common.notices import Notice, send
from pocs.common.phrases import said
from pocs.people.models import User
from pocs.people.roles import ProjectRole
from pocs.reviews.choices import EscalationLevel
from pocs.reviews.duties import Duty, open_duties
from pocs.reviews.models import Escalation
from pocs.reviews.people import holders_of, leads_of, team_of
from pocs.reviews.services.support import tell

#: how long after its date a duty goes beyond the owner's team
LEADS_AFTER = timedelta(days=7)


def overdue_escalate() -> int:
    """Tell of every duty that became overdue, once per duty, date and level; returns how many."""
    today = timezone.now().date()
    count = 0
    for duty in open_duties(overdue=True):
        levels = [EscalationLevel.TEAM]
        if duty.due_on is not None and today - duty.due_on >= LEADS_AFTER:
            levels.append(EscalationLevel.LEADS)
        count += sum(_escalate(duty, level) for level in levels)
    return count


@transaction.atomic
def _escalate(duty: Duty, level: EscalationLevel) -> bool:
    with override("en"):  # stored once, for readers of either language; pages say it in theirs
        title = str(duty.title)[:300]
    if duty.due_on is None:
        return False
    row, created = Escalation.objects.get_or_create(
        object_type=duty.row._meta.label_lower,
        object_id=duty.row.pk,
        due_on=duty.due_on,
        level=level,
        defaults={"project": duty.project, "title": title},
    )
    if not created:
        return False
    told = _whom(duty, level)
    row.told.set(told)
    names = [str(user) for user in User.objects.filter(pk__in=told).order_by("username")]
    audit.record(
        actor=system_actor(duty.project.organisation_id),
        verb="duty.escalated",
        obj=duty.row,
        project_id=duty.project.pk,
        after={"due_on": row.due_on.isoformat(), "told": names, "level": int(level)},
    )
    send(
        Notice(
            kind="duty.overdue",
            title=said(_("Overdue: %(duty)s"), duty=duty.title),
            user_ids=told,
            project_id=duty.project.pk,
            route=duty.route,
            route_args=(duty.project.pk,),
            due_on=duty.due_on,
        )
    )
    tell(duty.project, "overdue", duty=duty.key, level=int(level))
    return True


def _whom(duty: Duty, level: EscalationLevel) -> list[int]:
    """The owner's team; without an active owner, and a week later, those who lead and decide."""
    leads = holders_of(duty.project, ProjectRole.LEAD, ProjectRole.DECISION_MAKER)
    if level == EscalationLevel.LEADS:
        return leads
    owner = duty.owner
    team = team_of(owner) if owner is not None else []
    seeing = set(duty.project.members.values_list("user_id", flat=True))
    told = [pk for pk in team if pk in seeing] or (leads_of(duty.project))
    return sorted(set(told))
