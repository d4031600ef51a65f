"""E-mail: notices at once, several for one person together, and the daily digest with all that waits."""

import logging
import zoneinfo
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from django.conf import settings
from django.core.mail import EmailMessage
from django.db.models import F, Q
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from pocs.notices.choices import Channel
from pocs.notices.models import Notice, NoticeSettings
from pocs.notices.waiting import Waiting, waiting_for
from pocs.people.models import User

log = logging.getLogger(__name__)
PAUSES = tuple(timedelta(minutes=minutes) for minutes in (1, 5, 30, 120, 720))
CLAIM = timedelta(minutes=5)
BATCH = 200
SUBJECT_MAX_CHARACTERS = 120
#: notices in one message; the rest are on the page
SHOWN_MAX = 100


class MailRefused(Exception):
    """The mail server did not take a message; it is tried again."""


def notices_mail() -> int:
    """Mail every notice that is due, one message a person; returns how many messages went out."""
    if not settings.PHASEGATE_EMAIL:
        return 0
    now = timezone.now()
    due = Notice.objects.filter(
        channel=Channel.NOW, mailed_at=None, mail_next_at__lte=now, mail_attempts__lte=len(PAUSES)
    ).exclude(Q(recipient__email="") | Q(recipient__is_active=False))
    by_person: dict[int, list[Notice]] = {}
    for row in due.select_related("recipient", "project").order_by("pk")[:BATCH]:
        if _claim(row, now):
            by_person.setdefault(row.recipient_id, []).append(row)
    return sum(_mail_now(rows) for rows in by_person.values())


def digests_mail(now: datetime | None = None) -> int:
    """Mail the digest of everyone whose hour has come today in their zone; returns how many went out."""
    if not settings.PHASEGATE_EMAIL:
        return 0
    now = now or timezone.now()
    sent = 0
    people = User.objects.filter(is_active=True).exclude(Q(email="") | Q(organisation=None))
    for user in people.select_related("notice_settings").order_by("pk"):
        chosen = getattr(user, "notice_settings", None) or NoticeSettings(user=user)
        local = now.astimezone(_zone(user))
        if not chosen.digest_on or local.hour < chosen.digest_hour:
            continue
        if chosen.last_digest_on is not None and chosen.last_digest_on >= local.date():
            continue
        if chosen.pk is None:
            chosen, _made = NoticeSettings.objects.get_or_create(user=user, defaults={"version": 0})
        mine = NoticeSettings.objects.filter(pk=chosen.pk, last_digest_on=chosen.last_digest_on)
        if not mine.update(last_digest_on=local.date()):  # a second worker sends it already
            continue
        try:
            sent += _mail_digest(user, now)
        except MailRefused:
            NoticeSettings.objects.filter(pk=chosen.pk).update(last_digest_on=chosen.last_digest_on)
        except Exception:  # one person's digest never keeps the others from theirs
            log.exception("the digest of user %s could not be put together", user.pk)
    return sent


def _claim(row: Notice, now: datetime) -> bool:
    mine = Notice.objects.filter(pk=row.pk, mailed_at=None, mail_attempts=row.mail_attempts)
    claimed = bool(mine.update(mail_attempts=F("mail_attempts") + 1, mail_next_at=now + CLAIM))
    row.mail_attempts += claimed
    return claimed


def _mail_now(rows: list[Notice]) -> bool:
    user = rows[0].recipient
    with _as_reader(user):
        if len(rows) == 1:
            subject = rows[0].shown_text
        else:
            subject = ngettext("%(count)d notice", "%(count)d notices", len(rows)) % {"count": len(rows)}
        sent = _send(user, subject, "notices/mail_now.txt", {"notices": rows[:SHOWN_MAX]})
    keys = [row.pk for row in rows]
    if sent:
        Notice.objects.filter(pk__in=keys).update(mailed_at=timezone.now())
        return True
    for row in rows:
        if row.mail_attempts <= len(PAUSES):
            again = timezone.now() + PAUSES[row.mail_attempts - 1]
            Notice.objects.filter(pk=row.pk).update(mail_next_at=again)
    return False


def _mail_digest(user: User, now: datetime) -> bool:
    """What came for the digest since the last one, and everything that waits; nothing is no message.

    Raises MailRefused when there was something and it could not be sent.
    """
    rows = list(
        Notice.objects.filter(recipient=user, channel=Channel.DIGEST, mailed_at=None, created_at__lte=now)
        .select_related("project")
        .order_by("pk")
    )
    with _as_reader(user):
        waits: list[Waiting] = waiting_for(user)
        if not rows and not waits:
            return False
        count = len(waits)
        subject = (
            ngettext("%(count)d thing waits for you", "%(count)d things wait for you", count)
            if count
            else _("What happened since yesterday")
        ) % {"count": count}
        context = {"waits": waits[:SHOWN_MAX], "notices": rows[:SHOWN_MAX], "waits_count": count}
        if not _send(user, subject, "notices/mail_digest.txt", context):
            raise MailRefused
    Notice.objects.filter(pk__in=[row.pk for row in rows]).update(mailed_at=timezone.now())
    return True


def _send(user: User, subject: str, template: str, context: dict[str, object]) -> bool:
    """One plain-text message; False, with a log line, when the mail server does not take it."""
    base = settings.PHASEGATE_BASE_URL
    links = {
        "base": base,
        "inbox_url": base + reverse("inbox"),
        "preferences_url": base + reverse("notices:preferences"),
    }
    line = " ".join(f"[PhaseGate] {subject}".split())[:SUBJECT_MAX_CHARACTERS]
    body = render_to_string(template, context | links | {"user": user})
    message = EmailMessage(line, body, to=[user.email], headers={"Auto-Submitted": "auto-generated"})
    try:
        message.send()
    except (OSError, ValueError) as error:  # smtplib's errors are OSErrors, a bad address is a ValueError
        log.warning("an e-mail to user %s was not sent: %s", user.pk, error)
        return False
    return True


@contextmanager
def _as_reader(user: User) -> Iterator[None]:
    with translation.override(user.language or settings.LANGUAGE_CODE), timezone.override(_zone(user)):
        yield


def _zone(user: User) -> zoneinfo.ZoneInfo:
    """The person's time zone, or UTC for one that this machine does not know."""
    try:
        return zoneinfo.ZoneInfo(user.time_zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError):
        return zoneinfo.ZoneInfo("UTC")
