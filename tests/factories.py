"""Plain functions that make valid objects for tests; every name has a default, every call is unique."""

import hashlib
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import count
from typing import Any

from django.utils import timezone

from pocs.common.canonical import digest
from pocs.people.models import Organisation, Team, User
from pocs.people.roles import OrganisationRole, ProjectRole
from pocs.projects import tokens
from pocs.projects.choices import AffectedKind, DeclarationKind, ReadinessKind, ScenarioKind, ScenarioState
from pocs.projects.models import (
    AffectedItem,
    CIToken,
    Declaration,
    Project,
    ProjectMember,
    ReadinessItem,
    Scenario,
    ScenarioVersion,
)
from pocs.projects.scenario_spec import ScenarioSpec
from pocs.runs.choices import Outcome, RunState, TargetKind, Validity
from pocs.runs.models import RequestRecord, Run, Target

PASSWORD = "correct horse battery staple"
_serial = count(1)

#: the cast of a project: username stem -> role on the project (None: none)
CAST_ROLES: dict[str, ProjectRole] = {
    "lead": ProjectRole.LEAD,
    "contributor": ProjectRole.CONTRIBUTOR,
    "reviewer": ProjectRole.REVIEWER,
    "business": ProjectRole.SIGNER_BUSINESS,
    "platform": ProjectRole.SIGNER_PLATFORM,
    "security": ProjectRole.SIGNER_SECURITY,
    "decision_maker": ProjectRole.DECISION_MAKER,
    "procurement": ProjectRole.PROCUREMENT,
    "observer": ProjectRole.OBSERVER,
    "viewer": ProjectRole.VIEWER,
}


@dataclass(frozen=True)
class Cast:
    """The people around one project; `bystander` is a colleague without a role, `outsider` a foreigner."""

    organisation: Organisation
    team: Team
    lead: User
    contributor: User
    reviewer: User
    business: User
    platform: User
    security: User
    decision_maker: User
    procurement: User
    observer: User
    viewer: User
    auditor: User
    bystander: User
    outsider: User
    project: Project


def make_organisation(name: str = "") -> Organisation:
    number = next(_serial)
    return Organisation.objects.create(name=name or f"Organisation {number}", slug=f"org-{number}")


def make_team(organisation: Organisation, name: str = "") -> Team:
    return Team.objects.create(
        organisation=organisation, name=name or f"Team {next(_serial)}", contact="#oncall"
    )


def make_user(organisation: Organisation | None = None, name: str = "user", **fields: Any) -> User:
    """A person with password `PASSWORD`; `name` becomes the stem of the username and the last name."""
    organisation = organisation or make_organisation()
    defaults: dict[str, Any] = {"first_name": name.replace("_", " ").title(), "organisation": organisation}
    return User.objects.create_user(f"{name}-{next(_serial)}", password=PASSWORD, **(defaults | fields))


def make_cast(**project_fields: Any) -> Cast:
    """A project in draft with one person per role, in an organisation of its own."""
    organisation = make_organisation()
    team = make_team(organisation)
    people = {name: make_user(organisation, name, team=team) for name in CAST_ROLES}
    auditor = make_user(organisation, "auditor", organisation_role=OrganisationRole.AUDITOR)
    project = make_project(organisation, created_by=people["lead"], **project_fields)
    for name, role in CAST_ROLES.items():
        ProjectMember.objects.create(project=project, user=people[name], role=role)
    return Cast(
        organisation=organisation,
        team=team,
        auditor=auditor,
        bystander=make_user(organisation, "bystander"),
        outsider=make_cast_outsider(),
        project=project,
        **people,
    )


def make_cast_outsider() -> User:
    """A technical lead of a project of another organisation."""
    outsider = make_user(make_organisation(), "outsider")
    assert outsider.organisation is not None
    foreign = make_project(outsider.organisation, created_by=outsider)
    ProjectMember.objects.create(project=foreign, user=outsider, role=ProjectRole.LEAD)
    return outsider


def make_project(
    organisation: Organisation | None = None, *, created_by: User | None = None, **fields: Any
) -> Project:
    """A project in draft that declares nothing; `complete_plan` fills what G1 and G2 ask for."""
    organisation = organisation or make_organisation()
    created_by = created_by or make_user(organisation, "lead")
    defaults = {"name": f"Project {next(_serial)}", "goal": "Decide about the assistant."}
    return Project.objects.create(organisation=organisation, created_by=created_by, **(defaults | fields))


