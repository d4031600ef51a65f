"""Celery tasks of the reviews: each takes nothing or an id and calls one service."""

from celery import shared_task

from pocs.reviews import services


@shared_task(name="pocs.reviews.tasks.waivers_expire")
def waivers_expire() -> int:
    """End the waivers whose time has passed; returns how many."""
    return services.waivers_expire()


@shared_task(name="pocs.reviews.tasks.follow_up")
def follow_up() -> int:
    """End signatures in time, tell of overdue duties, repeat the runs of observations; returns how many."""
    return services.signoffs_expire() + services.overdue_escalate() + services.schedules_run()
