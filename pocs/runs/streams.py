"""Who may follow the live streams of a run and of a matrix: whoever may see their project."""

from pocs.people import policies
from pocs.people.models import User
from pocs.runs.models import MatrixExecution, Run


def may_follow_run(user_id: int, key: str) -> bool:
    """Guard of `run:<pk>`."""
    return _may_see(user_id, Run, key)


def may_follow_matrix(user_id: int, key: str) -> bool:
    """Guard of `matrix:<pk>`."""
    return _may_see(user_id, MatrixExecution, key)


def _may_see(user_id: int, model: type[Run] | type[MatrixExecution], key: str) -> bool:
    user = User.objects.filter(pk=user_id, is_active=True).exclude(organisation=None).first()
    if user is None or not key.isdigit():
        return False
    row = model._default_manager.filter(pk=int(key)).select_related("project").first()
    return row is not None and policies.allowed(user.as_actor(), "project.view", row.project)
