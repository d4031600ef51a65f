"""The registry of gates: which guards each step of a project must pass, filled by every app.

Each app registers its guards when it starts, so that a project can be asked what is missing
without this module knowing who answers. A guard is a function `project -> list[Missing]`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pocs.common.errors import Missing, Text
from pocs.projects.choices import ProjectState
from pocs.projects.models import Project
from pocs.projects.states import next_state

Guard = Callable[[Project], list[Missing]]


@dataclass(frozen=True)
class Gate:
    """One guard: its code (`G3`), what it asks for, the state it stands before, and its check.

    `later` holds what the same guard asks once more before states further on: that what was named is done.
    """

    code: str
    title: Text
    before: ProjectState
    check: Guard
    waivable: bool = True
    later: Mapping[ProjectState, Guard] = field(default_factory=dict)

    def missing_before(self, project: Project, state: ProjectState) -> list[Missing]:
        """What this guard lacks for the step to `state`; empty when it does not stand before it."""
        check = self.check if state == self.before else self.later.get(state)
        return check(project) if check else []


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
    """What one gate says about one project now; `for_next` is what keeps it from its next state."""

    gate: Gate
    missing: list[Missing]
    for_next: list[Missing]
    waived: bool

    @property
    def met(self) -> bool:
        return not self.missing or self.waived


def gate_status(project: Project) -> list[GateStatus]:
    """Every gate of the project with what is missing, whatever the project's state."""
    waived = _waived(project)
    following = next_state(project)
    found = []
    for gate in gates():
        missing = gate.check(project)
        for_next = missing if gate.before == following else []
        if following is not None and following in gate.later:
            for_next = gate.later[following](project)
            missing = missing + for_next
        is_waived = gate.waivable and gate.code in waived
        found.append(GateStatus(gate, missing, [] if is_waived else for_next, waived=is_waived))
    return found


def missing_before(project: Project, state: ProjectState) -> list[Missing]:
    """What keeps the project from entering `state`; empty when nothing does."""
    waived = _waived(project)
    return [
        item
        for gate in gates()
        if not (gate.waivable and gate.code in waived)
        for item in gate.missing_before(project, state)
    ]
