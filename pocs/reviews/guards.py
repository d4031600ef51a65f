"""The guards G7–G12: each says in the checklist's words what a project still lacks."""

from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from pocs.common.errors import Missing
from pocs.common.reading import remembered
from pocs.projects.choices import ProjectState
from pocs.projects.gates import Gate
from pocs.projects.models import Project
from pocs.reviews.choices import (
    CURRENT_APPROVALS,
    DecisionState,
    NextStep,
    ObservationState,
    PackageState,
    TaskState,
)
from pocs.reviews.manifest import BUSINESS_PAIRS
from pocs.reviews.models import BusinessResult, Conclusion, Package
from pocs.reviews.objections import undecided_missing
from pocs.reviews.policy import objections_until
from pocs.reviews.selectors import (
    SlotView,
    current_decision,
    current_package,
    latest_package,
    observation_views,
    open_conditions,
    slot_views,
    task_views,
)


@remembered
def check_conclusion(project: Project) -> list[Missing]:
    """G7: the conclusion covers performance and operability."""
    conclusion = Conclusion.objects.filter(project=project).first()
    asked = {
        "performance": _("in the conclusion: performance, where the time goes (Q1, Q2)"),
        "release_in_time": _("in the conclusion: are caches released in time? (Q6)"),
        "batching_and_tail": _("in the conclusion: does batching hurt the tail? (Q7)"),
        "rollback_of_switch": _("in the conclusion: can a model switch be rolled back? (Q8)"),
        "logs_locate_errors": _("in the conclusion: do the logs locate the error? (Q9)"),
    }
    url = reverse("reviews:conclusion", args=[project.pk])
    return [
        Missing("G7", text, f"conclusion.{name}", url=url)
        for name, text in asked.items()
        if conclusion is None or not getattr(conclusion, name)
    ]


@remembered
def check_business_result(project: Project) -> list[Missing]:
    """G8: the business result is attached, with a figure before and after."""
    result = BusinessResult.objects.filter(project=project).first()
    url = reverse("reviews:business_result", args=[project.pk])
    missing = []
    paired = result and any(getattr(result, one) and getattr(result, two) for one, two in BUSINESS_PAIRS)
    if not paired:
        text = _("the business result before and after (experience, delivery efficiency or cost)")
        missing.append(Missing("G8", text, "business_result.pair", url=url))
    if result is None or not result.statement:
        text = _("what the result means for the business")
        missing.append(Missing("G8", text, "business_result.statement", url=url))
    return missing


def check_signatures(project: Project) -> list[Missing]:
    """G9: three current signatures on one digest; a slot that nobody could sign says so.

    A decision that does not accept may also rest on a signer's rejection: the veto is an answer.
    """
    package = current_package(project)
    if package is None:
        return _no_current_package(project)
    url = reverse("reviews:package", args=[package.pk])
    obj = f"package:{package.pk}"
    missing = [
        Missing("G9", text, code, object=obj, url=url)
        for view in slot_views(package)
        if not view.approved
        for text, code in [_unsigned(view)]
    ]
    return missing + undecided_missing(package) + _window(package)


def _unsigned(view: SlotView) -> tuple[str, str]:
    """What a slot without its approvals lacks, and the code of it."""
    if view.lapsed:
        text = _("the %(slot)s signature: its time was over; ask for it again") % {"slot": view.label}
        return text, f"signoff.{view.slot}.expired"
    if view.closed:
        why = "; ".join(f"{item}: {item.hindrance}" for item in view.candidates)
        text = _("a signer for the slot %(slot)s; nobody may sign it now (%(why)s)") % {
            "slot": view.label,
            "why": why or _("nobody has this role"),
        }
        return text, f"signoff.{view.slot}.no_signer"
    text = _("the %(slot)s signature: %(meaning)s") % {"slot": view.label, "meaning": view.meaning}
    if view.quorum > 1:
        signed = sum(row.state in CURRENT_APPROVALS for row in view.seats)
        text += " " + _("(%(signed)d of %(quorum)d)") % {"signed": signed, "quorum": view.quorum}
    return text, f"signoff.{view.slot}"


def _window(package: Package) -> list[Missing]:
    """The policy's days for objections, while they are not over."""
    until = objections_until(package)
    if until is None or until <= timezone.now():
        return []
    text = _("the end of the time for objections, %(until)s UTC") % {"until": f"{until:%Y-%m-%d %H:%M}"}
    url = reverse("reviews:package", args=[package.pk]) + "#objections"
    return [Missing("G9", text, "objection.window", object=f"package:{package.pk}", url=url)]


def _no_current_package(project: Project) -> list[Missing]:
    package = latest_package(project)
    if package is None:
        text = _("three signatures; no package has been frozen yet")
        return [Missing("G9", text, "package.none", url=reverse("reviews:packages", args=[project.pk]))]
    url = reverse("reviews:package", args=[package.pk])
    if package.state == PackageState.REJECTED:
        if _rests_on_veto(project, package):
            return []
        rejection = package.signoffs.filter(state="rejected").select_related("signer").first()
        text = _("package %(number)d was rejected by %(who)s: %(reason)s") % {
            "number": package.number,
            "who": rejection.signer if rejection else "—",
            "reason": rejection.comment if rejection else "",
        }
        return [Missing("G9", text, "package.rejected", object=f"package:{package.pk}", url=url)]
    text = _("package %(number)d is stale (%(who)s, %(reason)s); freeze a new one") % {
        "number": package.number,
        "who": (package.stale_by or {}).get("label", "—"),
        "reason": package.stale_text,
    }
    return [Missing("G9", text, "package.stale", object=f"package:{package.pk}", url=url)]


