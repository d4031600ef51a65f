"""`reap`: find runs whose worker died, once, by hand."""

from typing import Any

from django.core.management.base import BaseCommand

from pocs.runs.services import leases


class Command(BaseCommand):
    help = "Interrupts runs whose lease has expired and sends lost ones to the queue again."

    def handle(self, *args: Any, **options: Any) -> None:
        interrupted = leases.reap_expired_leases()
        requeued = leases.requeue_lost_runs()
        self.stdout.write(f"{len(interrupted)} runs interrupted, {len(requeued)} sent again.")
