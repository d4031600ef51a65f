"""Every change of targets and runs: start, cancel, supersede, ingest, reap."""

from pocs.runs.services.answers import answer_judge, answer_sample_draw
from pocs.runs.services.artifacts import artifact_add
from pocs.runs.services.candidates import candidate_create
from pocs.runs.services.experiments import (
    baseline_create,
    experiment_cancel,
    experiment_link_rollback,
    experiment_start,
    experiments_conclude,
)
from pocs.runs.services.ingest import run_ingest
from pocs.runs.services.leases import reap_expired_leases, requeue_lost_runs
from pocs.runs.services.running import matrix_cancel, matrix_start, run_cancel, run_start, run_supersede
from pocs.runs.services.target_reports import (
    conformance_execute,
    conformance_start,
    target_check,
)
from pocs.runs.services.targets import target_create, target_update

__all__ = [
    "answer_judge",
    "answer_sample_draw",
    "artifact_add",
    "baseline_create",
    "candidate_create",
    "conformance_execute",
    "conformance_start",
    "experiment_cancel",
    "experiment_link_rollback",
    "experiment_start",
    "experiments_conclude",
    "matrix_cancel",
    "matrix_start",
    "reap_expired_leases",
    "requeue_lost_runs",
    "run_cancel",
    "run_ingest",
    "run_start",
    "run_supersede",
    "target_check",
    "target_create",
    "target_update",
]
