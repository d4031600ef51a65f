"""G1 and G2: what a project must have declared before it is planned and before it runs."""

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext

from pocs.common.errors import Missing
from pocs.projects.choices import AffectedKind, DeclarationKind, ProjectState, ReadinessKind
from pocs.projects.gates import Gate
from pocs.projects.models import Project
from pocs.projects.plan import affected_items, declarations_of, readiness_of


def check_plan(project: Project) -> list[Missing]:
    """G1: affected applications, teams and data; readiness; where it applies and where not."""
    missing = []
    listed = {item.kind for item in affected_items(project)}
    affected_texts = {
        AffectedKind.APPLICATION: _("missing: the affected applications (E8, Q11)"),
        AffectedKind.TEAM: _("missing: the affected teams (E8, Q11)"),
        AffectedKind.DATA: _("missing: the affected data (E8, Q11)"),
    }
    for kind, text in affected_texts.items():
        if kind not in listed:
            missing.append(_missing(project, "G1", text, f"affected.{kind.value}", "projects:affected"))
    ready = {item.kind for item in readiness_of(project) if item.ready}
    for point in ReadinessKind:
        if point not in ready:
            text = _("missing: readiness of %(point)s (E9, Q12)") % {"point": _point_name(point)}
            missing.append(_missing(project, "G1", text, f"readiness.{point.value}", "projects:readiness"))
    if not project.where_applies.strip():
        text = _("missing: where it applies (Q24)")
        missing.append(_missing(project, "G1", text, "where_applies", "projects:edit"))
    if not project.where_not.strip():
        text = _("missing: where it does not apply (Q25)")
        missing.append(_missing(project, "G1", text, "where_not", "projects:edit"))
    return missing


def check_reality(project: Project) -> list[Missing]:
    """G2: real requests, real roles and real operating metrics are declared; no demo-only environment."""
    missing = []
    made = {item.kind for item in declarations_of(project) if item.statement and item.source}
    texts = {
        DeclarationKind.REAL_REQUESTS: _("missing: real business requests and where they come from (S13)"),
        DeclarationKind.REAL_ROLES: _("missing: real permission roles and where they come from (S14)"),
        DeclarationKind.OPERATING_METRICS: _(
            "missing: real operating metrics and where they come from (S15)"
        ),
    }
    for kind, text in texts.items():
        if kind not in made:
            missing.append(
                _missing(project, "G2", text, f"declaration.{kind.value}", "projects:declarations")
            )
    if project.demo_environment_only:
        text = _("missing: a real environment; only a demo environment is stated (X16)")
        missing.append(_missing(project, "G2", text, "demo_environment_only", "projects:edit"))
    return missing


def _point_name(point: ReadinessKind) -> str:
    names = {
        ReadinessKind.PERMISSIONS: pgettext("readiness of", "permissions"),
        ReadinessKind.MONITORING: pgettext("readiness of", "monitoring"),
        ReadinessKind.LOGS: pgettext("readiness of", "logs"),
        ReadinessKind.CAPACITY: pgettext("readiness of", "capacity"),
        ReadinessKind.ROLLBACK: pgettext("readiness of", "the rollback plan"),
    }
    return names[point]


def _missing(project: Project, guard: str, text: str, code: str, route: str) -> Missing:
    url = reverse(route, args=[project.pk])
    return Missing(guard=guard, text=text, code=code, object=f"project:{project.pk}", url=url)


GATES = [
    Gate(
        "G1",
        gettext_lazy("Affected applications, teams and data; readiness; where it applies and where not"),
        ProjectState.PLANNED,
        check_plan,
    ),
    Gate(
        "G2",
        gettext_lazy("Real requests, real roles and real operating metrics; no demo-only environment"),
        ProjectState.RUNNING,
        check_reality,
    ),
]
