"""Seeds the project of the contested review: measured, its evidence written and not all of it reviewed.

DJANGO_SETTINGS_MODULE=phasegate.settings.embedded PHASEGATE_VAR=DIR python -P -m tests.e2e.contested
"""

import json
import sys

import django


def seed() -> dict[str, int]:
    """Numbers of the project and of its runtime evidence, which waits for its review."""
    from pocs.evidence import services as evidence_services
    from pocs.evidence.choices import EvidenceType
    from pocs.people.models import User
    from pocs.people.roles import ProjectRole
    from pocs.projects import services as project_services
    from pocs.projects.choices import ProjectState
    from pocs.projects.models import Project
    from pocs.reviews import services
    from pocs.reviews.manifest import CONCLUSION_FIELDS
    from tests.factories import Cast, complete_plan
    from tests.pocs.reviews import walk

    people = {name: User.objects.get(username=f"demo-{name}") for name in
              ("lead", "contributor", "business", "platform", "security", "decision")}  # fmt: skip
    lead = people["lead"]
    assert lead.organisation is not None
    assert lead.team is not None
    project = project_services.project_create(actor=lead.as_actor(), name="争议评审 Contested review")
    roles = {
        "contributor": ProjectRole.CONTRIBUTOR, "business": ProjectRole.SIGNER_BUSINESS,
        "platform": ProjectRole.SIGNER_PLATFORM, "security": ProjectRole.SIGNER_SECURITY,
        "decision": ProjectRole.DECISION_MAKER,
    }  # fmt: skip
    for name, role in roles.items():
        project_services.member_add(actor=lead.as_actor(), project=project, user=people[name], role=role)
    project_services.member_add(
        actor=lead.as_actor(), project=project, user=people["platform"], role=ProjectRole.REVIEWER
    )
    cast = Cast(
        organisation=lead.organisation, team=lead.team, project=project, reviewer=people["platform"],
        decision_maker=people["decision"], procurement=people["decision"], observer=people["security"],
        viewer=lead, auditor=lead, bystander=lead, outsider=lead,
        **{name: people[name] for name in ("lead", "contributor", "business", "platform", "security")},
    )  # fmt: skip
    complete_plan(project, lead.team)
    walk.advance(cast, ProjectState.PLANNED)
    walk.advance(cast, ProjectState.RUNNING)
    runs = walk.add_runs(cast)
    found: dict[str, int] = {"project": Project.objects.get(pk=project.pk).pk}
    for kind, body in walk.bodies(cast, runs[0]).items():
        evidence = evidence_services.evidence_create(
            actor=cast.contributor.as_actor(), project=project, type=kind, title=f"{kind.value} of the pilot",
            body=body, runs=runs if kind == EvidenceType.RUNTIME else [],
        )  # fmt: skip
        if kind == EvidenceType.RUNTIME:
            revision = evidence.revisions.get()
            evidence_services.revision_submit(actor=cast.contributor.as_actor(), revision=revision)
            found["runtime"] = evidence.pk
        else:
            walk.review(cast, evidence)
    services.conclusion_save(
        actor=cast.contributor.as_actor(), project=project, version=0,
        **{name: f"{name}: stated." for name in CONCLUSION_FIELDS},
    )  # fmt: skip
    return found


if __name__ == "__main__":
    django.setup()
    sys.stdout.write(json.dumps(seed()) + "\n")
