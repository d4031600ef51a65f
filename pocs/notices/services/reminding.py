"""Reminders of what only time brings: waivers that will expire soon."""

from datetime import timedelta

from django.db import transaction
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from pocs.common.phrases import said
from pocs.notices.rules.drafts import holders
from pocs.notices.services.telling import tell
from pocs.notices.telling import Telling
from pocs.reviews.choices import WaiverState
from pocs.reviews.models import Waiver

WAIVERS_AHEAD = timedelta(days=3)


def waivers_remind() -> int:
    """Tell once of each granted waiver that expires within three days; returns how many notices."""
    now = timezone.now()
    soon = Waiver.objects.filter(
        state=WaiverState.GRANTED, expires_at__gt=now, expires_at__lte=now + WAIVERS_AHEAD
    )
    told = 0
    for waiver in soon.select_related("project").order_by("pk"):
        people = {waiver.requested_by_id} | holders(waiver.project, "project.advance", "waiver.grant")
        text = _("The waiver of %(guard)s in “%(project)s” expires on %(day)s; its gate counts again then")
        with transaction.atomic():
            told += len(
                tell(
                    Telling(
                        kind="waiver.expiring",
                        key=f"waiver:{waiver.pk}:{waiver.expires_at.date().isoformat()}",
                        text=said(
                            text,
                            guard=waiver.guard,
                            project=waiver.project.name,
                            day=waiver.expires_at.date().isoformat(),
                        ),
                        user_ids=frozenset(people),
                        path=reverse("reviews:waivers", args=[waiver.project_id]),
                        project=waiver.project,
                        due_on=waiver.expires_at.date(),
                    )
                )
            )
    return told
