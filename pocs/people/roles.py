"""Roles on a project and on an organisation, and what each may do: the only table of rights."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class ProjectRole(models.TextChoices):
    VIEWER = "viewer", _("Viewer")
    CONTRIBUTOR = "contributor", _("Contributor")
    REVIEWER = "reviewer", _("Reviewer")
    SIGNER_BUSINESS = "signer_business", _("Business signer")
    SIGNER_PLATFORM = "signer_platform", _("Platform signer")
    SIGNER_SECURITY = "signer_security", _("Security signer")
    DECISION_MAKER = "decision_maker", _("Decision maker")
    PROCUREMENT = "procurement", _("Procurement")
    OBSERVER = "observer", _("Observer")
    LEAD = "lead", _("Technical lead")


class OrganisationRole(models.TextChoices):
    MEMBER = "member", _("Member")
    ADMIN = "admin", _("Administrator")
    AUDITOR = "auditor", _("Auditor")


R = ProjectRole
EVERY_ROLE = frozenset(ProjectRole)

#: capability -> project roles that have it. Services ask `policies.require`, never for a role.
CAPABILITIES: dict[str, frozenset[ProjectRole]] = {
    "project.view": EVERY_ROLE,
    "project.edit": frozenset({R.LEAD, R.CONTRIBUTOR}),
    "project.advance": frozenset({R.LEAD}),
    "project.members": frozenset({R.LEAD}),
    "project.tokens": frozenset({R.LEAD}),
    "project.export": frozenset({R.LEAD}),
    "scenario.edit": frozenset({R.LEAD, R.CONTRIBUTOR}),
    "scenario.approve": frozenset({R.LEAD}),
    "run.execute": frozenset({R.LEAD, R.CONTRIBUTOR}),
    "answers.draw": frozenset({R.LEAD, R.REVIEWER, R.SIGNER_BUSINESS}),
    "answers.judge": frozenset({R.REVIEWER, R.SIGNER_BUSINESS}),
    "run.cancel": frozenset({R.LEAD, R.CONTRIBUTOR}),
    "inference.use": frozenset({R.LEAD, R.CONTRIBUTOR}),
    "target.edit": frozenset({R.LEAD, R.CONTRIBUTOR}),
    "evidence.edit": frozenset({R.LEAD, R.CONTRIBUTOR}),
    "evidence.review": frozenset({R.REVIEWER, R.LEAD}),
    "conclusion.edit": frozenset({R.LEAD, R.CONTRIBUTOR}),
    "package.freeze": frozenset({R.LEAD}),
    "signoff.business": frozenset({R.SIGNER_BUSINESS}),
    "signoff.platform": frozenset({R.SIGNER_PLATFORM}),
    "signoff.security": frozenset({R.SIGNER_SECURITY}),
    "objection.raise": EVERY_ROLE,
    "objection.rule": frozenset({R.REVIEWER, R.DECISION_MAKER}),
    "waiver.request": frozenset({R.LEAD, R.CONTRIBUTOR}),
    "waiver.grant": frozenset({R.DECISION_MAKER}),
    "decision.propose": frozenset({R.LEAD, R.DECISION_MAKER}),
    "decision.confirm": frozenset({R.DECISION_MAKER}),
    "followthrough.edit": frozenset({R.LEAD, R.PROCUREMENT, R.DECISION_MAKER}),
    "observation.edit": frozenset({R.LEAD, R.DECISION_MAKER}),
    "observation.read_in": frozenset({R.LEAD, R.OBSERVER}),
}

#: what a role in the organisation gives on every one of its projects, member or not
ORGANISATION_CAPABILITIES: dict[OrganisationRole, frozenset[str]] = {
    OrganisationRole.AUDITOR: frozenset({"project.view", "project.export"}),
    OrganisationRole.ADMIN: frozenset({"project.members"}),
}

#: capability -> scope a CI token needs for it; what is not here, no token may do.
TOKEN_SCOPES: dict[str, str] = {
    "project.view": "read",
    "run.execute": "runs:write",
    "run.cancel": "runs:write",
    "inference.use": "inference",
    "evidence.edit": "evidence:write",
    "observation.read_in": "observation:write",
}
#: roles whose one right, to sign, its holder may hand to a deputy for some days
DELEGABLE_ROLES = frozenset({R.SIGNER_BUSINESS, R.SIGNER_PLATFORM, R.SIGNER_SECURITY})
SCOPES = tuple(sorted(set(TOKEN_SCOPES.values())))
