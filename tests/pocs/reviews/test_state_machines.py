"""Random people try random things: no forbidden state is ever reached, and the audit chain always verifies.

Seeded loops, bounded in time: every action is tried through the services as the pages and the API call
them, and refused or done; after each the invariants are asked of what is stored.
"""

import logging
import random
import time
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import IntegrityError
from django.db.models import F
from django.utils import timezone

from pocs.common import audit
from pocs.common.actors import Actor
from pocs.common.canonical import digest
from pocs.common.errors import DomainError
from pocs.evidence import services as evidence_services
from pocs.evidence.models import Evidence, EvidenceRevision
from pocs.people.roles import OrganisationRole, ProjectRole
from pocs.projects import services as project_services
from pocs.projects.choices import PROJECT_ORDER, ProjectState
from pocs.projects.models import ProjectMember
from pocs.projects.states import REOPENINGS
from pocs.reviews import services
from pocs.reviews.choices import CURRENT_APPROVALS, DecisionState, PackageState, SignOffState, Slot
from pocs.reviews.contributions import contributors
from pocs.reviews.models import (
    Condition,
    Decision,
    FollowThroughTask,
    Objection,
    Observation,
    Package,
    SignOff,
    Waiver,
)
from pocs.reviews.policy import NEVER_WAIVED
from tests.factories import PASSWORD, Cast, make_user
from tests.pocs.reviews import walk

STEPS = 700
ENOUGH = 10  # acts that were allowed
SECONDS = 5.0
Act = Callable[["Story"], None]


class Story:
    """One project, its people, and a source of chance."""

    def __init__(self, cast: Cast, seed: int) -> None:
        self.cast, self.dice = cast, random.Random(seed)
        self.project = cast.project
        names = ("lead", "contributor", "reviewer", "business", "platform", "security", "decision_maker",
                 "procurement", "observer", "viewer", "auditor", "bystander", "outsider")  # fmt: skip
        self.people = [getattr(cast, name) for name in names]
        self.people.append(make_user(cast.organisation, "admin", organisation_role=OrganisationRole.ADMIN))
        both = make_user(cast.organisation, "both")  # may sign two slots, decide and review
        for role in (ProjectRole.SIGNER_BUSINESS, ProjectRole.SIGNER_SECURITY, ProjectRole.DECISION_MAKER):
            ProjectMember.objects.create(project=cast.project, user=both, role=role)
        self.people.append(both)
        self.done: dict[str, int] = {}

    def actor(self, *likely: str) -> Actor:
        """Anybody; more often one of those whose business it is, so that the story goes on."""
        if likely and self.dice.random() < 0.75:
            return getattr(self.cast, self.dice.choice(likely)).as_actor()
        return self.dice.choice(self.people).as_actor()

    def any_of(self, model: type) -> object | None:
        rows = list(model.objects.all())
        return self.dice.choice(rows) if rows else None


def newest(model: type) -> object:
    row = model.objects.order_by("-pk").first()
    if row is None:
        raise DomainError("there is none")
    return row


def row_of(story: Story, model: type) -> object:
    row = story.any_of(model)
    if row is None:
        raise DomainError("there is none")
    return row


def a_sign(story: Story) -> None:
    slot = story.dice.choice(Slot.values)
    verdicts = ["approve"] * 12 + ["approve_with_conditions"] * 3 + ["reject"]
    services.signoff_sign(
        actor=story.actor(slot),
        package=newest(Package),
        slot=slot,
        verdict=story.dice.choice(verdicts),
        password=PASSWORD,
        comment=story.dice.choice(["", "Mind the tail."]),
        on_behalf_of=story.dice.choice([None] * 6 + [story.cast.business]),
    )


def a_withdraw(story: Story) -> None:
    services.signoff_withdraw(
        actor=story.actor("business", "security"), signoff=row_of(story, SignOff), reason="A doubt."
    )


def a_freeze(story: Story) -> None:
    services.package_freeze(actor=story.cast.lead.as_actor(), project=story.project)


def a_propose(story: Story) -> None:
    outcome, step = story.dice.choice(
        [("accepted", "wider_pilot"), ("accepted", "procurement"),
        ("accepted_with_conditions", "procurement"),
         ("rejected", "stop"), ("extended_pilot", "wider_pilot")]
    )  # fmt: skip
    conditions = []
    if outcome == "accepted_with_conditions":
        conditions = [
            services.ConditionInput(text="Mask.", owner=story.cast.procurement, due_on=walk.in_days(4))
        ]
    services.decision_propose(
        actor=story.actor("lead"), package=newest(Package), outcome=outcome, next_step=step,
        rationale="Because.", conditions=conditions,
    )  # fmt: skip


