"""`compile_catalogues`: .po to .mo without any system package."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from phasegate import catalogues


class Command(BaseCommand):
    help = "Compiles the translation catalogues that changed."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--force", action="store_true", help="compile also what did not change")

    def handle(self, *args: Any, **options: Any) -> None:
        problems = catalogues.compile_all(force=options["force"])
        if problems:
            raise CommandError("\n".join(problems))
        self.stdout.write(f"{len(catalogues.catalogue_files())} catalogues are up to date.")
