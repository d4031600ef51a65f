"""`seed_demo`: the demo organisation of the embedded profile; running it again changes nothing."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from phasegate.demo import people, project
from pocs.common.errors import DomainError, InvalidInput

#: profiles in which well-known accounts may exist
PROFILES = ("embedded", "test")


class Command(BaseCommand):
    help = "Makes the demo organisation, its accounts and its project."

    def handle(self, *args: Any, **options: Any) -> None:
        if settings.PHASEGATE_PROFILE not in PROFILES:
            raise CommandError("Demo accounts exist in the embedded profile only.")
        accounts = people.DemoAccounts(settings.VAR_DIR / "demo-accounts.json")
        try:
            with transaction.atomic():
                self._seed(accounts)
        except DomainError as error:
            wrong = "; ".join(str(item.detail) for item in getattr(error, "errors", []))
            raise CommandError(f"The demo data could not be made: {error.detail} {wrong}".strip()) from error
        accounts.write()
        self.stdout.write(f"The demo accounts are in {accounts.path}.")

    def _seed(self, accounts: people.DemoAccounts) -> None:
        company = people.organisation("云桥科技 Cloudbridge", "cloudbridge")
        cast = {persona.key: people.person(persona, company, accounts) for persona in people.PERSONAS}
        other = people.organisation("蓝湾咨询 Bluebay", "bluebay")
        outsider = people.person(people.OUTSIDER, other, accounts)
        project.outsiders_project(outsider)
        lead = cast["lead"].as_actor()
        demo = project.project_plan(cast["lead"], cast)
        try:
            project.engine_target(lead, demo)
        except InvalidInput as error:  # comes with the next start, once the model is there
            self.stderr.write(f"The demo project has no engine yet: {error.detail} Run `make setup`.")
        project.project_start(lead, demo)
        token = project.ci_token(lead, demo, cast["contributor"], accounts.data.get("ci_token"))
        accounts.data |= {"ci_token": token, "project": demo.pk}
