"""Reading projects: always scoped by the actor's organisation and what the actor may see."""

from dataclasses import dataclass, field

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from pocs.common import audit
from pocs.common.actors import Actor
from pocs.common.errors import FieldError, InvalidInput, Missing, NotFound, NotPermitted
from pocs.common.models import AuditEntry
from pocs.people import policies
from pocs.people.models import Team, User
from pocs.people.roles import CAPABILITIES, DELEGABLE_ROLES, OrganisationRole, ProjectRole
from pocs.people.selectors import is_admin, people_of, person_behind, principals_of, teams_of
from pocs.projects.audit_filter import AuditFilter
from pocs.projects.choices import (
    PROJECT_ORDER,
    ProjectState,
    ScenarioState,
)
from pocs.projects.gates import GateStatus, gate_status, missing_before
from pocs.projects.models import (
    CIToken,
    Project,
    ProjectMember,
    Scenario,
    ScenarioVersion,
    WorkloadFile,
)
from pocs.projects.states import next_state

EVERYTHING = AuditFilter()


def projects_visible_to(actor: Actor) -> QuerySet[Project]:
    """Projects the actor may view: a token its own, an auditor all of the organisation's."""
    own = Project.objects.filter(organisation_id=actor.organisation_id).select_related("organisation")
    if actor.kind == "system":
        return own
    if actor.kind == "token":
        return own.filter(ci_tokens=actor.token_id) if "read" in actor.token_scopes else own.none()
    user = person_behind(actor)
    if user is None:
        return own.none()
    if user.organisation_role == OrganisationRole.AUDITOR:
        return own
    stands_in = ProjectMember.objects.filter(user__in=principals_of(actor), role__in=DELEGABLE_ROLES)
    return own.filter(
        Q(pk__in=user.project_roles.values("project_id")) | Q(pk__in=stands_in.values("project_id"))
    )


def projects_administered_by(actor: Actor) -> QuerySet[Project]:
    """Projects whose members an administrator of the organisation manages, seen or not."""
    if not is_admin(actor):
        return Project.objects.none()
    return Project.objects.filter(organisation_id=actor.organisation_id)


def project_get(actor: Actor, pk: int | str, capability: str = "project.view") -> Project:
    """The project, if the actor has `capability` on it; NotFound for foreign ones, else NotPermitted."""
    project = (
        Project.objects.filter(pk=pk, organisation_id=actor.organisation_id)
        .select_related("organisation", "created_by")
        .first()
    )
    if project is None:
        raise NotFound(_("There is no such project."))
    policies.require(actor, capability, project)
    return project


def project_for_members(actor: Actor, pk: int) -> Project:
    """The project for its members' page: those who see the project, and administrators who do not."""
    try:
        return project_get(actor, pk, "project.members")
    except NotPermitted:
        return project_get(actor, pk)


def may(actor: Actor, project: Project) -> dict[str, bool]:
    """What the actor may do here, under names a template can spell: `{"project_edit": True}`."""
    return {name.replace(".", "_"): True for name in policies.capabilities_of(actor, project)}


@dataclass(frozen=True)
class Progress:
    """Where a project stands: what keeps it from its next state, and every gate."""

    next_state: ProjectState | None
    gates: list[GateStatus]
    missing: list[Missing] = field(default_factory=list)


def progress_of(project: Project) -> Progress:
    """All gates of the project, and of them what is missing before the next state."""
    statuses = gate_status(project)
    following = next_state(project)
    missing = [item for status in statuses for item in status.for_next]
    return Progress(next_state=following, gates=statuses, missing=missing)


def next_step_of(project: Project) -> Progress:
    """The same for a list: only the gates before the next state are asked."""
    following = next_state(project)
    missing = missing_before(project, following) if following else []
    return Progress(next_state=following, gates=[], missing=missing)


@dataclass(frozen=True)
class Step:
    """One state on the project's way: `done`, `current` or `ahead`."""

    state: ProjectState
    place: str


def steps_of(project: Project) -> list[Step]:
    """The way of the project; a cancelled one shows the way with nothing current."""
    if project.state == ProjectState.CANCELLED:
        return [Step(state, "ahead") for state in PROJECT_ORDER]
    here = PROJECT_ORDER.index(ProjectState(project.state))
    places = {-1: "done", 0: "current", 1: "ahead"}
    return [Step(state, places[(i > here) - (i < here)]) for i, state in enumerate(PROJECT_ORDER)]


