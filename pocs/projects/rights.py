"""What the routes of projects ask for."""

from django.utils.translation import gettext_lazy as _

from pocs.common.access import Table
from pocs.common.actors import Actor
from pocs.people import policies
from pocs.people.access import CREATOR, SIGNED_IN, behind, needs, person_needs, reads, rule
from pocs.projects.models import Project
from pocs.projects.selectors import auditing_require

PROJECT = behind(Project)
EDIT, ADVANCE = needs("project.edit", PROJECT), needs("project.advance", PROJECT)
MEMBERS, TOKENS = needs("project.members", PROJECT), person_needs("project.tokens", PROJECT)
SCENARIO, APPROVE = needs("scenario.edit", PROJECT), needs("scenario.approve", PROJECT)
READS = reads()
READS_MEMBERS = rule("reads-members", _("whoever reads the project, and administrators of the organisation"))


def _ask_cloning(actor: Actor, pk: int) -> None:
    policies.require(actor, "project.view", PROJECT(actor, {"pk": pk}))
    policies.creating_require(actor)


CLONES = rule("clone", _("whoever reads the project and may create one: no auditor, no token"), _ask_cloning)
AUDITS = rule(
    "audit", _("auditors; technical leads, for the projects that they lead; no token"), auditing_require
)

TABLE: Table = {
    "api-projects": {"GET": SIGNED_IN, "POST": CREATOR},
    "api-project": {"GET": READS, "PATCH": EDIT},
    "api-clone": {"POST": CLONES},
    "api-project-templates": {"GET": SIGNED_IN},
    "api-gates": {"GET": READS},
    "api-advance": {"POST": ADVANCE},
    "api-cancel": {"POST": ADVANCE},
    "api-history": {"GET": READS},
    "api-members": {"GET": READS_MEMBERS, "POST": MEMBERS},
    "api-member": {"DELETE": MEMBERS},
    "api-tokens": {"GET": reads("project.tokens"), "POST": TOKENS},
    "api-token-revoke": {"POST": TOKENS},
    "api-audit": {"GET": AUDITS},
    "api-audit-verification": {"POST": AUDITS},
    "api-affected": {"GET": READS, "POST": EDIT},
    "api-affected-item": {"GET": READS, "PATCH": EDIT, "DELETE": EDIT},
    "api-readiness": {"GET": READS},
    "api-readiness-item": {"GET": READS, "PUT": EDIT},
    "api-declarations": {"GET": READS},
    "api-declaration": {"GET": READS, "PUT": EDIT},
    "api-scenarios": {"GET": READS, "POST": SCENARIO},
    "api-scenario-version": {"GET": READS},
    "api-scenario-approve": {"POST": APPROVE},
    "api-scenario-retire": {"POST": APPROVE},
    "api-workloads": {"GET": READS, "POST": SCENARIO},
    "api-workload": {"GET": READS, "DELETE": SCENARIO},
    "api-workload-confirm": {"POST": SCENARIO},
    "projects:workloads": {"GET": READS, "POST": SCENARIO},
    "projects:workload": {"GET": READS},
    "projects:workload_state": {"POST": SCENARIO},
    "projects:list": {"GET": SIGNED_IN},
    "projects:create": {"GET": SIGNED_IN, "POST": CREATOR},
    "projects:detail": {"GET": READS},
    "projects:edit": {"GET": reads("project.edit"), "POST": EDIT},
    "projects:clone": {"GET": READS, "POST": CLONES},
    "projects:advance": {"POST": ADVANCE},
    "projects:cancel": {"GET": reads("project.advance"), "POST": ADVANCE},
    "projects:history": {"GET": READS},
    "projects:members": {"GET": READS_MEMBERS, "POST": MEMBERS},
    "projects:member_remove": {"POST": MEMBERS},
    "projects:affected": {"GET": READS, "POST": EDIT},
    "projects:affected_item": {"GET": reads("project.edit"), "POST": EDIT},
    "projects:affected_remove": {"POST": EDIT},
    "projects:readiness": {"GET": READS, "POST": EDIT},
    "projects:declarations": {"GET": READS, "POST": EDIT},
    "projects:scenarios": {"GET": READS},
    "projects:scenario_create": {"GET": reads("scenario.edit"), "POST": SCENARIO},
    "projects:missing_scenarios": {"GET": reads("scenario.edit"), "POST": SCENARIO},
    "projects:scenario": {"GET": READS},
    "projects:scenario_edit": {"GET": reads("scenario.edit"), "POST": SCENARIO},
    "projects:scenario_version": {"GET": READS},
    "projects:scenario_version_state": {"POST": APPROVE},
    "projects:tokens": {"GET": reads("project.tokens"), "POST": TOKENS},
    "projects:token_revoke": {"POST": TOKENS},
    "projects:audit": {"GET": AUDITS, "POST": AUDITS},
}
