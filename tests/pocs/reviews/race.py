"""Two people sign the last two slots at the same moment; as a script, on an SQLite file of its own.

DJANGO_SETTINGS_MODULE=phasegate.settings.embedded PHASEGATE_VAR=DIR python -m tests.pocs.reviews.race
"""

import json
import sys
from threading import Barrier, Thread

import django


def race() -> dict[str, object]:
    """What is stored afterwards, and what the two signers were told."""
    from django.db import connection

    from pocs.common.errors import DomainError
    from pocs.common.models import AuditEntry
    from pocs.reviews.choices import Slot
    from pocs.reviews.models import Package
    from tests.factories import make_cast
    from tests.pocs.reviews import walk

    cast = make_cast()
    walk.to_evidence_complete(cast)
    package = walk.freeze(cast)
    walk.sign(cast, package, Slot.BUSINESS)
    start, told = Barrier(2), []

    def sign(slot: Slot) -> None:
        try:
            own = Package.objects.select_related("project").get(pk=package.pk)
            start.wait(timeout=30)
            walk.sign(cast, own, slot)
            told.append("signed")
        except DomainError as refused:
            told.append(str(refused))
        finally:
            connection.close()

    threads = [Thread(target=sign, args=[slot]) for slot in (Slot.PLATFORM, Slot.SECURITY)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    package.refresh_from_db()
    transitions = AuditEntry.objects.filter(verb="package.approved", project_id=cast.project.pk)
    return {
        "told": told,
        "state": package.state,
        "signoffs": sorted(package.signoffs.values_list("state", flat=True)),
        "transitions": transitions.count(),
    }


if __name__ == "__main__":
    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    sys.stdout.write(json.dumps(race()))