@dataclass(frozen=True)
class MemberRoles:
    """One person of a project with all their roles on it."""

    user: User
    roles: list[ProjectRole]


def members_of(project: Project) -> list[MemberRoles]:
    """People of the project, by name, each once."""
    people: dict[int, MemberRoles] = {}
    for row in project.members.select_related("user", "user__team").order_by("user__username", "role"):
        people.setdefault(row.user_id, MemberRoles(row.user, [])).roles.append(ProjectRole(row.role))
    return list(people.values())


def member_get(project: Project, pk: int) -> ProjectMember:
    """One role of one person on the project."""
    member = project.members.select_related("user").filter(pk=pk).first()
    if member is None:
        raise NotFound(_("There is no such member in this project."))
    return member


def person_for_role(actor: Actor, pk: int) -> User:
    """The person whom a body names; InvalidInput (`/user`) when the organisation has no such person."""
    person = people_of(actor).filter(pk=pk).first()
    if person is None:
        text = _("There is no such person in your organisation.")
        raise InvalidInput(text, [FieldError("/user", "unknown", text)])
    return person


def person_for_sponsor(actor: Actor, pk: int) -> User:
    """The person whom a body names to answer for a token; InvalidInput (`/sponsor`) for nobody."""
    person = people_of(actor).filter(pk=pk, is_active=True).first()
    if person is None:
        text = _("There is no such person in your organisation.")
        raise InvalidInput(text, [FieldError("/sponsor", "unknown", text)])
    return person


def team_for_readiness(actor: Actor, pk: int | None) -> Team | None:
    """The team that a body names; InvalidInput (`/team`) when the organisation has no such team."""
    if pk is None:
        return None
    team = teams_of(actor).filter(pk=pk).first()
    if team is None:
        text = _("There is no such team in your organisation.")
        raise InvalidInput(text, [FieldError("/team", "unknown", text)])
    return team


def scenarios_of(project: Project) -> QuerySet[Scenario]:
    return project.scenarios.prefetch_related("versions")


def scenario_get(actor: Actor, project: Project, slug: str) -> Scenario:
    """The scenario with this short name; NotFound when the project has none."""
    policies.require(actor, "project.view", project)
    scenario = project.scenarios.select_related("project").filter(slug=slug).first()
    if scenario is None:
        raise NotFound(_("There is no scenario “%(slug)s” in this project.") % {"slug": slug})
    return scenario


def newest_version(scenario: Scenario) -> ScenarioVersion:
    """The last version of a scenario; every scenario has at least one."""
    return scenario.versions.select_related("created_by", "approved_by").latest("number")


def scenario_version_get(actor: Actor, project: Project, slug: str, number: int) -> ScenarioVersion:
    """One version of a scenario for its page; NotFound when there is none."""
    scenario = scenario_get(actor, project, slug)
    version = scenario.versions.select_related("created_by", "approved_by").filter(number=number).first()
    if version is None:
        raise NotFound(_("There is no version %(number)s of “%(slug)s”.") % {"number": number, "slug": slug})
    version.scenario = scenario
    return version


def workloads_of(project: Project) -> QuerySet[WorkloadFile]:
    """The project's request sets and traces, newest first, without their content."""
    return project.workloads.defer("content")


def workload_get(project: Project, pk: int) -> WorkloadFile:
    """One file of the project; NotFound when it has none of this number."""
    found = workloads_of(project).filter(pk=pk).select_related("project").first()
    if found is None:
        raise NotFound(_("There is no such file in this project."))
    return found


def workload_of(version: ScenarioVersion) -> WorkloadFile | None:
    """The file a version takes its requests from."""
    digest = version.spec.get("workload")
    return workloads_of(version.scenario.project).filter(digest=digest).first() if digest else None


def versions_using(workload: WorkloadFile) -> QuerySet[ScenarioVersion]:
    """The versions of scenarios that take their requests from a file."""
    return scenario_versions(workload.project).filter(spec__workload=workload.digest)


def scenario_versions(project: Project) -> QuerySet[ScenarioVersion]:
    """Every version of every scenario of the project."""
    return ScenarioVersion.objects.filter(scenario__project=project).select_related(
        "scenario", "scenario__project"
    )


