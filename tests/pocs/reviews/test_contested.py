"""A contested review over the services, on either database: what the browser's story walks, as one rule."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from pocs.common.errors import Conflict, GateNotMet
from pocs.evidence import services as evidence_services
from pocs.evidence.choices import EvidenceType
from pocs.evidence.models import Evidence
from pocs.projects.choices import ProjectState
from pocs.reviews import selectors, services
from pocs.reviews.choices import PackageState, SignOffState, Slot, WaiverState
from pocs.reviews.models import BusinessResult, Conclusion, Package
from pocs.reviews.services.decisions import ConditionInput
from tests.factories import Cast
from tests.pocs.reviews import walk


def conclude(cast: Cast, text: str) -> None:
    version = Conclusion.objects.get(project=cast.project).version
    services.conclusion_save(
        actor=cast.contributor.as_actor(), project=cast.project, version=version, performance=text
    )


def states(package: Package) -> dict[str, list[str]]:
    """The states of every signature of each slot, oldest first."""
    rows = package.signoffs.order_by("id")
    return {slot.value: [row.state for row in rows if row.slot == slot.value] for slot in Slot}


def evidence_is_returned(cast: Cast, evidence: Evidence) -> None:
    """The next revision is returned with a reason, written anew, and reviewed."""
    walk.edit(cast, evidence, errors="One.")
    revision = evidence.revisions.order_by("-number")[0]
    evidence_services.revision_submit(actor=cast.contributor.as_actor(), revision=revision)
    evidence_services.revision_return(actor=cast.reviewer.as_actor(), revision=revision, reason="Which?")
    walk.edit(cast, evidence, errors="One of four requests was cut off on purpose.")
    walk.review(cast, evidence)
    assert [row.state for row in evidence.revisions.order_by("number")][-2:] == ["superseded", "reviewed"]


def a_waiver_opens_the_gate(cast: Cast) -> None:
    """Without a business result nothing is frozen until somebody else grants a dated exception."""
    BusinessResult.objects.filter(project=cast.project).delete()
    with pytest.raises(GateNotMet):
        walk.freeze(cast)
    waiver = services.waiver_request(
        actor=cast.lead.as_actor(), project=cast.project, guard="G8", reason="The first month is not over.",
        scope="This pilot.", expires_at=timezone.now() + timedelta(days=20),
    )  # fmt: skip
    granted = services.waiver_grant(actor=cast.decision_maker.as_actor(), waiver=waiver)
    assert granted.state == WaiverState.GRANTED


def the_first_is_rejected(cast: Cast) -> None:
    """A veto after two approvals ends the package, and nothing is frozen until something changed."""
    package = walk.freeze(cast)
    walk.sign(cast, package, Slot.BUSINESS)
    walk.sign(cast, package, Slot.PLATFORM, verdict="approve_with_conditions", comment="Watch the KV pool.")
    walk.sign(cast, package, Slot.SECURITY, verdict="reject", comment="The conclusion hides the tail.")
    assert package.state == PackageState.REJECTED
    with pytest.raises(Conflict):
        walk.freeze(cast)


def the_second_goes_stale(cast: Cast) -> None:
    """An edit after a signature names its author; the signature stays listed, old text revives nothing."""
    conclude(cast, "p99 is 1.9 times p50.")
    package = walk.freeze(cast)
    walk.sign(cast, package, Slot.BUSINESS)
    conclude(cast, "p99 is 1.9 times p50, at 4 at once.")
    conclude(cast, "p99 is 1.9 times p50.")
    package.refresh_from_db()
    assert package.state == PackageState.STALE
    assert package.stale_by is not None
    assert package.stale_by["label"] == str(cast.contributor)
    assert states(package)["business"] == [SignOffState.STALE]


def the_third_is_accepted(cast: Cast) -> Package:
    """Its difference is shown, all three sign, another person confirms; the waiver is in the manifest."""
    package = walk.freeze(cast)
    previous, differences = selectors.difference_to_previous(package)
    assert (previous and previous.number, package.number) == (2, 3)
    assert differences == []  # the text is that of package 2 again; the signatures are not
    walk.sign(cast, package)
    assert package.state == PackageState.APPROVED
    condition = ConditionInput(text="Watch the KV pool.", owner=cast.platform, due_on=walk.in_days(10))
    decision = walk.propose(cast, package, outcome="accepted_with_conditions", conditions=[condition])
    services.decision_confirm(actor=cast.decision_maker.as_actor(), decision=decision)
    assert [item["guard"] for item in package.manifest["waivers"]] == ["G8"]
    cast.project.refresh_from_db()
    return package


def it_is_launched_and_observed(cast: Cast) -> None:
    """An open condition blocks the launch; its owner closes it; readings and done tasks end the project."""
    walk.set_follow_through(cast)
    walk.advance(cast, ProjectState.FOLLOW_THROUGH)
    tasks = {task.kind: task for task in cast.project.follow_through.all()}
    with pytest.raises(GateNotMet):
        services.task_done(actor=cast.procurement.as_actor(), task=tasks["launch"])
    (condition,) = selectors.open_conditions(cast.project)
    services.condition_close(actor=cast.platform.as_actor(), condition=condition, evidence="The alert is on.")
    for kind in ("budget", "procurement", "launch"):
        services.task_done(actor=cast.procurement.as_actor(), task=tasks[kind])
    walk.set_observers(cast)
    walk.advance(cast, ProjectState.OBSERVING)
    for row in cast.project.observations.all():
        services.observation_read(
            actor=cast.observer.as_actor(), observation=row, value=Decimal("12.5"), unit="requests/s"
        )
        services.observation_close(actor=cast.lead.as_actor(), observation=row)
    walk.advance(cast, ProjectState.CLOSED)


def test_a_contested_review(cast: Cast, evidence: dict[EvidenceType, Evidence]) -> None:
    evidence_is_returned(cast, evidence[EvidenceType.RUNTIME])
    a_waiver_opens_the_gate(cast)
    the_first_is_rejected(cast)
    the_second_goes_stale(cast)
    the_third_is_accepted(cast)
    it_is_launched_and_observed(cast)
    assert [package.state for package in cast.project.packages.order_by("number")] == [
        PackageState.REJECTED,
        PackageState.STALE,
        PackageState.APPROVED,
    ]
