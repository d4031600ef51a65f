"""E-mail: at once, together, the digest in the reader's zone and language, failures tried again."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core import mail
from django.utils import timezone

from pocs.evidence import services as evidence_services
from pocs.notices import services
from pocs.notices.models import Notice, NoticeSettings
from pocs.notices.services.telling import tell
from pocs.notices.telling import Telling
from pocs.people.models import User
from tests.factories import Cast

Make = Callable[..., Any]
MORNING = datetime(2030, 3, 4, 0, 30, tzinfo=UTC)  # 08:30 in Shanghai


def say(cast: Cast, *people: User, kind: str = "comment", key: str = "k1", text: str = "Look here") -> None:
    tell(
        Telling(
            kind=kind,
            key=key,
            text=text,
            user_ids=frozenset(user.pk for user in people),
            path="/projects/1/",
            project=cast.project,
            detail="Which contexts?",
        )
    )


def test_a_notice_is_mailed_once(cast: Cast) -> None:
    say(cast, cast.lead)
    assert services.notices_mail() == 1
    assert services.notices_mail() == 0
    (message,) = mail.outbox
    assert message.to == [f"{cast.lead.username}@example.org"]
    assert message.subject == "[PhaseGate] Look here"
    assert "https://phasegate.example/projects/1/" in message.body
    assert "Which contexts?" in message.body
    assert "/notifications/preferences/" in message.body


def test_several_notices_are_one_message(cast: Cast) -> None:
    for number in range(3):
        say(cast, cast.lead, key=f"k{number}", text=f"Line {number}")
    services.notices_mail()
    (message,) = mail.outbox
    assert message.subject == "[PhaseGate] 3 notices"
    assert all(f"Line {number}" in message.body for number in range(3))


def test_a_name_cannot_break_the_header(cast: Cast) -> None:
    say(cast, cast.lead, text="Evil\r\nBcc: everyone@example.org")
    services.notices_mail()
    assert mail.outbox[0].subject == "[PhaseGate] Evil Bcc: everyone@example.org"
    assert mail.outbox[0].recipients() == [f"{cast.lead.username}@example.org"]


def test_channels_are_kept(cast: Cast) -> None:
    services.notice_settings_set(actor=cast.lead.as_actor(), channels={"comment": "digest"})
    services.notice_settings_set(actor=cast.viewer.as_actor(), channels={"comment": "off"})
    say(cast, cast.lead, cast.viewer, cast.contributor)
    assert services.notices_mail() == 1
    assert mail.outbox[0].to == [f"{cast.contributor.username}@example.org"]
    assert set(Notice.objects.values_list("channel", flat=True)) == {"digest", "off", "now"}


def test_without_an_address_or_a_mail_server_nothing_is_mailed(cast: Cast, settings: Any) -> None:
    User.objects.filter(pk=cast.lead.pk).update(email="")
    say(cast, cast.lead, cast.viewer)
    settings.PHASEGATE_EMAIL = False
    assert (services.notices_mail(), services.digests_mail()) == (0, 0)
    settings.PHASEGATE_EMAIL = True
    assert services.notices_mail() == 1


def test_a_refused_message_is_tried_again_and_given_up_in_the_end(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(cast, cast.lead)
    sent = []

    def refuse(self: Any) -> None:
        sent.append(self)
        raise ConnectionRefusedError

    monkeypatch.setattr("django.core.mail.EmailMessage.send", refuse)
    for _attempt in range(10):
        Notice.objects.update(mail_next_at=timezone.now() - timedelta(seconds=1))
        assert services.notices_mail() == 0
    assert len(sent) == 6
    assert Notice.objects.get().mailed_at is None


def test_the_digest_comes_in_the_readers_morning_and_language(cast: Cast, submitted: Make) -> None:
    submitted()
    User.objects.exclude(pk=cast.reviewer.pk).update(email="")
    services.entries_read()
    assert services.digests_mail(MORNING - timedelta(hours=1)) == 0  # 07:30 in Shanghai
    assert services.digests_mail(MORNING) == 1
    (message,) = mail.outbox
    assert "About retrospective" in message.body
    assert "复盘证据" in message.body  # the kind of the evidence that waits
    assert "/notifications/preferences/" in message.body
    assert services.digests_mail(MORNING + timedelta(hours=2)) == 0  # once a day
    services.digests_mail(MORNING + timedelta(days=1))
    assert len(mail.outbox) == 2  # it still waits
    notice = Notice.objects.get(recipient=cast.reviewer)
    assert (notice.channel, notice.mailed_at is not None) == ("digest", True)


def test_an_empty_digest_is_no_message(cast: Cast) -> None:
    assert services.digests_mail(MORNING + timedelta(hours=9)) == 0
    assert mail.outbox == []


def test_a_digest_that_cannot_be_sent_comes_later(
    cast: Cast, submitted: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    submitted()
    User.objects.exclude(pk=cast.reviewer.pk).update(email="")
    with monkeypatch.context() as broken:

        def refuse(self: Any) -> None:
            raise ConnectionRefusedError

        broken.setattr("django.core.mail.EmailMessage.send", refuse)
        assert services.digests_mail(MORNING) == 0
    assert services.digests_mail(MORNING) == 1


def test_a_digest_switched_off_does_not_come(cast: Cast, submitted: Make) -> None:
    submitted()
    for user in (cast.reviewer, cast.lead):
        services.notice_settings_set(actor=user.as_actor(), digest_on=False)
    services.digests_mail(MORNING + timedelta(hours=12))
    assert mail.outbox == []


def test_an_unknown_time_zone_is_utc(cast: Cast, submitted: Make) -> None:
    submitted()
    User.objects.exclude(pk=cast.reviewer.pk).update(email="")
    User.objects.filter(pk=cast.reviewer.pk).update(time_zone="Mars/Olympus")
    assert services.digests_mail(datetime(2030, 3, 4, 7, 59, tzinfo=UTC)) == 0
    assert services.digests_mail(datetime(2030, 3, 4, 8, 0, tzinfo=UTC)) == 1
    assert NoticeSettings.objects.get(user=cast.reviewer).last_digest_on.isoformat() == "2030-03-04"


def test_the_digest_holds_what_waits_and_what_happened(cast: Cast, submitted: Make) -> None:
    revision = submitted()
    evidence_services.revision_review(actor=cast.reviewer.as_actor(), revision=revision)
    waiting = submitted(title="Waits for a reviewer")
    services.entries_read()
    services.digests_mail(MORNING + timedelta(hours=12))
    bodies = {message.to[0].split("@")[0]: message.body for message in mail.outbox}
    assert "reviewed “About retrospective”" in bodies[cast.contributor.username]
    assert waiting.title in bodies[cast.lead.username]
