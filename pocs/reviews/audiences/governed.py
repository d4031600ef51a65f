"""Answers to Q11–Q28: what was declared, signed, decided, and who does what from here."""

from django.utils.translation import gettext as _

from pocs.evidence.choices import TYPE_CODES, EvidenceType
from pocs.projects.choices import AffectedKind, ReadinessKind
from pocs.reviews.audiences.material import Answering, Line, Material, run_url, url_of
from pocs.reviews.choices import DecisionState, PackageState, Slot, TaskState
from pocs.reviews.manifest import BUSINESS_PAIRS
from pocs.reviews.selectors import observation_views, open_conditions, task_views
from pocs.runs.answers import newest_sample, totals_of

RUNS_SHOWN = 20


def who_affected(material: Material) -> list[Line]:
    """Q11: the affected applications, teams and data, with their owners."""
    url = material.url("projects:affected")
    lines = []
    for item in material.facts["affected"]:
        text = f"{AffectedKind(item['kind']).label}: {item['name']}"
        text += f" · {item['owner']}" if item["owner"] else ""
        lines.append(Line(text, _("Affected"), url))
    return lines


def platform_ready(material: Material) -> list[Line]:
    """Q12: the five readiness points, each with what shows it."""
    url = material.url("projects:readiness")
    lines = []
    for item in material.facts["readiness"]:
        state = _("ready") if item["ready"] else _("not ready")
        parts = [part for part in (item["basis"], item["team"]) if part]
        text = f"{ReadinessKind(item['kind']).label}: {state}"
        lines.append(Line(" · ".join([text, *parts]), _("Readiness"), url))
    return lines


def business_accepts(material: Material) -> list[Line]:
    """Q13: what the result means for the business, its signature, and the step that was decided."""
    statement = (material.manifest["business_result"] or {}).get("statement")
    where = _("Business result")
    lines = [Line(statement, where, material.url("reviews:business_result"))] if statement else []
    lines += _signature(material, Slot.BUSINESS)
    decision = material.decision
    if decision is not None and decision.state == DecisionState.CONFIRMED:
        step = _("Next step: %(step)s") % {"step": decision.get_next_step_display()}
        lines.append(Line(step, _("Decision"), material.url("reviews:decision")))
    return lines


def output_satisfies(material: Material) -> list[Line]:
    """Q14: the answers that were read, and the business signature."""
    sample = newest_sample(material.project)
    totals = totals_of(list(sample.answers.all())) if sample else None
    lines = []
    if totals and totals.open < totals.asked:
        values = {name: getattr(totals, name) for name in ("asked", "accepted", "refused", "open")}
        text = _("Of %(asked)d answers drawn: %(accepted)d accepted, %(refused)d refused, %(open)d open")
        lines.append(Line(text % values, _("Answers read by the business"), material.url("runs:answers")))
    return lines + _signature(material, Slot.BUSINESS)


def resources_stable(material: Material) -> list[Line]:
    """Q15: the platform signature, and what the runtime evidence says of the resources."""
    return _signature(material, Slot.PLATFORM) + material.written(EvidenceType.RUNTIME, "resources")


def traces_kept(material: Material) -> list[Line]:
    """Q16: the security signature, and the permissions that the configuration evidence states."""
    return _signature(material, Slot.SECURITY) + material.written(EvidenceType.CONFIGURATION, "permissions")


def three_agree(material: Material) -> list[Line]:
    """Q17: each slot of the newest package."""
    package = material.package
    if package is None:
        return []
    lines = [Line(_package_state(material), _package_name(material), material.package_url())]
    for view in material.slots.values():
        current = view.current
        state = current.get_state_display() if current else ""
        who = f" · {view.names}" if view.names else ""
        lines.append(Line(f"{view.label}: {state}{who}", _package_name(material), material.package_url()))
    return lines


def who_confirmed(material: Material) -> list[Line]:
    """Q18: who confirmed the decision, and what it says."""
    decision = material.decision
    if decision is None or decision.state != DecisionState.CONFIRMED or decision.confirmed_at is None:
        return []
    text = _("%(who)s on %(day)s: %(outcome)s") % {
        "who": decision.confirmed_by,
        "day": f"{decision.confirmed_at:%Y-%m-%d}",
        "outcome": decision.get_outcome_display(),
    }
    return [Line(text, _("Decision"), material.url("reviews:decision"))]


def unblocked(material: Material) -> list[Line]:
    """Q19: the three tasks with owner and date, and the conditions that block the launch."""
    lines = []
    url, where = material.url("reviews:follow_through"), _("Follow-through")
    for view in task_views(material.project):
        task = view.task
        if task is None or task.owner is None or task.due_on is None:
            continue
        state = str(task.get_state_display())
        if task.state != TaskState.DONE and view.overdue:
            state = _("overdue")
        lines.append(Line(f"{view.label}: {state} · {task.owner}, {task.due_on:%Y-%m-%d}", where, url))
    url = material.url("reviews:decision") + "#conditions"
    for condition in open_conditions(material.project):
        values = {"text": condition.text, "owner": condition.owner, "due": condition.due_on.isoformat()}
        text = _("Blocked by an open condition: %(text)s (%(owner)s, due %(due)s)") % values
        lines.append(Line(text, _("Decision"), url))
    return lines


