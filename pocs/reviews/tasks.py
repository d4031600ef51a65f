"""Celery tasks of the reviews: each takes nothing or an id and calls one service."""

from celery import shared_task

from pocs.reviews import services


@shared_task(name="pocs.reviews.tasks.waivers_expire")
def waivers_expire() -> int:
    """End the waivers whose time has passed; returns how many."""
    return services.waivers_expire()