def complete_plan(project: Project, team: Team | None = None) -> Project:
    """Everything that G1 and G2 ask for, as rows."""
    team = team or make_team(project.organisation)
    project.where_applies, project.where_not = "Internal help desk.", "Legal advice."
    project.demo_environment_only, project.environment_note = (
        False,
        "Staging with production traffic mirrored.",
    )
    project.save()
    for kind in AffectedKind:
        AffectedItem.objects.create(project=project, kind=kind, name=f"Affected {kind}", owner="Owner")
    for point in ReadinessKind:
        ReadinessItem.objects.create(project=project, kind=point, ready=True, basis="Runbook 7", team=team)
    for declared in DeclarationKind:
        Declaration.objects.create(
            project=project, kind=declared, statement="As in production.", source="Ticket 12"
        )
    return project


def make_spec(**fields: Any) -> ScenarioSpec:
    """A small scenario: 64 tokens in, 16 out, 4 requests, 2 at once."""
    return replace(ScenarioSpec(input_tokens=64, output_tokens=16, concurrency=2, requests=4), **fields)


def make_scenario_version(
    project: Project,
    slug: str = "",
    *,
    kind: str = ScenarioKind.SHORT_REQUEST,
    state: str = ScenarioState.APPROVED,
    created_by: User | None = None,
    **spec: Any,
) -> ScenarioVersion:
    """The next version of the scenario `slug`, approved unless `state` says otherwise."""
    slug = slug or f"scenario-{next(_serial)}"
    scenario, _ = Scenario.objects.get_or_create(
        project=project, slug=slug, defaults={"name": slug.replace("-", " ").title(), "kind": kind}
    )
    body = make_spec(**spec).as_json()
    author = created_by or project.created_by
    approved = state == ScenarioState.APPROVED
    return ScenarioVersion.objects.create(
        scenario=scenario,
        number=scenario.versions.count() + 1,
        state=state,
        spec=body,
        digest=digest(body),
        created_by=author,
        approved_by=author if approved else None,
        approved_at=timezone.now() if approved else None,
    )


def make_target(project: Project, **fields: Any) -> Target:
    """The embedded engine with a model folder that no test opens."""
    defaults = {"name": f"Engine {next(_serial)}", "kind": TargetKind.ENGINE, "location": "models/small"}
    return Target.objects.create(project=project, **(defaults | fields))


def make_ci_token(
    project: Project, *, sponsor: User, scopes: tuple[str, ...] = ("read",), **fields: Any
) -> tuple[CIToken, str]:
    """A token that is valid for a day, and its plaintext."""
    plaintext = tokens.new_plaintext()
    defaults: dict[str, Any] = {
        "name": f"CI {next(_serial)}",
        "expires_at": timezone.now() + timedelta(days=1),
    }
    token = CIToken.objects.create(
        project=project,
        sponsor=sponsor,
        prefix=plaintext[: tokens.SHOWN_CHARACTERS],
        token_digest=tokens.digest_of(plaintext),
        scopes=list(scopes),
        **(defaults | fields),
    )
    return token, plaintext


def figures(n: int, middle: float) -> dict[str, float | int]:
    """One distribution of a summary around `middle`."""
    steps = {"mean": 1.05, "p50": 1.0, "p90": 1.4, "p95": 1.6, "p99": 1.9, "max": 2.0}
    return {"n": n} | {name: round(middle * factor, 3) for name, factor in steps.items()}


