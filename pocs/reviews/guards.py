"""The guards G7–G12: each says in the checklist's words what a project still lacks."""

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from pocs.common.errors import Missing
from pocs.projects.choices import ProjectState
from pocs.projects.gates import Gate
from pocs.projects.models import Project
from pocs.reviews.choices import DecisionState, NextStep, PackageState
from pocs.reviews.manifest import BUSINESS_PAIRS
from pocs.reviews.models import BusinessResult, Conclusion, Package
from pocs.reviews.selectors import (
    current_decision,
    latest_package,
    observation_views,
    slot_views,
    task_views,
)
from pocs.reviews.staleness import current_package


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
    missing = []
    for view in slot_views(package):
        if view.approved:
            continue
        values = {"slot": view.label, "meaning": view.meaning}
        if view.closed:
            why = "; ".join(f"{item.user}: {item.hindrance}" for item in view.candidates)
            text = _("a signer for the slot %(slot)s; nobody may sign it now (%(why)s)") % {
                "slot": view.label,
                "why": why or _("nobody has this role"),
            }
            code = f"signoff.{view.slot}.no_signer"
        else:
            text = _("the %(slot)s signature: %(meaning)s") % values
            code = f"signoff.{view.slot}"
        missing.append(Missing("G9", text, code, object=f"package:{package.pk}", url=url))
    return missing


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
        "reason": package.stale_reason,
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
    Gate("G10", gettext_lazy("The decision names who confirmed it"), ProjectState.DECIDED, check_confirmer),
    Gate(
        "G11",
        gettext_lazy("Budget, procurement and launch have an owner and a date"),
        ProjectState.FOLLOW_THROUGH,
        check_follow_through,
    ),
    Gate(
        "G12",
        gettext_lazy("An observer is named for capacity, cost and stability"),
        ProjectState.OBSERVING,
        check_observer,
        waivable=False,
    ),
]
