"""The registry of gates: which guards each step of a project must pass, filled by every app.

Each app registers its guards when it starts, so that a project can be asked what is missing
without this module knowing who answers. A guard is a function `project -> list[Missing]`.
"""

from collections.abc import Callable
from dataclasses import dataclass

from pocs.common.errors import Missing, Text
from pocs.projects.choices import ProjectState
from pocs.projects.models import Project

Guard = Callable[[Project], list[Missing]]


@dataclass(frozen=True)
class Gate:
    """One guard: its code (`G3`), what it asks for, the state it stands before, and its check."""

    code: str
    title: Text
    before: ProjectState
    check: Guard
    waivable: bool = True


_gates: dict[str, Gate] = {}


def _nothing_waived(project: Project) -> set[str]:
    """Lookup of a process without the reviews app."""
    return set()


_waived: Callable[[Project], set[str]] = _nothing_waived


def register_gate(gate: Gate) -> None:
    """Add a gate; raises ValueError if its code is taken by another check."""
    known = _gates.get(gate.code)
    if known is not None and known.check is not gate.check:
        raise ValueError(f"gate {gate.code} is registered twice")
    _gates[gate.code] = gate


def set_waiver_lookup(lookup: Callable[[Project], set[str]]) -> None:
    """Say how to find the codes waived for a project now (the reviews app does)."""
    global _waived  # noqa: PLW0603 one lookup per process, set at start-up
    _waived = lookup


def gates() -> list[Gate]:
    """All gates, G1 first."""
    return sorted(_gates.values(), key=lambda gate: int(gate.code[1:]))


@dataclass(frozen=True)
class GateStatus:
    """What one gate says about one project now."""

    gate: Gate
    missing: list[Missing]
    waived: bool

    @property
    def met(self) -> bool:
        return not self.missing or self.waived


def gate_status(project: Project) -> list[GateStatus]:
    """Every gate of the project with what is missing, whatever the project's state."""
    waived = _waived(project)
    return [
        GateStatus(gate, gate.check(project), waived=gate.waivable and gate.code in waived)
        for gate in gates()
    ]


def missing_before(project: Project, state: ProjectState) -> list[Missing]:
    """What keeps the project from entering `state`; empty when nothing does."""
    waived = _waived(project)
    found: list[Missing] = []
    for gate in gates():
        if gate.before == state and not (gate.waivable and gate.code in waived):
            found += gate.check(project)
    return found
