"""Answers to Q1–Q10: what the runs, experiments, conclusion and retrospectives say."""

from django.urls import reverse
from django.utils.translation import gettext as _

from pocs.common.errors import Text
from pocs.evidence.choices import EvidenceType
from pocs.reviews.audiences.material import Answering, Line, Material, run_url
from pocs.reviews.choices import ObservationKind
from pocs.reviews.figures import RunFigures
from pocs.reviews.selectors import observation_views
from pocs.runs.models import Experiment
from pocs.runs.wording import verdict_of
from pocs.runs.wording.experiments import compared_lines, outputs_text, tail_texts
from pocs.runs.wording.sentences import shown_value

RUNS_SHOWN = 8
COST_METRIC = "cost_per_1k_output_tokens"
#: what an experiment's line says of a figure that it calls worse or better
CHANGED = ("better", "worse")


def where_slow(material: Material) -> list[Line]:
    """Q1: the verdict of each run, and the conclusion."""
    lines = []
    for run in material.runs[:RUNS_SHOWN]:
        verdict = verdict_of(run)
        if verdict is not None:
            lines.append(Line(verdict.headline, _run_source(run), run_url(run)))
    return lines + material.concluded("performance")


def users_wait(material: Material) -> list[Line]:
    """Q1 for the business: the wait for the first word and for the whole answer, with the slow ones."""
    lines = []
    for item in material.figures[:RUNS_SHOWN]:
        first, whole = item.phase("ttft_ms"), item.phase("e2e_ms")
        if first.p50 is None and whole.p50 is None:
            continue
        text = _(
            "The first word comes within %(first)s for half of the requests and after more than "
            "%(first_slow)s for the slowest 5 %%; the whole answer within %(whole)s and after more than "
            "%(whole_slow)s. Failed: %(failed)s of %(n)s."
        ) % {
            "first": shown_value(first.p50, "ms"),
            "first_slow": shown_value(first.p95, "ms"),
            "whole": shown_value(whole.p50, "ms"),
            "whole_slow": shown_value(whole.p95, "ms"),
            "failed": shown_value(item.error_rate, "share"),
            "n": "—" if item.attempted is None else item.attempted,
        }
        lines.append(Line(text, _run_source(item.run), run_url(item.run)))
    return lines


def which_phase(material: Material) -> list[Line]:
    """Q2: the share of the request time that each phase has, by run."""
    names: dict[str, Text] = {"queue_wait": _("queue wait"), "prefill": _("prefill"), "decode": _("decode")}
    lines = []
    for item in material.figures[:RUNS_SHOWN]:
        known = {name: share for name, share in item.shares.items() if share is not None}
        if known:
            text = _(", ").join(f"{names[name]} {share * 100:.0f} %" for name, share in known.items())
            lines.append(Line(text, _run_source(item.run), run_url(item.run)))
    return lines


def why_slower(material: Material) -> list[Line]:
    """Q3: what each experiment attributes to its change, and what changed in the configuration."""
    lines = [line for experiment in material.experiments for line in _changes(material, experiment)]
    return lines + _cost(material) + material.written(EvidenceType.CONFIGURATION, "change_note")


def what_it_costs(material: Material) -> list[Line]:
    """Q3 for procurement: the cost before and after, what experiments say of it, its basis, what is read."""
    lines = _cost(material)
    for experiment in material.experiments:
        source, url = _experiment_place(material, experiment)
        costs = [
            row for row in (experiment.result or {}).get("metrics") or () if row["metric"] == COST_METRIC
        ]
        for line in compared_lines({"metrics": costs}):
            text = f"{line.label}: {line.baseline} → {line.candidate}, {line.verdict_label}"
            lines.append(Line(text, source, url))
    lines += material.stated("budget_basis", labels=[_("Budget basis")])
    return lines + _readings(material, ObservationKind.COST)


def which_action(material: Material) -> list[Line]:
    """Q4: the stated goal, the advice of the runs, and the optimisation that is to come next."""
    goal = material.project.get_optimisation_goal_display()
    lines = []
    if goal:
        where = _("Project details")
        lines.append(Line(_("Stated goal: %(goal)s") % {"goal": goal}, where, material.url("projects:edit")))
    seen: set[str] = set()
    for run in material.runs:
        verdict = verdict_of(run)
        for advice in verdict.advice if verdict else ():
            if advice.text not in seen:
                seen.add(advice.text)
                text = f"{advice.technique or advice.area}: {advice.text}" if advice.area else advice.text
                lines.append(Line(text, _run_source(run), run_url(run)))
    return lines + material.written(EvidenceType.RETROSPECTIVE, "next_optimisation")