def _rests_on_veto(project: Project, package: Package) -> bool:
    decision = current_decision(project)
    return decision is not None and decision.package_id == package.pk and not decision.accepts


def check_confirmer(project: Project) -> list[Missing]:
    """G10: the decision names who confirmed it."""
    decision = current_decision(project)
    url = reverse("reviews:decision", args=[project.pk])
    if decision is None:
        return [Missing("G10", _("a decision, and who confirms it"), "decision.none", url=url)]
    if decision.state == DecisionState.CONFIRMED and decision.confirmed_by_id:
        return []
    text = _("who confirms the decision “%(outcome)s”") % {"outcome": decision.get_outcome_display()}
    return [Missing("G10", text, "decision.unconfirmed", object=f"decision:{decision.pk}", url=url)]


def check_follow_through(project: Project) -> list[Missing]:
    """G11: budget, procurement and launch each have an owner and a date, unless the POC stops here."""
    if _stops(project):
        return []
    url = reverse("reviews:follow_through", args=[project.pk])
    missing = []
    for view in task_views(project):
        task = view.task
        if task is None or task.owner_id is None or task.due_on is None:
            text = _("owner and date for %(task)s") % {"task": view.label}
            missing.append(Missing("G11", text, f"task.{view.kind}", url=url))
    return missing


def check_observer(project: Project) -> list[Missing]:
    """G12: an observer is named for capacity, cost and stability, unless the POC stops here."""
    if _stops(project):
        return []
    url = reverse("reviews:observation", args=[project.pk])
    return [
        Missing(
            "G12",
            _("an observer for %(what)s") % {"what": view.label},
            f"observer.{view.kind}",
            url=url,
        )
        for view in observation_views(project)
        if view.observation is None or view.observation.observer_id is None
    ]


def check_conditions(project: Project) -> list[Missing]:
    """G10, before the launch is observed and before the end: no condition of the decision is open."""
    url = reverse("reviews:decision", args=[project.pk]) + "#conditions"
    return [
        Missing(
            "G10",
            _("open condition: %(text)s (%(owner)s, due %(due)s)")
            % {"text": condition.text, "owner": condition.owner, "due": condition.due_on.isoformat()},
            "condition.open",
            object=f"condition:{condition.pk}",
            url=url,
        )
        for condition in open_conditions(project)
    ]


def check_tasks_done(project: Project) -> list[Missing]:
    """G11, before the end: budget, procurement and launch are done, unless the POC stopped."""
    if _stops(project):
        return []
    url = reverse("reviews:follow_through", args=[project.pk])
    return [
        Missing(
            "G11", _("%(task)s is not done yet") % {"task": view.label}, f"task.{view.kind}.open", url=url
        )
        for view in task_views(project)
        if view.task is None or view.task.state != TaskState.DONE
    ]


def check_observed(project: Project) -> list[Missing]:
    """G12, before the end: capacity, cost and stability were each read and closed, unless the POC stopped."""
    if _stops(project):
        return []
    url = reverse("reviews:observation", args=[project.pk])
    missing = []
    for view in observation_views(project):
        row = view.observation
        if row is None or not row.readings.all():
            text = _("a reading of %(what)s") % {"what": view.label}
            missing.append(Missing("G12", text, f"reading.{view.kind}", url=url))
        elif row.state != ObservationState.CLOSED:
            text = _("the end of the observation of %(what)s") % {"what": view.label}
            missing.append(Missing("G12", text, f"observation.{view.kind}.open", url=url))
    return missing


def _stops(project: Project) -> bool:
    decision = current_decision(project)
    return (
        decision is not None
        and decision.state == DecisionState.CONFIRMED
        and decision.next_step == NextStep.STOP
    )


GATES = [
    Gate(
        "G7",
        gettext_lazy("The conclusion covers performance and operability"),
        ProjectState.IN_REVIEW,
        check_conclusion,
    ),
    Gate(
        "G8", gettext_lazy("The business result is attached"), ProjectState.IN_REVIEW, check_business_result
    ),
    Gate(
        "G9",
        gettext_lazy("Three current signatures on one digest"),
        ProjectState.DECIDED,
        check_signatures,
        waivable=False,
    ),
    Gate(
        "G10",
        gettext_lazy("The decision names who confirmed it"),
        ProjectState.DECIDED,
        check_confirmer,
        waivable=False,
        later={ProjectState.OBSERVING: check_conditions, ProjectState.CLOSED: check_conditions},
    ),
    Gate(
        "G11",
        gettext_lazy("Budget, procurement and launch have an owner and a date"),
        ProjectState.FOLLOW_THROUGH,
        check_follow_through,
        later={ProjectState.CLOSED: check_tasks_done},
    ),
    Gate(
        "G12",
        gettext_lazy("An observer is named for capacity, cost and stability"),
        ProjectState.OBSERVING,
        check_observer,
        waivable=False,
        later={ProjectState.CLOSED: check_observed},
    ),
]