def make_summary(*, requests: int = 4, cancelled: int = 0, **fields: Any) -> dict[str, Any]:
    """A `phasegate-run/1` summary with every metric of the POC six."""
    succeeded = requests - cancelled
    outcomes = {outcome.value: 0 for outcome in Outcome} | {"success": succeeded, "cancelled": cancelled}
    distributions = {
        "ttft_ms": 42.0,
        "tpot_ms": 18.0,
        "itl_ms": 18.0,
        "e2e_ms": 310.0,
        "queue_wait_ms": 6.0,
        "prefill_ms": 35.0,
        "decode_ms": 268.0,
    }
    return {
        "schema": "phasegate-run/1",
        "requests": outcomes,
        "attempted": requests,
        "succeeded": succeeded,
        "window_s": 1.4,
        "input_tokens": 64 * requests,
        "output_tokens": 16 * succeeded,
        "output_tokens_per_second": 45.7,
        "total_tokens_per_second": 228.5,
        "requests_per_second": 2.9,
        "error_rate": 0.0,
        "goodput": 1.0,
        **{name: figures(succeeded, middle) for name, middle in distributions.items()},
        "cache_hit_rate": 0.25,
        "memory": {
            "peak_rss_bytes": 900 * 2**20,
            "weights_bytes": 270 * 2**20,
            "kv_pool_bytes": 64 * 2**20,
            "kv_peak_used_bytes": 9 * 2**20,
        },
        "engine": {"steps": 80, "preemptions": 0},
        "validity": {"valid": True, "reasons": []},
        "environment": {"platform": "test", "cpus": 2},
    } | fields


def make_run(
    project: Project,
    *,
    scenario_version: ScenarioVersion | None = None,
    target: Target | None = None,
    requested_by: User | None = None,
    records: bool = True,
    **fields: Any,
) -> Run:
    """A complete, valid run with its summary and one record per request; `fields` override columns."""
    version = scenario_version or make_scenario_version(project)
    target = target or project.targets.first() or make_target(project)
    configuration = {"model_digest": "a" * 64, "engine": {"dtype": "float32"}, "versions": {"torch": "2"}}
    now = timezone.now()
    requests = version.spec["requests"]
    defaults: dict[str, Any] = {
        "number": project.runs.count() + 1,
        "state": RunState.COMPLETE,
        "validity": Validity.VALID,
        "progress": {"phase": "complete", "done": requests, "total": requests, "failed": 0},
        "summary": make_summary(requests=requests),
        "diagnosis": {"verdict": "decode", "text": "Decode takes most of the time."},
        "configuration": configuration,
        "configuration_digest": digest(configuration),
        "started_at": now - timedelta(seconds=2),
        "finished_at": now,
        "attempt": 1,
        "tenant": "tenant-a",
        "application": "help-desk",
    }
    run = Run.objects.create(
        project=project,
        scenario_version=version,
        target=target,
        requested_by=requested_by or project.created_by,
        **(defaults | fields),
    )
    if records and run.state == RunState.COMPLETE:
        for index in range(requests):
            make_request_record(run, index)
    return run


def make_request_record(run: Run, index: int, **fields: Any) -> RequestRecord:
    """One successful request of 310 ms whose intervals add up: queue 6, prefill 36, decode 268."""
    start_ns = 1_000_000_000 + index * 10_000_000
    end_ns = start_ns + 310_000_000
    text = f"Answer {index}"
    defaults: dict[str, Any] = {
        "request_id": f"r{index}",
        "outcome": Outcome.SUCCESS,
        "finish_reason": "stop",
        "tenant": run.tenant,
        "application": run.application,
        "started_ms": index * 10.0,
        "input_tokens": 64,
        "cached_tokens": 16,
        "output_tokens": 16,
        "output_tokens_source": "engine",
        "ttft_ms": 42.0,
        "ttfv_ms": 42.0,
        "ttfot_ms": 42.0,
        "tpot_ms": 17.867,
        "e2e_ms": 310.0,
        "max_gap_ms": 25.0,
        "queue_wait_ms": 6.0,
        "prefill_ms": 36.0,
        "decode_ms": 268.0,
        "stamps": {
            "scheduled_ns": start_ns,
            "sent_ns": start_ns,
            "queued_ns": start_ns,
            "admitted_ns": [start_ns + 6_000_000],
            "first_ns": start_ns + 42_000_000,
            "last_ns": end_ns,
            "finished_ns": end_ns,
            "freed_ns": end_ns + 100_000,
        },
        "intervals_ms": {
            "dispatch_delay": 0.0,
            "queue_wait": 6.0,
            "prefill": 36.0,
            "decode": 268.0,
            "release": 0.1,
            "unexplained": 0.0,
        },
        "reads": [[start_ns + 42_000_000, 1], [end_ns, 15]],
        "text": text,
        "token_ids": list(hashlib.sha256(text.encode()).digest()[:16]),
    }
    return RequestRecord.objects.create(run=run, index=index, **(defaults | fields))
