"""The demo project, made with the services that people use, up to the state in which its matrix can run."""

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.utils import timezone

from phasegate.demo.people import PERSONAS
from phasegate.demo.scenarios import SCENARIOS
from pocs.common.actors import Actor
from pocs.people.models import User
from pocs.projects import services
from pocs.projects.choices import AffectedKind, DeclarationKind, ProjectState, ReadinessKind
from pocs.projects.models import CIToken, Project
from pocs.projects.tokens import digest_of
from pocs.runs.choices import TargetKind
from pocs.runs.services import target_create

PROJECT_NAME = "客服助手推理服务 · Service desk assistant"
TOKEN_NAME = "demo CI"  # noqa: S105 the name that people see
TOKEN_SCOPES = ("read", "runs:write", "evidence:write", "inference")
TOKEN_LIFE_DAYS = 365

DESCRIPTION: dict[str, Any] = {
    "goal": (
        "能否用自有推理服务承载客服助手？Can our own inference service carry the service desk assistant: "
        "first token and generation apart, at the lengths and concurrency of a working day?"
    ),
    "where_applies": (
        "客服坐席的短问答与合同摘要，工作日并发不超过 16。Short questions of service agents and contract "
        "summaries, up to 16 at once on working days."
    ),
    "where_not": (
        "不适用于面向公众的开放聊天与超过 2,000 Token 的上下文。Not for open chat with the public, "
        "not for contexts beyond 2,000 tokens."
    ),
    "environment_note": (
        "与生产同规格的双核节点，内置引擎。A two-core node of production size with the embedded engine."
    ),
    "supplier": "内部平台团队 Internal platform team",
    "budget_basis": "按节点小时计，2 节点 × 12 个月。Node hours: 2 nodes for 12 months.",
    "responsibility_boundary": (
        "平台组负责推理服务与扩缩容，客户服务部负责提示词与答案质量。"
        "The platform team answers for service and capacity, customer service for prompts and answers."
    ),
}
AFFECTED = (
    (AffectedKind.APPLICATION, "坐席工作台 Agent desktop", "Customer service"),
    (AffectedKind.APPLICATION, "合同摘要 Contract summary", "Legal operations"),
    (AffectedKind.TEAM, "客户服务部 Customer service", "Zhao 赵芳"),
    (AffectedKind.TEAM, "推理平台组 Inference platform", "Li 李磊"),
    (AffectedKind.DATA, "脱敏后的工单文本 Redacted tickets", "Security"),
)
READINESS = {
    ReadinessKind.PERMISSIONS: "按项目角色授权，CI 令牌限本项目。Roles per project, a token bound to it.",
    ReadinessKind.MONITORING: "首 Token、每 Token、队列与内存看板。Board of TTFT, TPOT, queue and memory.",
    ReadinessKind.LOGS: "每个请求的分阶段记录可按租户查询。Phase records per request, by tenant.",
    ReadinessKind.CAPACITY: "2 节点，峰值 16 并发。Two nodes, a peak of 16 at once.",
    ReadinessKind.ROLLBACK: "保留上一版模型目录，切换已演练。The former model is kept, the switch rehearsed.",
}
DECLARATIONS = {
    DeclarationKind.REAL_REQUESTS: (
        "近 30 天工单的长度与并发分布。Lengths and concurrency of the tickets of the last 30 days.",
        "工单系统导出 Ticket system export",
    ),
    DeclarationKind.REAL_ROLES: (
        "坐席、组长、审计三种真实权限。The three real roles: agent, team lead, auditor.",
        "统一身份平台 Identity platform",
    ),
    DeclarationKind.OPERATING_METRICS: (
        "首次响应时长与一次解决率。First response time and first contact resolution.",
        "客服月报 Monthly service report",
    ),
}


def project_plan(lead: User, people: dict[str, User]) -> Project:
    """The demo project with members, plan and approved scenarios; what is there already stays as it is."""
    actor = lead.as_actor()
    project = Project.objects.filter(organisation=lead.organisation, name=PROJECT_NAME).first()
    if project is not None:
        return project
    project = services.project_create(actor=actor, name=PROJECT_NAME, **DESCRIPTION)
    for persona in PERSONAS:
        for role in persona.roles:
            user = people[persona.key]
            if not project.members.filter(user=user, role=role).exists():
                services.member_add(actor=actor, project=project, user=user, role=role)
    for kind, name, owner in AFFECTED:
        services.affected_add(actor=actor, project=project, kind=kind, name=name, owner=owner)
    for ready_kind, basis in READINESS.items():
        services.readiness_set(
            actor=actor, project=project, kind=ready_kind, ready=True, basis=basis, team=lead.team
        )
    for declared_kind, (statement, source) in DECLARATIONS.items():
        services.declaration_set(
            actor=actor, project=project, kind=declared_kind, statement=statement, source=source
        )
    scenarios_add(people["contributor"].as_actor(), actor, project)
    return project


def scenarios_add(author: Actor, approver: Actor, project: Project) -> None:
    """Write each demo scenario as its author and approve its first version as the lead."""
    for scenario in SCENARIOS:
        version = services.scenario_create(
            actor=author,
            project=project,
            slug=scenario.slug,
            name=scenario.name,
            kind=scenario.kind,
            spec=scenario.spec,
        )
        services.scenario_version_approve(actor=approver, version=version)


def engine_target(actor: Actor, project: Project) -> None:
    """The embedded engine with the default model as the project's target; InvalidInput without the model."""
    if not project.targets.filter(kind=TargetKind.ENGINE).exists():
        target_create(
            actor=actor,
            project=project,
            name="内置引擎 Embedded engine",
            kind=TargetKind.ENGINE,
            location=settings.PHASEGATE_MODEL_PATH,
            model="SmolLM2-135M-Instruct",
            engine_settings={"dtype": "auto", "max_batch": 32},
        )


def project_start(actor: Actor, project: Project) -> None:
    """Take a new project through its first two gates, so that its matrix can run."""
    for state in (ProjectState.PLANNED, ProjectState.RUNNING):
        before = {ProjectState.PLANNED: ProjectState.DRAFT, ProjectState.RUNNING: ProjectState.PLANNED}[state]
        if project.state == before:
            project = services.project_advance(actor=actor, project=project, to=state)


def ci_token(actor: Actor, project: Project, sponsor: User, plaintext: str | None) -> str:
    """The stored CI token if it still works, else a new one that `sponsor` answers for."""
    if plaintext:
        token = CIToken.objects.filter(project=project, token_digest=digest_of(plaintext)).first()
        if token and token.revoked_at is None and token.expires_at > timezone.now():
            return plaintext
    _token, plaintext = services.token_issue(
        actor=actor,
        project=project,
        name=TOKEN_NAME,
        scopes=TOKEN_SCOPES,
        expires_at=timezone.now() + timedelta(days=TOKEN_LIFE_DAYS),
        sponsor=sponsor,
    )
    return plaintext


def outsiders_project(outsider: User) -> None:
    """A draft of the other organisation: something that nobody of the demo organisation may see."""
    if not Project.objects.filter(organisation=outsider.organisation).exists():
        services.project_create(actor=outsider.as_actor(), name="外部项目 Foreign project")
