"""What a person chooses: the channel of each kind of notice, and the daily digest."""

from collections.abc import Mapping

from django.db import transaction
from django.utils.translation import gettext as _

from pocs.common.actors import Actor
from pocs.common.errors import FieldError, InvalidInput, NotPermitted
from pocs.common.versions import stale
from pocs.notices.choices import Channel
from pocs.notices.kinds import KINDS
from pocs.notices.models import NoticeSettings


@transaction.atomic
def notice_settings_set(
    *,
    actor: Actor,
    channels: Mapping[str, str] | None = None,
    digest_on: bool | None = None,
    digest_hour: int | None = None,
    version: int | None = None,
) -> NoticeSettings:
    """Store one's own choices; what is not given stays. No right depends on them, so nothing is audited.

    `channels` by kind; `version` is what the form was built on, 0 before the first save.
    """
    if not actor.is_person or actor.user_id is None:
        raise NotPermitted(_("Everybody sets their own preferences."))
    wrong = [
        FieldError(f"/channels/{kind}", "unknown", _("There is no such kind of notice or channel."))
        for kind, channel in (channels or {}).items()
        if kind not in KINDS or channel not in Channel.values
    ]
    if digest_hour is not None and (isinstance(digest_hour, bool) or not 0 <= digest_hour <= 23):
        wrong.append(FieldError("/digest_hour", "range", _("An hour lies between 0 and 23.")))
    if wrong:
        raise InvalidInput(_("The preferences cannot be saved."), wrong)
    row, _created = NoticeSettings.objects.select_for_update().get_or_create(
        user_id=actor.user_id, defaults={"version": 0}
    )
    if version is not None and version != row.version:
        raise stale(row)
    kept = row.channels | dict(channels or {})
    row.channels = {kind: channel for kind, channel in kept.items() if channel != KINDS[kind].channel}
    row.digest_on = row.digest_on if digest_on is None else digest_on
    row.digest_hour = row.digest_hour if digest_hour is None else digest_hour
    row.version += 1
    row.save()
    return row
