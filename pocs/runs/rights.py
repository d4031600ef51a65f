"""What the routes of runs, targets and matrix executions ask for."""

from pocs.common.access import Table
from pocs.people.access import SIGNED_IN, behind, needs, reads
from pocs.projects.models import Project
from pocs.runs.models import Experiment, MatrixExecution, Run, SampledAnswer, Target

PROJECT, RUN = behind(Project), behind(Run, "project")
TARGET, MATRIX = behind(Target, "project"), behind(MatrixExecution, "project")
EXPERIMENT = behind(Experiment, "project")
ANSWER = behind(SampledAnswer, "sample__project")
READS = reads()

TABLE: Table = {
    "api-runs": {"GET": READS, "POST": needs("run.execute", PROJECT)},
    "api-targets": {"GET": READS, "POST": needs("target.edit", PROJECT)},
    "api-matrices": {"POST": needs("run.execute", PROJECT)},
    "api-experiments": {"GET": READS, "POST": needs("run.execute", PROJECT)},
    "api-experiment": {"GET": READS},
    "api-experiment-cancel": {"POST": needs("run.cancel", EXPERIMENT)},
    "api-baselines": {"GET": READS, "POST": needs("run.execute", PROJECT)},
    "api-regression": {"GET": READS, "POST": READS},
    "api-run": {"GET": READS},
    "api-run-requests": {"GET": READS},
    "api-run-records": {"GET": READS},
    "api-run-export": {"GET": READS},
    "api-run-report": {"GET": READS},
    "api-run-cancel": {"POST": needs("run.cancel", RUN)},
    "api-run-supersede": {"POST": needs("run.execute", RUN)},
    "api-run-artifact": {"POST": needs("run.execute", RUN)},
    "api-target": {"GET": READS, "PATCH": needs("target.edit", TARGET)},
    "api-target-reports": {"GET": READS},
    "api-target-conformance": {"POST": needs("target.edit", TARGET)},
    "api-target-check": {"POST": needs("target.edit", TARGET)},
    "api-target-candidates": {"POST": needs("target.edit", TARGET)},
    "api-matrix": {"GET": READS},
    "api-matrix-cancel": {"POST": needs("run.cancel", MATRIX)},
    "api-schema-poc-run": {"GET": SIGNED_IN},
    "runs:detail": {"GET": READS},
    "runs:requests": {"GET": READS},
    "runs:request": {"GET": READS},
    "runs:records": {"GET": READS},
    "runs:export": {"GET": READS},
    "runs:report": {"GET": READS},
    "runs:cancel": {"POST": needs("run.cancel", RUN)},
    "runs:list": {"GET": READS},
    "runs:start": {"GET": reads("run.execute"), "POST": needs("run.execute", PROJECT)},
    "runs:compare": {"GET": READS},
    "runs:experiments": {"GET": READS},
    "runs:experiment_new": {"GET": reads("run.execute"), "POST": needs("run.execute", PROJECT)},
    "runs:experiment": {"GET": READS},
    "runs:experiment_cancel": {"POST": needs("run.cancel", PROJECT)},
    "runs:matrix": {"GET": READS},
    "runs:matrix_start": {"POST": needs("run.execute", PROJECT)},
    "runs:matrix_detail": {"GET": READS},
    "runs:matrix_cancel": {"POST": needs("run.cancel", PROJECT)},
    "runs:answers": {"GET": READS},
    "runs:answers_draw": {"POST": needs("answers.draw", PROJECT)},
    "runs:answer_judge": {"POST": needs("answers.judge", ANSWER)},
    "runs:targets": {"GET": READS},
    "runs:techniques": {"GET": READS},
    "runs:candidate_new": {"POST": needs("target.edit", PROJECT)},
    "runs:target_new": {"GET": reads("target.edit"), "POST": needs("target.edit", PROJECT)},
    "runs:target_edit": {"GET": reads("target.edit"), "POST": needs("target.edit", PROJECT)},
    "runs:target_reports": {"GET": READS},
    "runs:target_conformance": {"POST": needs("target.edit", PROJECT)},
    "runs:target_check": {"POST": needs("target.edit", PROJECT)},
}
