"""What an experiment and a baseline rest on: the one change, the order of the runs, and the comparison."""

from collections.abc import Iterable, Sequence
from typing import Any

from django.utils.translation import gettext as _

from inference.comparison import RunData, compare, gate, of_records
from inference.comparison.configuration import differences, undeclared
from pocs.common.errors import Conflict
from pocs.projects.models import ScenarioVersion
from pocs.runs.candidates import changed_between
from pocs.runs.choices import RunState, Side, TargetKind, Validity
from pocs.runs.models import Baseline, Experiment, Run, Target

#: what a comparison reads of each request
COLUMNS = (
    "request_id",
    "outcome",
    "input_tokens",
    "ttft_ms",
    "tpot_ms",
    "e2e_ms",
    "max_gap_ms",
    "queue_wait_ms",
    "prefill_ms",
    "decode_ms",
    "token_ids",
    "text",
)
DEFAULT_NOISE = 0.05
DIFFERENCES_KEPT = 50


def comparable(run: Run) -> bool:
    """Whether the measurement itself is sound: complete, and wanting at most metrics of its set.

    A run that lacks a metric is no evidence, but what it did measure can be compared.
    """
    if run.state != RunState.COMPLETE or run.validity == Validity.SUPERSEDED:
        return False
    return {reason.get("code") for reason in run.validity_reasons} <= {"metric_set_incomplete"}


def changes_between(
    baseline: Target, candidate: Target, version: ScenarioVersion, candidate_version: ScenarioVersion
) -> list[str]:
    """The stored settings in which the sides differ: `target.dtype`, `scenario.output_tokens`."""
    found = [f"target.{name}" for name in _of_targets(baseline, candidate)]
    if version.pk != candidate_version.pk:
        names = sorted(version.spec.keys() | candidate_version.spec.keys())
        found += [
            f"scenario.{name}" for name in names if version.spec.get(name) != candidate_version.spec.get(name)
        ]
    return found


def _of_targets(one: Target, other: Target) -> list[str]:
    if one.kind != other.kind:
        return ["kind"]
    if one.kind == TargetKind.ENGINE:
        return changed_between(one, other)
    found = [name for name in ("location", "model") if getattr(one, name) != getattr(other, name)]
    settings = sorted(one.engine_settings.keys() | other.engine_settings.keys())
    return found + [
        name for name in settings if one.engine_settings.get(name) != other.engine_settings.get(name)
    ]


def order_of(repeats: int) -> list[Side]:
    """A B B A A B …: each side comes as often early as late, so that drift hits both alike."""
    turns: list[Side] = []
    for number in range(repeats):
        pair = [Side.BASELINE, Side.CANDIDATE]
        turns += pair if number % 2 == 0 else pair[::-1]
    return turns


def run_data(run: Run) -> RunData:
    """The stored run as a comparison reads it."""
    rows = run.requests.filter(warmup=False).order_by("index").values(*COLUMNS)
    return of_records(
        str(run),
        run.summary or {},
        (_as_line(row) for row in rows.iterator(chunk_size=2000)),
        settings_of(run),
    )


def stated(run: Run) -> RunData:
    """The run by its summary alone."""
    return RunData(str(run), run.summary or {})


def settings_of(run: Run) -> dict[str, Any]:
    """Everything that was set when it ran, of the scenario and of the target."""
    return {"scenario": run.scenario_version.spec, "configuration": run.configuration or {}}


def _as_line(row: dict[str, Any]) -> dict[str, Any]:
    intervals = {name: row[f"{name}_ms"] for name in ("queue_wait", "prefill", "decode")}
    return row | {"id": row["request_id"], "intervals_ms": intervals}


def conclusion(experiment: Experiment) -> dict[str, Any]:
    """The comparison of the experiment's sound runs, with the differences of what was captured.

    `undeclared` are settings beside the declared change: with any, nothing is attributed to the change.
    """
    sides = {side: _valid(experiment, side) for side in Side}
    counts = {str(side): len(runs) for side, runs in sides.items()}
    if not all(sides.values()):
        return {"problem": "no_valid_runs", "valid_runs": counts}
    one, other = sides[Side.BASELINE], sides[Side.CANDIDATE]
    found = differences(settings_of(one[0]), settings_of(other[0]))
    others = undeclared(found, experiment.declared_change)
    drifted = [
        difference
        for runs in (one, other)
        for run in runs[1:]
        for difference in differences(settings_of(runs[0]), settings_of(run))
    ]
    result = compare(
        [run_data(run) for run in one],
        [run_data(run) for run in other],
        seed=experiment.pk,
        price_per_hour=experiment.price_per_hour,
        confounded=bool(others or drifted),
    )
    return result | {
        "valid_runs": counts,
        "differences": [item.as_json() for item in found[:DIFFERENCES_KEPT]],
        "undeclared": [item.as_json() for item in (*others, *drifted)[:DIFFERENCES_KEPT]],
    }


def _valid(experiment: Experiment, side: Side) -> list[Run]:
    turns = experiment.runs.filter(side=side).select_related("run__scenario_version").order_by("position")
    return [turn.run for turn in turns if comparable(turn.run)]


def regression(baseline: Baseline, candidates: Sequence[Run]) -> dict[str, Any]:
    """Candidate runs against the baseline's: `verdict` pass, fail or inconclusive, and each metric's.

    Raises Conflict for a run that is no sound measurement, or of another scenario.
    """
    runs = list(baseline.runs.select_related("scenario_version__scenario").order_by("number"))
    scenarios = {run.scenario_version.scenario_id for run in runs}
    for run in candidates:
        if not comparable(run):
            raise Conflict(_("Run %(run)s is not a sound measurement, so it shows nothing.") % {"run": run})
        if run.scenario_version.scenario_id not in scenarios:
            raise Conflict(
                _("Run %(run)s is of another scenario than the baseline “%(baseline)s”.")
                % {"run": run, "baseline": baseline}
            )
    repeated = len(runs) > 1 and len(candidates) > 1
    noise = baseline.noise if baseline.noise is not None else None if repeated else DEFAULT_NOISE
    found = compare(_data(runs), _data(candidates), seed=baseline.pk, assumed_noise=noise)
    changed = differences(settings_of(runs[0]), settings_of(candidates[0]))
    return {
        **gate(found),
        "baseline": baseline.pk,
        "baseline_runs": [run.pk for run in runs],
        "candidate_runs": [run.pk for run in candidates],
        "noise": noise,
        "load": found["load"],
        "outputs": found["outputs"],
        "differences": [item.as_json() for item in changed[:DIFFERENCES_KEPT]],
    }


def _data(runs: Iterable[Run]) -> list[RunData]:
    return [run_data(run) for run in runs]
