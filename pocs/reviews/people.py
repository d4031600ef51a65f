"""Who is told about what in a project: its leads, its decision makers, a person's team."""

from pocs.people.models import User
from pocs.people.roles import ProjectRole
from pocs.projects.models import Project


def leads_of(project: Project) -> list[int]:
    """Ids of the active technical leads."""
    return holders_of(project, ProjectRole.LEAD)


def holders_of(project: Project, *roles: ProjectRole) -> list[int]:
    """Ids of the active people with one of these roles on the project."""
    rows = project.members.filter(role__in=roles, user__is_active=True)
    return sorted(set(rows.values_list("user_id", flat=True)))


def team_of(user: User) -> list[int]:
    """Ids of the active people of this person's team, the person included."""
    ids = {user.pk} if user.is_active else set()
    if user.team_id is not None:
        ids |= set(User.objects.filter(team_id=user.team_id, is_active=True).values_list("pk", flat=True))
    return sorted(ids)
