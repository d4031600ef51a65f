"""What every service of the reviews shares: who acts, whom a duty may be given to, what is told."""

from datetime import date
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _

from pocs.common import events
from pocs.common.actors import Actor
from pocs.common.errors import Conflict, FieldError, InvalidInput, NotPermitted, StaleVersion
from pocs.common.models import VersionedModel
from pocs.people.models import User
from pocs.projects.choices import PROJECT_ORDER, ProjectState
from pocs.projects.models import Project

ENDED = (ProjectState.CLOSED, ProjectState.CANCELLED)


def require_person(actor: Actor) -> int:
    """The id of the acting person; NotPermitted for a token or the system, who cannot answer for it."""
    if not actor.is_person or actor.user_id is None:
        raise NotPermitted(_("Only a signed-in person can do this; a token or the system cannot."))
    return actor.user_id


def require_version(row: VersionedModel, version: int | None) -> None:
    """StaleVersion when `version` was read before someone else saved; None skips the check."""
    if version is not None and version != row.version:
        raise StaleVersion(
            _("Someone else saved this in the meantime. Compare with what is stored now and save again."),
            current=row.version,
        )


def require_text(pointer: str, value: str, detail: str) -> str:
    """The stripped text; InvalidInput with `detail` at `pointer` when nothing is left."""
    text = value.strip()
    if not text:
        raise InvalidInput(detail, [FieldError(pointer, "required", detail)])
    return text


def require_choice(pointer: str, value: str, choices: Any) -> str:
    """A value of the choice set; InvalidInput naming the allowed ones otherwise."""
    if value not in choices.values:
        detail = _("“%(value)s” is not one of: %(allowed)s.") % {
            "value": value,
            "allowed": ", ".join(choices.values),
        }
        raise InvalidInput(detail, [FieldError(pointer, "choice", detail)])
    return value


def require_member(pointer: str, project: Project, user: User | None) -> User:
    """An active member of the project, who can see what they answer for; InvalidInput otherwise."""
    if user is None:
        detail = _("Name a person.")
        raise InvalidInput(detail, [FieldError(pointer, "required", detail)])
    if user.organisation_id != project.organisation_id or not user.is_active:
        detail = _("There is no such person.")
        raise InvalidInput(detail, [FieldError(pointer, "unknown", detail)])
    if not project.members.filter(user=user).exists():
        detail = _("%(person)s is no member of this project and could not see the duty. Add them first.") % {
            "person": user
        }
        raise InvalidInput(detail, [FieldError(pointer, "no-member", detail)])
    return user


def require_date(pointer: str, value: date | None) -> date:
    """A date that is today or later; InvalidInput otherwise."""
    if value is None:
        detail = _("Give a date.")
        raise InvalidInput(detail, [FieldError(pointer, "required", detail)])
    if value < timezone.now().date():
        detail = _("The date %(date)s has passed.") % {"date": value.isoformat()}
        raise InvalidInput(detail, [FieldError(pointer, "past", detail)])
    return value


def tell(project: Project, kind: str, **data: Any) -> None:
    """One live event on the project's stream."""
    events.emit(f"project:{project.pk}", kind, data)


def require_open(project: Project) -> None:
    """Conflict when the project is closed or cancelled: nothing of it changes any more."""
    if Project.objects.filter(pk=project.pk, state__in=ENDED).exists():
        raise Conflict(_("The project is closed; nothing of it can be changed any more."))


def state_of(project: Project) -> str:
    """The project's state as stored now, not as the caller's object remembers it."""
    return Project.objects.values_list("state", flat=True).get(pk=project.pk)


def require_reached(project: Project, state: ProjectState) -> None:
    """Conflict unless the project has come to `state` or further, and is not closed or cancelled."""
    require_open(project)
    now = state_of(project)
    if PROJECT_ORDER.index(ProjectState(now)) < PROJECT_ORDER.index(state):
        detail = _("The project is “%(now)s”; this comes when it is “%(then)s”.") % {
            "now": ProjectState(now).label,
            "then": state.label,
        }
        raise Conflict(detail)