def a_confirm(story: Story) -> None:
    services.decision_confirm(actor=story.actor("decision_maker"), decision=newest(Decision))


def a_revoke(story: Story) -> None:
    if story.dice.random() < 0.9:
        raise DomainError("seldom")
    services.decision_revoke(
        actor=story.actor("decision_maker"), decision=newest(Decision), reason="Budget fell."
    )


def a_change(story: Story) -> None:
    if story.dice.random() < 0.8:
        raise DomainError("seldom")
    text = f"Decode, {story.dice.random()}"
    services.conclusion_save(actor=story.actor("contributor"), project=story.project, performance=text)


def a_evidence(story: Story) -> None:
    evidence = row_of(story, Evidence)
    latest = evidence.revisions.order_by("-number")[0]
    what = story.dice.choice(["edit", "submit", "review", "return"])
    if what == "edit":
        if story.dice.random() < 0.8:
            raise DomainError("seldom")
        evidence_services.revision_edit(
            actor=story.actor("contributor"), evidence=evidence, version=evidence.version, body=latest.body,
            runs=list(latest.runs.all()), title=f"Edited {story.dice.random()}",
        )  # fmt: skip
    elif what == "submit":
        evidence_services.revision_submit(actor=story.actor("contributor"), revision=latest)
    elif what == "review":
        evidence_services.revision_review(actor=story.actor("reviewer"), revision=latest)
    else:
        evidence_services.revision_return(actor=story.actor("reviewer"), revision=latest, reason="Not yet.")


def a_waiver(story: Story) -> None:
    if story.dice.random() < 0.5:
        services.waiver_request(
            actor=story.actor(), project=story.project,
            guard=story.dice.choice(["G3", "G8", "G9", "G10", "G12"]),
            reason="x", scope="y", expires_at=timezone.now() + timedelta(days=1),
        )  # fmt: skip
    else:
        row = row_of(story, Waiver)
        act = story.dice.choice([services.waiver_grant, services.waiver_revoke])
        act(actor=story.actor(), waiver=row, **({} if act is services.waiver_grant else {"note": "Enough."}))


def a_objection(story: Story) -> None:
    what = story.dice.choice(["raise", "answer", "answer", "rule", "rule", "withdraw"])
    if what == "raise":
        if story.dice.random() < 0.3:
            raise DomainError("seldom")
        services.objection_raise(
            actor=story.actor(), package=row_of(story, Package), key=f"conclusion:{story.dice.randrange(3)}",
            rule="G7", statement="Vague.",
        )  # fmt: skip
    elif what == "answer":
        services.objection_answer(
            actor=story.actor("lead"), objection=row_of(story, Objection), answer="It is not."
        )
    elif what == "rule":
        services.objection_rule(
            actor=story.actor("decision_maker"),
            objection=newest(Objection),
            upheld=story.dice.random() < 0.3,
            ruling="So.",
        )
    else:
        services.objection_withdraw(actor=story.actor(), objection=row_of(story, Objection))


def a_follow(story: Story) -> None:
    what = story.dice.choice(["task", "done", "observer", "read", "close", "condition"])
    if what == "task":
        services.task_set(
            actor=story.actor("lead"), project=story.project,
            kind=story.dice.choice(["budget", "procurement", "launch"]),
            owner=story.cast.procurement, due_on=walk.in_days(9),
        )  # fmt: skip
    elif what == "done":
        services.task_done(actor=story.actor("procurement"), task=row_of(story, FollowThroughTask))
    elif what == "observer":
        services.observation_set(
            actor=story.actor("lead"), project=story.project, observer=story.cast.observer,
            kind=story.dice.choice(["capacity", "cost", "stability"]),
        )  # fmt: skip
    elif what == "read":
        services.observation_read(
            actor=story.actor("observer"),
            observation=row_of(story, Observation),
            value=Decimal("1"),
            unit="req/s",
        )
    elif what == "close":
        services.observation_close(actor=story.actor("lead"), observation=row_of(story, Observation))
    else:
        services.condition_close(
            actor=story.actor("procurement"), condition=row_of(story, Condition), evidence="Done."
        )


def a_advance(story: Story) -> None:
    order = PROJECT_ORDER.index(ProjectState(story.project.state))
    likely = PROJECT_ORDER[min(order + 1, len(PROJECT_ORDER) - 1)]
    to = story.dice.choice([likely, likely, *PROJECT_ORDER])
    project_services.project_advance(actor=story.actor("lead"), project=story.project, to=to)