def approved_versions(project: Project) -> QuerySet[ScenarioVersion]:
    """The versions that may be run, by scenario and number."""
    return (
        scenario_versions(project).filter(state=ScenarioState.APPROVED).order_by("scenario__slug", "number")
    )


def scenario_version_find(project: Project, reference: str) -> ScenarioVersion:
    """The version written `slug@number`; InvalidInput (`/scenario`) names the approved ones otherwise."""
    slug, _at, number = str(reference).partition("@")
    found = None
    if number.isascii() and number.isdigit() and len(number) < 10:
        found = scenario_versions(project).filter(scenario__slug=slug, number=int(number)).first()
    if found is None:
        known = ", ".join(str(version) for version in approved_versions(project)[:20]) or "—"
        text = _("There is no scenario “%(reference)s” in this project. Approved are: %(known)s.")
        text = text % {"reference": str(reference)[:80], "known": known}
        raise InvalidInput(text, [FieldError("/scenario", "unknown", text)])
    return found


def tokens_of(actor: Actor, project: Project) -> QuerySet[CIToken]:
    """The project's CI tokens, revoked and expired ones included."""
    policies.require(actor, "project.tokens", project)
    return project.ci_tokens.select_related("sponsor")


def possible_sponsors(project: Project) -> QuerySet[User]:
    """People who may answer for a token of the project: those who may do what it does."""
    roles = CAPABILITIES["run.execute"]
    holders = project.members.filter(role__in=roles).values_list("user_id", flat=True)
    return User.objects.filter(pk__in=holders, is_active=True)


def token_get(actor: Actor, project: Project, pk: int) -> CIToken:
    token = tokens_of(actor, project).filter(pk=pk).first()
    if token is None:
        raise NotFound(_("There is no such token in this project."))
    return token


def history(actor: Actor, project: Project) -> QuerySet[AuditEntry]:
    """The project's audit entries, newest first."""
    policies.require(actor, "project.view", project)
    return AuditEntry.objects.filter(organisation_id=project.organisation_id, project_id=project.pk).order_by(
        "-sequence"
    )


def may_audit(actor: Actor) -> bool:
    """Auditors read the whole organisation's chain, technical leads their projects' part of it."""
    if not actor.is_person:
        return False
    return is_auditor(actor) or Project.objects.filter(_led_by(actor)).exists()


def auditing_require(actor: Actor, **arguments: object) -> None:
    """NotPermitted for whoever may read no part of the organisation's audit."""
    if not may_audit(actor):
        raise NotPermitted(_("The organisation's audit is open to auditors and technical leads."))


def is_auditor(actor: Actor) -> bool:
    person = person_behind(actor) if actor.is_person else None
    return person is not None and person.organisation_role == OrganisationRole.AUDITOR


def organisation_history(actor: Actor, wanted: AuditFilter = EVERYTHING) -> QuerySet[AuditEntry]:
    """The entries of the organisation that the actor may read, newest first; NotPermitted for others.

    Auditors read all of them, technical leads those of the projects they lead, entry by entry.
    """
    auditing_require(actor)
    rows = AuditEntry.objects.filter(organisation_id=actor.organisation_id).order_by("-sequence")
    entries = wanted.apply(rows)
    if is_auditor(actor):
        return entries
    led = Project.objects.filter(_led_by(actor)).values_list("pk", flat=True)
    return entries.filter(project_id__in=list(led))


def audited_projects(actor: Actor) -> QuerySet[Project]:
    """Projects by which the actor may narrow the audit."""
    own = Project.objects.filter(organisation_id=actor.organisation_id).order_by("name")
    return own if is_auditor(actor) else own.filter(_led_by(actor)).distinct()


def audit_problems(actor: Actor) -> list[audit.Problem]:
    """What the verification of the organisation's whole chain finds; NotPermitted as above."""
    auditing_require(actor)
    return audit.verify(actor.organisation_id)


def _led_by(actor: Actor) -> Q:
    return Q(
        organisation_id=actor.organisation_id,
        members__user_id=actor.user_id,
        members__role=ProjectRole.LEAD,
        members__user__is_active=True,
    )


def may_follow_project(user_id: int, key: str) -> bool:
    """Whether this user may follow the live stream `project:<key>`."""
    user = User.objects.filter(pk=user_id, is_active=True).exclude(organisation=None).first()
    if user is None or not key.isdigit():
        return False
    return projects_visible_to(user.as_actor()).filter(pk=int(key)).exists()
