"""A decided project with one of everything that a route can name, and everybody who may ask for it."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.core.files.base import ContentFile
from django.utils import timezone

from pocs.evidence import services as evidence_services
from pocs.evidence.models import Attachment, ReviewRequest, Thread
from pocs.notices.models import Webhook, WebhookDelivery
from pocs.people.delegations import delegation_give
from pocs.people.models import User
from pocs.people.roles import SCOPES, OrganisationRole
from pocs.projects.choices import ProjectState
from pocs.projects.services.workloads import workload_upload
from pocs.reviews import services
from pocs.reviews.models import Objection, SignOff
from pocs.runs.choices import RunState
from pocs.runs.credentials import seal
from pocs.runs.models import Baseline, Experiment, MatrixExecution
from tests.factories import (
    CAST_ROLES,
    Cast,
    make_cast,
    make_ci_token,
    make_run,
    make_scenario_version,
    make_user,
)
from tests.pocs.reviews import walk


@dataclass(frozen=True)
class World:
    """`people` by what they are, `tokens` by scope; `arguments` of routes by name or by the start of a path.

    `bodies` and `queries` are what a page needs to get past the question of whom or what is meant.
    """

    cast: Cast
    people: dict[str, User]
    tokens: dict[str, str]
    arguments: dict[str, dict[str, Any]]
    bodies: dict[str, dict[str, Any]]
    queries: dict[str, str]


def make_world() -> World:
    """Everything in one organisation; nothing of it is anybody's but the cast's."""
    cast = make_cast()
    walk.to_evidence_complete(cast)
    walk.to_decided(cast)
    walk.set_follow_through(cast)
    walk.advance(cast, ProjectState.FOLLOW_THROUGH)
    walk.set_observers(cast)
    people = {name: getattr(cast, name) for name in (*CAST_ROLES, "auditor", "bystander", "outsider")}
    people["admin"] = make_user(
        cast.organisation, "admin", organisation_role=OrganisationRole.ADMIN, team=cast.team
    )
    people["deputy"] = make_user(cast.organisation, "deputy")
    people["superuser"] = make_user(cast.organisation, "superuser", is_superuser=True, is_staff=True)
    tokens = {scope: make_ci_token(cast.project, sponsor=cast.lead, scopes=(scope,))[1] for scope in SCOPES}
    arguments = _Objects(cast, people).arguments()
    bodies = {
        "projects:member_remove": {"user": cast.viewer.pk, "role": "viewer"},
        "runs:candidate_new": {"source": arguments["targets/"]["pk"]},
    }
    queries = {"evidence:thread_open": "?field=conclusion"}
    return World(cast, people, tokens, arguments, bodies, queries)


class _Objects:
    """One of each kind of object, and which of them each route's arguments name."""

    def __init__(self, cast: Cast, people: dict[str, User]) -> None:
        self.cast, self.people, self.project = cast, people, cast.project

    def arguments(self) -> dict[str, dict[str, Any]]:
        """By the name of a route, or by the beginning of its path for all others below it."""
        cast, project = self.cast, self.project
        run = project.runs.order_by("number")[0]
        waiting = make_run(project, state=RunState.QUEUED, validity="", summary=None, records=False)
        matrix = MatrixExecution.objects.create(
            project=project, number=1, target=run.target, started_by=cast.lead
        )
        experiment, baseline = self._experiment(run)
        draft = self._evidence()
        revision = draft.revisions.get()
        attachment = Attachment.objects.create(
            revision=revision, name="log.txt", content_type="text/plain", size_bytes=2, sha256="0" * 64,
            file=ContentFile(b"ok", "log.txt"), uploaded_by=cast.contributor,
        )  # fmt: skip
        thread = Thread.objects.create(
            evidence=draft, revision=revision, path="x", label="x", opened_by=cast.reviewer
        )
        request = ReviewRequest.objects.create(
            revision=revision, person=cast.reviewer, requested_by=cast.contributor
        )
        package = project.packages.get()
        signoff = SignOff.objects.get(package=package, slot="business")
        objection = Objection.objects.create(
            package=package, key="conclusion:0", line="x", rule="G7", statement="y", raised_by=cast.business
        )
        waiver = services.waiver_request(
            actor=cast.lead.as_actor(), project=project, guard="G3", reason="x", scope="y",
            expires_at=timezone.now() + timedelta(days=1),
        )  # fmt: skip
        decision = project.decisions.get()
        condition = decision.conditions.create(text="x", owner=cast.observer, due_on=walk.in_days(3))
        hook, delivery = self._webhook()
        delegation = delegation_give(
            actor=cast.security.as_actor(), deputy=self.people["deputy"], reason="away",
            starts_on=walk.in_days(0), ends_on=walk.in_days(0),
        )  # fmt: skip
        make_scenario_version(project, "of-routes", state="draft")
        token, _plaintext = make_ci_token(project, sponsor=cast.lead)
        affected = project.affected.order_by("pk")[0]
        workload = workload_upload(
            actor=cast.lead.as_actor(), project=project, name="x.jsonl", raw=b'{"id": "a", "prompt": "x"}\n'
        )
        of_workload = {"pk": project.pk, "file": workload.pk}
        sample = project.answer_samples.create(number=1, seed="x", per_scenario=1, drawn_by=cast.lead)
        answer = sample.answers.create(run=run, request_index=0, prompt="x", answer="y")
        below = {"pk": project.pk, "kind": "capacity", "slug": "of-routes", "number": 1, "to": "observing"}
        return {
            "projects/": below,
            "api-audience": {"pk": project.pk, "audience": "business"},
            "reviews:audience": {"pk": project.pk, "audience": "business"},
            "api-member": {"pk": project.pk, "member": project.members.get(role="viewer").pk},
            "api-workload": of_workload,
            "api-workload-confirm": of_workload,
            "projects:workload": of_workload,
            "projects:workload_state": of_workload,
            "runs:target_reports": {"pk": project.pk, "target_pk": run.target_id},
            "runs:target_conformance": {"pk": project.pk, "target_pk": run.target_id},
            "api-token-revoke": {"pk": project.pk, "token": token.pk},
            "projects:token_revoke": {"pk": project.pk, "token": token.pk},
            "api-affected-item": {"pk": project.pk, "item": affected.pk},
            "projects:affected_item": {"pk": project.pk, "item": affected.pk},
            "projects:affected_remove": {"pk": project.pk, "item": affected.pk},
            "api-declaration": {"pk": project.pk, "kind": "real_requests"},
            "api-task": {"pk": project.pk, "kind": "budget"},
            "api-task-done": {"pk": project.pk, "kind": "budget"},
            "reviews:task_set": {"pk": project.pk, "kind": "budget"},
            "reviews:task_done": {"pk": project.pk, "kind": "budget"},
            "evidence:create": {"pk": project.pk, "type": "retrospective"},
            "runs:matrix_detail": {"pk": project.pk, "number": matrix.number},
            "runs:matrix_cancel": {"pk": project.pk, "number": matrix.number},
            "runs:target_edit": {"pk": project.pk, "target_pk": run.target_id},
            "runs:target_check": {"pk": project.pk, "target_pk": run.target_id},
            "runs/": {"pk": run.pk, "index": 0, "name": "log.txt", "form": "csv"},
            "api-run-cancel": {"pk": waiting.pk},
            "runs:cancel": {"pk": waiting.pk},
            "targets/": {"pk": run.target_id},
            "matrices/": {"pk": matrix.pk},
            "answers/": {"pk": answer.pk},
            "experiments/": {"pk": experiment.pk},
            "baselines/": {"pk": baseline.pk},
            "evidence/": {"pk": draft.pk},
            "api-evidence-revision": {"evidence_pk": draft.pk, "pk": revision.pk},
            "revisions/": {"pk": revision.pk},
            "evidence:requests": {"pk": project.evidence.get(type="runtime").revisions.get().pk},
            "api-revision-requests": {"pk": project.evidence.get(type="runtime").revisions.get().pk},
            "api-revision-attachment": {"revision_pk": revision.pk, "pk": attachment.pk},
            "api-revision-attachment-content": {"revision_pk": revision.pk, "pk": attachment.pk},
            "evidence:revision_download": {"revision_pk": revision.pk, "pk": attachment.pk},
            "attachments/": {"pk": attachment.pk},
            "threads/": {"pk": thread.pk, "to": "resolve"},
            "review-requests/": {"pk": request.pk},
            "packages/": {"pk": package.pk, "slot": "business"},
            "signoffs/": {"pk": signoff.pk},
            "objections/": {"pk": objection.pk},
            "waivers/": {"pk": waiver.pk, "action": "refuse"},
            "decisions/": {"pk": decision.pk},
            "conditions/": {"pk": condition.pk},
            "webhooks/": {"pk": hook.pk},
            "notifications/webhooks/": {"pk": hook.pk},
            "deliveries/": {"pk": delivery.pk},
            "notifications/deliveries/": {"pk": delivery.pk},
            "delegations/": {"pk": delegation.pk},
            "people/": {"pk": cast.viewer.pk},
            "people/delegations/": {"pk": delegation.pk},
        }

    def _experiment(self, run: Any) -> tuple[Experiment, Baseline]:
        same: dict[str, Any] = {"project": self.project, "started_by": self.cast.lead}
        experiment = Experiment.objects.create(
            number=1, name="of routes", repeats=2, scenario_version=run.scenario_version,
            candidate_version=run.scenario_version, baseline_target=run.target, candidate_target=run.target,
            declared_change="target.dtype", **same,
        )  # fmt: skip
        baseline = Baseline.objects.create(project=self.project, name="of routes", created_by=self.cast.lead)
        return experiment, baseline

    def _evidence(self) -> Any:
        actor = self.cast.contributor.as_actor()
        body = walk.bodies(self.cast, self.project.runs.order_by("number")[0])["retrospective"]
        return evidence_services.evidence_create(
            actor=actor, project=self.project, type="retrospective", title="Of routes", body=body, runs=[]
        )

    def _webhook(self) -> tuple[Any, Any]:
        hook = Webhook.objects.create(
            organisation=self.cast.organisation, owner=self.cast.procurement,
            created_by=self.cast.procurement, name="Mine", url="https://example.com/hook", secret=seal("x"),
        )  # fmt: skip
        delivery = WebhookDelivery.objects.create(webhook=hook, key="trial:1", kind="trial", body="{}")
        return hook, delivery
