"""Celery tasks of notices: the clock calls them, each calls one service."""

from celery import shared_task

from pocs.notices import services


@shared_task(name="pocs.notices.tasks.tell")
def tell() -> None:
    """Read what happened, then send what is due by e-mail and webhook."""
    services.entries_read()
    services.notices_mail()
    services.deliveries_send()


@shared_task(name="pocs.notices.tasks.remind")
def remind() -> None:
    """Reminders and the digests of everyone whose hour has come."""
    services.waivers_remind()
    services.digests_mail()
