"""Everything that changes a project, its scenarios and its tokens."""

from pocs.projects.services.members import member_add, member_remove
from pocs.projects.services.plan import (
    affected_add,
    affected_remove,
    affected_update,
    declaration_set,
    readiness_set,
)
from pocs.projects.services.projects import (
    project_advance,
    project_cancel,
    project_create,
    project_state_set,
    project_update,
)
from pocs.projects.services.scenarios import (
    scenario_create,
    scenario_version_add,
    scenario_version_approve,
    scenario_version_retire,
    scenarios_add_missing,
)
from pocs.projects.services.starting import project_clone, project_start
from pocs.projects.services.tokens import token_issue, token_revoke
from pocs.projects.services.workloads import (
    workload_confirm,
    workload_discard,
    workload_text,
    workload_upload,
)

__all__ = [
    "affected_add",
    "affected_remove",
    "affected_update",
    "declaration_set",
    "member_add",
    "member_remove",
    "project_advance",
    "project_cancel",
    "project_clone",
    "project_create",
    "project_start",
    "project_state_set",
    "project_update",
    "readiness_set",
    "scenario_create",
    "scenario_version_add",
    "scenario_version_approve",
    "scenario_version_retire",
    "scenarios_add_missing",
    "token_issue",
    "token_revoke",
    "workload_confirm",
    "workload_discard",
    "workload_text",
    "workload_upload",
]