def a_clock(story: Story) -> None:
    if story.dice.random() < 0.15:
        rows = SignOff.objects.filter(
            state__in=[SignOffState.REQUESTED, *CURRENT_APPROVALS], expires_at__isnull=False
        )
        rows.filter(pk__in=[row.pk for row in rows[:1]]).update(expires_at=timezone.now())
    services.signoffs_expire()
    for package in Package.objects.filter(state=PackageState.FROZEN):
        services.signoff_ask_again(
            actor=story.cast.lead.as_actor(), package=package, slot=story.dice.choice(Slot.values)
        )


ACTS: list[tuple[Act, int]] = [
    (a_sign, 9), (a_withdraw, 1), (a_freeze, 3), (a_propose, 2), (a_confirm, 4), (a_revoke, 1), (a_change, 1),
    (a_evidence, 2), (a_waiver, 1), (a_objection, 4), (a_follow, 8), (a_advance, 3), (a_clock, 1),
]  # fmt: skip


def invariants(story: Story, before: str, reopened: bool) -> None:
    """What holds of every state that can be reached."""
    story.project.refresh_from_db()
    now = ProjectState(story.project.state)
    was = ProjectState(before)
    if now != was:
        ahead = PROJECT_ORDER.index(now) - PROJECT_ORDER.index(was)
        assert ahead == 1 or (was, now) in REOPENINGS or reopened, f"{was} → {now}"
    order = PROJECT_ORDER.index(now)
    confirmed = Decision.objects.filter(project=story.project, state=DecisionState.CONFIRMED)
    if order >= PROJECT_ORDER.index(ProjectState.DECIDED):
        decision = confirmed.get()
        assert decision.confirmed_by_id not in (None, decision.proposed_by_id)
        if now == ProjectState.CLOSED and decision.next_step != "stop":
            assert not FollowThroughTask.objects.filter(project=story.project).exclude(state="done").exists()
            assert FollowThroughTask.objects.filter(project=story.project).count() == 3
            watched = Observation.objects.filter(project=story.project)
            assert watched.count() == 3
            assert all(row.state == "closed" and row.readings.exists() for row in watched)
            assert not decision.conditions.filter(closed_at=None).exists()
    else:
        assert not confirmed.exists()
    wrote = contributors(story.project)
    for package in Package.objects.filter(project=story.project):
        assert digest(package.manifest) == package.digest
        _check_signatures(package, wrote)
    assert Package.objects.filter(project=story.project, state__in=["frozen", "approved"]).count() <= 1
    assert not Waiver.objects.filter(guard__in=NEVER_WAIVED).exists()
    assert not Waiver.objects.filter(state="granted", decided_by=F("requested_by")).exists()
    for revision in EvidenceRevision.objects.filter(
        reviewed_by__isnull=False, state__in=["reviewed", "frozen"]
    ):
        assert revision.reviewed_by_id not in (revision.created_by_id, revision.submitted_by_id)


def _check_signatures(package: Package, wrote: set[int]) -> None:
    standing = list(package.signoffs.filter(state__in=[*CURRENT_APPROVALS, SignOffState.REJECTED]))
    people = [row.signer_id for row in standing] + [
        row.on_behalf_of_id for row in standing if row.on_behalf_of_id
    ]
    assert len(people) == len(set(people)), "one person fills two seats"
    assert all(row.digest == package.digest for row in standing)
    approvals = {row.slot for row in standing if row.state in CURRENT_APPROVALS}
    if package.state == PackageState.APPROVED:
        assert approvals == set(Slot.values)
    if package.state == PackageState.STALE:
        assert not approvals
    if package.state in (PackageState.FROZEN, PackageState.APPROVED):
        assert not wrote & set(people), "a contributor signed"
    if package.state == PackageState.REJECTED:
        assert any(row.state == SignOffState.REJECTED for row in standing)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_forbidden_state_is_reached(cast: Cast, evidence: object, seed: int) -> None:
    story = Story(cast, seed)
    acts, weights = zip(*ACTS, strict=True)
    until = time.monotonic() + SECONDS
    for step in range(STEPS):
        act = story.dice.choices(acts, weights)[0]
        story.project.refresh_from_db()
        before = story.project.state
        try:
            act(story)
        except (DomainError, IntegrityError):
            continue
        story.done[act.__name__] = story.done.get(act.__name__, 0) + 1
        invariants(
            story, before, reopened=act in (a_change, a_evidence, a_objection, a_waiver, a_freeze, a_sign)
        )
        if step % 20 == 0:
            assert audit.verify(cast.organisation.pk) == []
        # a busy machine gets on slowly: the time alone ends no story that has hardly begun
        if time.monotonic() > until and sum(story.done.values()) > ENOUGH:
            break
    assert audit.verify(cast.organisation.pk) == []
    assert sum(story.done.values()) > ENOUGH, "hardly anything was ever allowed"
    logging.getLogger(__name__).info("%s after %s: %s", story.project.state, step, story.done)
