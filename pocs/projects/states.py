"""The way of a project: what follows what, and the few ways back."""

from pocs.projects.choices import PROJECT_ORDER, ProjectState
from pocs.projects.models import Project

CLOSED_STATES = (ProjectState.CLOSED, ProjectState.CANCELLED)
#: a package that became stale ends its review, a revoked decision reopens one; nothing else goes backwards
REOPENINGS = {
    (ProjectState.IN_REVIEW, ProjectState.EVIDENCE_COMPLETE),
    (ProjectState.DECIDED, ProjectState.IN_REVIEW),
    (ProjectState.FOLLOW_THROUGH, ProjectState.IN_REVIEW),
    (ProjectState.OBSERVING, ProjectState.IN_REVIEW),
}


def next_state(project: Project) -> ProjectState | None:
    """The state after the present one; None at the end."""
    if project.state in CLOSED_STATES:
        return None
    return PROJECT_ORDER[PROJECT_ORDER.index(ProjectState(project.state)) + 1]
