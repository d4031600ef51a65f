"""`verify_audit`: recompute the audit chains and say what does not fit."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from pocs.common import audit
from pocs.common.models import AuditHead
from pocs.people.models import Organisation


class Command(BaseCommand):
    help = "Verifies the audit chain of every organisation; exit status 1 when anything does not fit."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--organisation", help="short name of one organisation; all when left out")

    def handle(self, *args: Any, **options: Any) -> None:
        organisations = Organisation.objects.order_by("slug")
        if options["organisation"]:
            organisations = organisations.filter(slug=options["organisation"])
            if not organisations.exists():
                self.stderr.write(f"There is no organisation “{options['organisation']}”.")
                raise SystemExit(2)
        found = sum([self._verify(organisation) for organisation in organisations])
        if found:
            raise SystemExit(1)

    def _verify(self, organisation: Organisation) -> int:
        head = AuditHead.objects.filter(organisation_id=organisation.pk).first()
        problems = audit.verify(organisation.pk)
        state = "good" if not problems else f"{len(problems)} problems"
        self.stdout.write(f"{organisation.slug}: {head.length if head else 0} entries, {state}")
        for problem in problems:
            where = "" if problem.sequence is None else f" at entry {problem.sequence}"
            self.stdout.write(f"  {problem.code}{where}: {problem.text}")
        return len(problems)
