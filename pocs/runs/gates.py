"""The guards of the measurement: G3 (the matrix is covered) and G4 (each run has its full metric set)."""

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from pocs.common.errors import Missing
from pocs.projects.choices import ProjectState
from pocs.projects.gates import Gate
from pocs.projects.models import Project
from pocs.runs.choices import RunState, Validity
from pocs.runs.metric_sets import METRIC_NAMES, missing_metrics
from pocs.runs.models import Run
from pocs.runs.selectors import Coverage, counting_runs, coverage

LEVELS_WANTED = 2


def matrix_guard(project: Project) -> list[Missing]:
    """G3: ≥ 2 input lengths, output lengths and concurrency levels, an interruption, several prompts."""
    covered, url = coverage(project), _matrix_url(project)
    missing = []

    def ask(code: str, text: str) -> None:
        missing.append(Missing(guard="G3", code=code, text=text, object=str(project), url=url))

    if len(covered.input_tokens) < LEVELS_WANTED:
        ask(
            "S8", _("at least two input lengths (S8); %(so_far)s") % {"so_far": _so_far(covered.input_tokens)}
        )
    if len(covered.output_tokens) < LEVELS_WANTED:
        ask(
            "S9",
            _("at least two output lengths (S9); %(so_far)s") % {"so_far": _so_far(covered.output_tokens)},
        )
    if len(covered.concurrency) < LEVELS_WANTED:
        ask(
            "S10",
            _("at least two concurrency levels (S10); %(so_far)s") % {"so_far": _so_far(covered.concurrency)},
        )
    if not covered.interruptions:
        ask("S11", _("at least one interruption (S11)"))
    if covered.distinct_prompts < LEVELS_WANTED:
        ask("X6", _("more than one prompt: a single-prompt demo proves nothing about production (X6)"))
    return missing


def _so_far(levels: tuple[int, ...]) -> str:
    """What the counting runs cover already."""
    if not levels:
        return _("no run that counts covers any yet")
    return _("so far only %(levels)s") % {"levels": ", ".join(str(level) for level in levels)}


def metric_guard(project: Project) -> list[Missing]:
    """G4: some run counts; every scenario measured has a run whose metric set is complete."""
    counting = counting_runs(project)
    missing = [
        Missing(guard="G4", code=code, object=str(run), text=_metric_text(run, code), url=_run_url(run))
        for run in counting
        for code in missing_metrics(run.metric_set, run.summary)
    ]
    covered = {run.scenario_version_id for run in counting}
    judged: set[int] = set()
    incomplete = Run.objects.filter(project=project, state=RunState.COMPLETE, validity=Validity.INVALID)
    incomplete = incomplete.select_related("scenario_version__scenario")
    for run in incomplete.defer("configuration", "diagnosis", "manifest", "rescored").order_by("-number"):
        if run.scenario_version_id in covered | judged:
            continue
        judged.add(run.scenario_version_id)  # only the newest run of a scenario is to be repeated
        missing += [
            Missing(guard="G4", code=code, object=str(run), text=_metric_text(run, code), url=_run_url(run))
            for code in missing_metrics(run.metric_set, run.summary)
        ]
    if not counting:
        missing.insert(
            0,
            Missing(
                guard="G4",
                code="G4",
                text=_("a complete and valid run"),
                object=str(project),
                url=_matrix_url(project),
            ),
        )
    return missing


def _matrix_url(project: Project) -> str:
    return reverse("runs:matrix", args=[project.pk])


def _run_url(run: Run) -> str:
    return reverse("runs:detail", args=[run.pk])


def _metric_text(run: Run, code: str) -> str:
    return _("%(metric)s of run %(run)s (%(scenario)s)") % {
        "metric": METRIC_NAMES[code],
        "run": run,
        "scenario": run.scenario_version,
    }


def coverage_sentence(covered: Coverage) -> str:
    """How much of the planned grid is covered, in one sentence."""
    done = sum(bool(cell.runs) for cell in covered.cells)
    return ngettext(
        "%(done)s of %(count)s combination of lengths and concurrency has a run that counts.",
        "%(done)s of %(count)s combinations of lengths and concurrency have a run that counts.",
        len(covered.cells),
    ) % {"done": done, "count": len(covered.cells)}


MATRIX_GATE = Gate(
    code="G3",
    title=gettext_lazy("The matrix covers lengths, concurrency, an interruption and more than one prompt"),
    before=ProjectState.EVIDENCE_COMPLETE,
    check=matrix_guard,
)
METRIC_GATE = Gate(
    code="G4",
    title=gettext_lazy("Each run that counts has its metric set complete, first token and generation apart"),
    before=ProjectState.EVIDENCE_COMPLETE,
    check=metric_guard,
)
