"""What is known of candidates: whether they were measured, and in how many switches they differ."""

from collections.abc import Iterable, Mapping
from typing import Any

from pocs.runs.choices import RunState, TargetKind, Validity
from pocs.runs.engine_settings import DEFAULTS, OF_SPECULATION
from pocs.runs.models import Run, Target


def pairs_with_baseline(target: Target) -> tuple[Run, Run] | None:
    """The newest valid runs (baseline, candidate) of one scenario version; None while there is no pair."""
    if target.baseline_id is None:
        return None
    runs = _valid_runs([target.baseline_id, target.pk])
    of_baseline = {run.scenario_version_id: run for run in runs if run.target_id == target.baseline_id}
    for run in reversed(runs):
        if run.target_id == target.pk and run.scenario_version_id in of_baseline:
            return of_baseline[run.scenario_version_id], run
    return None


def measured_against_baseline(target: Target) -> bool:
    """Whether a valid run of the same scenario version stands on both sides."""
    return pairs_with_baseline(target) is not None


def changed_switches(target: Target) -> list[str]:
    """The switches in which a candidate differs from its baseline now; how to guess counts as one switch."""
    return [] if target.baseline is None else changed_between(target, target.baseline)


def changed_between(one: Target, other: Target) -> list[str]:
    """The switches in which two targets of the engine differ as they are stored."""
    found = [] if one.location == other.location else ["location"]
    return [*found, *_different(one.engine_settings, other.engine_settings)]


def switches_between(a: Run, b: Run) -> list[str]:
    """The switches in which the engines of two runs differed when they ran; none where one is no engine."""
    one, other = ((run.configuration or {}).get("target") or {} for run in (a, b))
    if not one.get("kind") == other.get("kind") == TargetKind.ENGINE:
        return []
    found = [] if one.get("location") == other.get("location") else ["location"]
    return [*found, *_different(one.get("settings") or {}, other.get("settings") or {})]


def _different(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    found: list[str] = []
    for name, default in DEFAULTS.items():
        if one.get(name, default) != other.get(name, default):
            switch = "speculate" if name in OF_SPECULATION else name
            found += [] if switch in found else [switch]
    return found


def _valid_runs(target_ids: Iterable[int]) -> list[Run]:
    """Complete and valid runs of these targets, oldest first, without what makes rows heavy."""
    return list(
        Run.objects.filter(target_id__in=target_ids, state=RunState.COMPLETE, validity=Validity.VALID)
        .only("pk", "number", "target_id", "scenario_version_id")
        .order_by("number")
    )