def who_observes(material: Material) -> list[Line]:
    """Q20: the observers, with the newest reading of each."""
    lines = []
    url = material.url("reviews:observation")
    for view in observation_views(material.project):
        row = view.observation
        if row is None or row.observer is None:
            continue
        text = f"{view.label}: {row.observer}"
        for reading in list(row.readings.all())[:1]:
            text += f" · {reading.value.normalize():f} {reading.unit} ({reading.at:%Y-%m-%d})"
        if view.overdue:
            text += " · " + _("overdue")
        lines.append(Line(text, _("Observation"), url))
    return lines


def boundaries(material: Material) -> list[Line]:
    """Q21: where it was measured, under which scenarios, and what was waived."""
    lines = material.stated("environment_note")
    if material.facts["demo_environment_only"]:
        text = _("Measured in a demo environment only (X16).")
        lines.insert(0, Line(text, _("Project details"), material.url("projects:edit")))
    scenarios = [scenario["version"] for scenario in material.manifest["scenarios"]]
    if scenarios:
        url = material.url("projects:scenarios")
        lines.append(Line(_("Scenarios: %(list)s") % {"list": _(", ").join(scenarios)}, _("Scenarios"), url))
    for waiver in material.manifest["waivers"]:
        text = _("Waiver for %(guard)s: %(scope)s") % {"guard": waiver["guard"], "scope": waiver["scope"]}
        lines.append(Line(text, _("Waivers"), material.url("reviews:waivers")))
    return lines


def which_material(material: Material) -> list[Line]:
    """Q22: the evidence and the runs that the package holds."""
    lines = []
    for revision in material.revisions:
        kind = EvidenceType(revision.evidence.type)
        lines.append(Line(str(kind.label), material.source_of(revision), url_of(revision)))
    if material.package is not None:
        text = f"SHA-256 {material.package.digest[:16]}…"
        lines.append(Line(text, _package_name(material), material.package_url()))
    return lines


def supplier_budget_delivery(material: Material) -> list[Line]:
    """Q23."""
    return material.stated("supplier", "budget_basis", "responsibility_boundary", labels=_fact_names())


def applies(material: Material) -> list[Line]:
    """Q24."""
    return material.stated("where_applies")


def applies_not(material: Material) -> list[Line]:
    """Q25."""
    return material.stated("where_not")


def what_verifies(material: Material) -> list[Line]:
    """Q26: logs, metrics, configuration and owners, each with its place."""
    names = {
        EvidenceType.RUNTIME: _("Logs"),
        EvidenceType.CONFIGURATION: _("Configuration"),
        EvidenceType.RESPONSIBILITY: _("Owners"),
        EvidenceType.RETROSPECTIVE: _("Owners"),
    }
    lines = []
    for revision in material.revisions:
        kind = EvidenceType(revision.evidence.type)
        text = f"{names[kind]} ({TYPE_CODES[kind]})"
        lines.append(Line(text, material.source_of(revision), url_of(revision)))
    for run in material.runs[:RUNS_SHOWN]:
        source = _("run %(run)s") % {"run": run}
        lines.append(Line(f"{_('Metrics')}: {run.scenario_version}", source, run_url(run)))
    return lines


def improved(material: Material) -> list[Line]:
    """Q27: each pair of the business result that says something."""
    result = material.manifest["business_result"] or {}
    labels = (_("User experience"), _("Delivery efficiency"), _("Operating cost"))
    lines = []
    for label, (before, after) in zip(labels, BUSINESS_PAIRS, strict=True):
        if result.get(before) or result.get(after):
            values = {"what": label, "before": result[before] or "—", "after": result[after] or "—"}
            text = _("%(what)s before: %(before)s; after: %(after)s") % values
            lines.append(Line(text, _("Business result"), material.url("reviews:business_result")))
    return lines


def boundary_and_budget(material: Material) -> list[Line]:
    """Q28."""
    return material.stated("responsibility_boundary", "budget_basis", labels=_fact_names()[:0:-1])


def _fact_names() -> tuple[str, str, str]:
    return _("Suppliers"), _("Budget basis"), _("Responsibility boundary")


def _package_name(material: Material) -> str:
    assert material.package is not None
    return _("Package %(number)d") % {"number": material.package.number}


def _package_state(material: Material) -> str:
    assert material.package is not None
    return str(PackageState(material.package.state).label)


def _signature(material: Material, slot: Slot) -> list[Line]:
    """What the slot's signature says; nothing while nobody has signed."""
    view = material.slots.get(slot.value)
    current = view.current if view else None
    if view is None or current is None or current.signed_at is None:
        return []
    text = f"{current.get_state_display()}: {view.names}, {current.signed_at:%Y-%m-%d}"
    if current.comment:
        text += f" — {current.comment}"
    return [Line(text, _package_name(material), material.package_url())]


ANSWERS: dict[str, Answering] = {
    "Q11": who_affected,
    "Q12": platform_ready,
    "Q13": business_accepts,
    "Q14": output_satisfies,
    "Q15": resources_stable,
    "Q16": traces_kept,
    "Q17": three_agree,
    "Q18": who_confirmed,
    "Q19": unblocked,
    "Q20": who_observes,
    "Q21": boundaries,
    "Q22": which_material,
    "Q23": supplier_budget_delivery,
    "Q24": applies,
    "Q25": applies_not,
    "Q26": what_verifies,
    "Q27": improved,
    "Q28": boundary_and_budget,
}
