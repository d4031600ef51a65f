"""The coverage of the matrix as a grid: kinds of scenario by lengths and concurrency."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from pocs.common.errors import Missing
from pocs.projects.choices import ScenarioKind
from pocs.projects.gates import gates
from pocs.projects.models import Project, ScenarioVersion
from pocs.runs import selectors
from pocs.runs.models import Run

#: guards that speak of the matrix and its runs
MATRIX_GATES = ("G3", "G4")
HEAVY = ("summary", "configuration", "manifest", "diagnosis")


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
