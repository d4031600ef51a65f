"""The registry of scenario kinds: every module of this package that has a `KIND` is one."""

import importlib
import pkgutil
from collections.abc import Mapping
from typing import Any

from inference.errors import InputError
from inference.kinds.base import Conducted, Kind, Need
from inference.kinds.course import Course, Stage
from inference.targets.base import Target, TargetInfo

__all__ = ["KINDS", "Conducted", "Course", "Kind", "Stage", "conduct", "kind_of", "lacking", "needs_said"]


def _found() -> dict[str, Kind]:
    modules = [importlib.import_module(f"{__name__}.{one.name}") for one in pkgutil.iter_modules(__path__)]
    kinds = [module.KIND for module in modules if hasattr(module, "KIND")]
    return {kind.name: kind for kind in sorted(kinds, key=lambda kind: int(kind.code.lstrip("SM")))}


KINDS: Mapping[str, Kind] = _found()


def kind_of(name: str) -> Kind:
    """The kind with this name; InputError where there is none."""
    if name not in KINDS:
        raise InputError(f"there is no scenario kind {name!r}")
    return KINDS[name]


def lacking(kind: Kind, target: Target, info: TargetInfo) -> list[Need]:
    """What the kind needs and the target does not have."""
    has: dict[Need, bool] = {"switch": hasattr(target, "switch"), "memory": True}
    return [need for need in kind.needs if not has[need]]


def needs_said(kind: Kind, missing: list[Need]) -> str:
    return f"a {kind.name} scenario needs a target with {', '.join(missing)}: only the embedded engine has it"


async def conduct(kind: Kind, course: Course) -> tuple[Conducted, dict[str, Any]]:
    """Run the kind's procedure; with it the block `kind` of the summary.

    Raises InputError where the target lacks what the kind needs.
    """
    if missing := lacking(kind, course.target, course.info):
        raise InputError(needs_said(kind, missing))
    try:
        conducted = await kind.procedure(course)
    finally:
        course.leave()
    found = conducted.findings
    return conducted, {
        "kind": kind.name,
        "code": kind.code,
        "options": dict(course.values),
        "facts": found.facts,
        "tables": found.tables,
        "statements": found.statements,
        "stages": course.stages_json(),
    }
