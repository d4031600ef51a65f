"""How long an organisation's page with many projects takes, and the verification of a long audit chain.

    python -P scripts/bench_governance.py [--projects 1000] [--entries 100000]

Makes a SQLite database in a temporary folder (or uses DATABASE_URL), fills it, and times the server side of
the page with Django's test client: median and worst of ten, after one to warm up.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--projects", type=int, default=1_000)
    parser.add_argument("--entries", type=int, default=100_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="phasegate-bench-") as folder:
        os.environ.setdefault("DATABASE_URL", f"sqlite:///{folder}/bench.sqlite3")
        os.environ["DJANGO_SETTINGS_MODULE"] = "phasegate.settings.test"
        sys.path.insert(0, str(ROOT))
        import django

        django.setup()
        measure(arguments.projects, arguments.entries, Path(folder))
    return 0


def measure(projects: int, entries: int, folder: Path) -> None:
    from django.core.management import call_command
    from django.test import Client, override_settings
    from django.urls import reverse

    from pocs.common import audit
    from scripts.bench_runtime_query import show
    from tests.factories import make_cast

    call_command("migrate", verbosity=0)
    cast = make_cast()
    fill_projects(cast, projects)
    client = Client()
    client.force_login(cast.lead)
    show(f"organisation page of {projects:,} projects", client, reverse("projects:list"))
    show("its last page", client, reverse("projects:list"), {"page": "10000"})
    show("what waits for the lead of all", client, reverse("inbox"))

    with override_settings(PHASEGATE_AUDIT_CHECKPOINTS=folder):
        fill_chain(cast, entries)
        begun = time.perf_counter()
        problems = audit.verify(cast.organisation.pk)
        took = time.perf_counter() - begun
    print(f"chain of {entries:,} entries verified in {took:.1f} s, {len(problems)} problems")


def fill_projects(cast: object, count: int) -> None:
    """Projects of the organisation with a complete plan, all led by one person."""
    from django.db import transaction

    from pocs.people.roles import ProjectRole
    from pocs.projects.models import ProjectMember
    from tests.factories import complete_plan, make_project

    with transaction.atomic():
        for _number in range(count):
            project = make_project(cast.organisation, created_by=cast.lead)  # type: ignore[attr-defined]
            ProjectMember.objects.create(project=project, user=cast.lead, role=ProjectRole.LEAD)  # type: ignore[attr-defined]
            complete_plan(project, cast.team)  # type: ignore[attr-defined]


def fill_chain(cast: object, count: int) -> None:
    """A chain as `audit.record` makes it, written in bulk, with one signed checkpoint at its end."""
    from django.utils import timezone

    from pocs.common import audit
    from pocs.common.canonical import digest
    from pocs.common.models import AuditEntry, AuditHead

    organisation = cast.organisation.pk  # type: ignore[attr-defined]
    previous, rows = audit.GENESIS, []
    at = timezone.now()
    for sequence in range(1, count + 1):
        entry = AuditEntry(
            organisation_id=organisation,
            sequence=sequence,
            at=at,
            actor={"kind": "user", "label": "Lead", "user_id": 1},
            verb="evidence.edited",
            object_type="evidence.evidence",
            object_id=str(sequence),
            object_label="Evidence",
            before={"title": "Before", "sha256": previous},
            after={"title": "After", "sha256": previous},
            previous_hash=previous,
        )
        entry.hash = previous = digest(audit.entry_payload(entry))
        rows.append(entry)
    AuditEntry.objects.bulk_create(rows, batch_size=2_000)
    AuditHead.objects.update_or_create(
        organisation_id=organisation, defaults={"length": count, "hash": previous}
    )
    audit.checkpoint_now(organisation)


if __name__ == "__main__":
    sys.exit(main())