def new_harm(material: Material) -> list[Line]:
    """Q5: figures that a change made worse, what happened to the tail, whether answers changed."""
    lines = []
    for experiment in material.experiments:
        source, url = _experiment_place(material, experiment)
        result = experiment.result or {}
        worse = [line for line in compared_lines(result) if line.verdict == "worse"]
        texts = [f"{line.label}: {line.verdict_label}" for line in worse] or [
            _("no figure became worse beyond what repeats differ by")
        ]
        texts += tail_texts(result)
        texts += [text for text in [outputs_text(result)] if text]
        lines += [Line(text, source, url) for text in texts]
    return lines


def released_in_time(material: Material) -> list[Line]:
    """Q6."""
    return material.concluded("release_in_time")


def batching_and_tail(material: Material) -> list[Line]:
    """Q7: the conclusion, and the tail of each run beside its middle."""
    lines = material.concluded("batching_and_tail")
    return lines + [line for item in material.figures[:RUNS_SHOWN] for line in _tail(item)]


def switch_back(material: Material) -> list[Line]:
    """Q8: the conclusion, and what the retrospectives say of the rollback."""
    found = material.concluded("rollback_of_switch")
    return found + material.written(EvidenceType.RETROSPECTIVE, "rollback_outcome")


def logs_locate(material: Material) -> list[Line]:
    """Q9: the conclusion, and where the call logs lie."""
    return material.concluded("logs_locate_errors") + material.written(EvidenceType.RUNTIME, "call_logs")


def long_term(material: Material) -> list[Line]:
    """Q10: what is observed of capacity and stability, and what the retrospectives conclude."""
    lines = material.written(EvidenceType.RETROSPECTIVE, "conclusion")
    return lines + _readings(material, ObservationKind.CAPACITY, ObservationKind.STABILITY)


def _readings(material: Material, *kinds: ObservationKind) -> list[Line]:
    """The newest reading of each of these observations."""
    url = material.url("reviews:observation")
    return [
        Line(
            f"{view.label}: {reading.value.normalize():f} {reading.unit} ({reading.at:%Y-%m-%d})",
            _("Observation"),
            url,
        )
        for view in observation_views(material.project)
        if view.observation is not None and view.kind in kinds
        for reading in list(view.observation.readings.all())[:1]
    ]


def _run_source(run: object) -> str:
    return _("run %(run)s") % {"run": run}


def _tail(item: RunFigures) -> list[Line]:
    lines = []
    for name in ("ttft_ms", "tpot_ms"):
        phase = item.phase(name)
        if phase.p50 is not None and phase.p99 is not None:
            values = {
                "label": phase.label,
                "p50": shown_value(phase.p50, "ms"),
                "p99": shown_value(phase.p99, "ms"),
                "n": "—" if phase.n is None else phase.n,
            }
            text = _("%(label)s: p50 %(p50)s, p99 %(p99)s (n %(n)s)") % values
            lines.append(Line(text, _run_source(item.run), run_url(item.run)))
    return lines


def _experiment_place(material: Material, experiment: Experiment) -> tuple[str, str]:
    url = reverse("runs:experiment", args=[material.project.pk, experiment.number])
    return _("experiment %(number)s") % {"number": experiment}, url


def _changes(material: Material, experiment: Experiment) -> list[Line]:
    source, url = _experiment_place(material, experiment)
    changed = [line for line in compared_lines(experiment.result or {}) if line.verdict in CHANGED]
    return [Line(f"{experiment.name} · {line.label}: {line.verdict_label}", source, url) for line in changed]


def _cost(material: Material) -> list[Line]:
    """The cost before and after, as the business result states it."""
    result = material.manifest["business_result"] or {}
    before, after = result.get("cost_before"), result.get("cost_after")
    if not before and not after:
        return []
    text = _("Operating cost before: %(before)s; after: %(after)s") % {
        "before": before or "—",
        "after": after or "—",
    }
    return [Line(text, _("Business result"), material.url("reviews:business_result"))]


ANSWERS: dict[str, Answering] = {
    "Q1": where_slow,
    "Q2": which_phase,
    "Q3": why_slower,
    "Q4": which_action,
    "Q5": new_harm,
    "Q6": released_in_time,
    "Q7": batching_and_tail,
    "Q8": switch_back,
    "Q9": logs_locate,
    "Q10": long_term,
}
