"""The coverage of the matrix as a grid: kinds of scenario by lengths and concurrency."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from django.utils.translation import gettext as _

from pocs.common.errors import Missing, Text
from pocs.projects.choices import ScenarioKind
from pocs.projects.gates import gates
from pocs.projects.models import Project, ScenarioVersion
from pocs.runs import selectors
from pocs.runs.models import Run
from pocs.runs.selectors import Coverage

#: guards that speak of the matrix and its runs
MATRIX_GATES = ("G3", "G4")
HEAVY = ("summary", "configuration", "manifest", "diagnosis", "rescored")


@dataclass(frozen=True, order=True)
class Column:
    """One combination of lengths (tokens) and concurrency."""

    input_tokens: int
    output_tokens: int
    concurrency: int


@dataclass
class GridCell:
    """What was planned and run of one kind in one column; neither: nothing is asked there."""

    versions: list[ScenarioVersion] = field(default_factory=list)
    counting: Run | None = None
    latest: Run | None = None

    @property
    def planned(self) -> bool:
        return bool(self.versions) or self.latest is not None


@dataclass(frozen=True)
class Grid:
    """The grid with its columns, one row a kind."""

    columns: list[Column]
    rows: list[tuple[ScenarioKind, list[GridCell]]]
    planned: int
    covered: int


def grid_of(project: Project) -> Grid:
    """Every approved scenario and every run of the project in the grid; two queries."""
    versions = selectors.latest_approved_versions(project)
    runs = list(project.runs.select_related("scenario_version__scenario").defer(*HEAVY).order_by("-number"))
    cells: dict[tuple[str, Column], GridCell] = {}
    for version in versions:
        cells.setdefault((version.scenario.kind, column_of(version)), GridCell()).versions.append(version)
    for run in runs:
        key = (run.scenario_version.scenario.kind, column_of(run.scenario_version))
        cell = cells.setdefault(key, GridCell())
        cell.latest = cell.latest or run
        if cell.counting is None and run.counts_as_evidence:
            cell.counting = run
    columns = sorted({column for _kind, column in cells})
    kinds = {kind for kind, _column in cells}
    rows = [
        (kind, [cells.get((kind, column), GridCell()) for column in columns])
        for kind in ScenarioKind
        if kind in kinds
    ]
    return Grid(
        columns, rows, planned=len(cells), covered=sum(cell.counting is not None for cell in cells.values())
    )


def column_of(version: ScenarioVersion) -> Column:
    spec = version.spec
    return Column(spec.get("input_tokens") or 0, spec.get("output_tokens") or 0, spec.get("concurrency") or 0)


def matrix_missing(project: Project, codes: Iterable[str] = MATRIX_GATES) -> list[Missing]:
    """What the guards of the matrix still ask of the project."""
    wanted = set(codes)
    return [item for gate in gates() if gate.code in wanted for item in gate.check(project)]


@dataclass(frozen=True)
class ChecklistItem:
    """One code of the checklist: covered by a run that counts, only planned, or missing."""

    code: str
    label: Text
    state: str  # covered, planned or missing
    runs: tuple[Run, ...] = ()

    @property
    def state_label(self) -> str:
        labels = {"covered": _("covered"), "planned": _("planned, not run"), "missing": _("missing")}
        return labels[self.state]


def name_and_code(kind: ScenarioKind) -> tuple[str, str]:
    """Name and code of the checklist apart; Chinese labels set the code in full-width brackets."""
    name, code = re.split(r"\s*[(（]", str(kind.label).rstrip(")）"))
    return name, code


def checklist_of(grid: Grid, covered: Coverage) -> list[ChecklistItem]:
    """Every kind of scenario and S8–S11 in the order of their codes; no query of its own."""
    cells = {kind.value: row for kind, row in grid.rows}
    items = []
    for kind in ScenarioKind:
        runs = tuple(cell.counting for cell in cells.get(kind.value, ()) if cell.counting is not None)
        planned = any(cell.planned for cell in cells.get(kind.value, ()))
        state = "covered" if runs else "planned" if planned else "missing"
        name, code = name_and_code(kind)
        items.append(ChecklistItem(code, name, state, runs))
    levels = (
        ("S8", _("Several input lengths"), "input_tokens"),
        ("S9", _("Several output lengths"), "output_tokens"),
        ("S10", _("Several concurrency levels"), "concurrency"),
    )
    for code, label, name in levels:
        planned = len({getattr(column, name) for column in grid.columns}) > 1
        state = "covered" if len(getattr(covered, name)) > 1 else "planned" if planned else "missing"
        items.append(ChecklistItem(code, label, state))
    left = any(cell.planned for cell in cells.get(ScenarioKind.INTERRUPTION.value, ()))
    state = "covered" if covered.interruptions else "planned" if left else "missing"
    items.append(ChecklistItem("S11", _("At least one interruption"), state, covered.interruptions))
    return sorted(items, key=lambda item: (item.code[0] != "S", int(item.code[1:])))
