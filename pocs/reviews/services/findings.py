"""Services of the findings: the conclusion (G7) and the business result (G8)."""

from typing import TypeVar

from django.db import models, transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from pocs.common import audit
from pocs.common.actors import Actor
from pocs.common.errors import FieldError, InvalidInput, Text
from pocs.people import policies
from pocs.projects.changes import notify_change
from pocs.projects.models import Project
from pocs.reviews.manifest import BUSINESS_FIELDS, CONCLUSION_FIELDS
from pocs.reviews.models import BusinessResult, Conclusion
from pocs.reviews.services.support import require_open, require_person, require_version, tell

#: of a text without a limit of its own
TEXT_MAX_CHARACTERS = 20_000

Finding = TypeVar("Finding", Conclusion, BusinessResult)

#: model -> its name in events and audit, its fields, what signers are told when it changes
KINDS: dict[type[models.Model], tuple[str, tuple[str, ...], Text]] = {
    Conclusion: ("conclusion", CONCLUSION_FIELDS, gettext_lazy("the conclusion was edited")),
    BusinessResult: ("business_result", BUSINESS_FIELDS, gettext_lazy("the business result was edited")),
}


def conclusion_save(
    *, actor: Actor, project: Project, version: int | None = None, **fields: str
) -> Conclusion:
    """Save parts of the conclusion (fields of CONCLUSION_FIELDS; others are kept).

    `version` is the one the form was read with, 0 when nothing was stored then. Raises StaleVersion
    when another save came between, InvalidInput for an unknown field or a text too long.
    """
    return _save(Conclusion, actor=actor, project=project, version=version, fields=fields)


def business_result_save(
    *, actor: Actor, project: Project, version: int | None = None, **fields: str
) -> BusinessResult:
    """Save parts of the business result (fields of BUSINESS_FIELDS); as `conclusion_save`."""
    return _save(BusinessResult, actor=actor, project=project, version=version, fields=fields)


@transaction.atomic
def _save(
    model: type[Finding],
    *,
    actor: Actor,
    project: Project,
    version: int | None,
    fields: dict[str, str],
) -> Finding:
    kind, names, what = KINDS[model]
    user_id = require_person(actor)
    policies.require(actor, "conclusion.edit", project)
    require_open(project)
    _check(model, names, fields)
    row = model.objects.select_for_update().filter(project=project).first()
    if row is None:
        row = model(project=project, version=0)
    require_version(row, version)
    before = {name: getattr(row, name) for name in fields}
    after = {name: value.strip() for name, value in fields.items()}
    if row.pk is not None and before == after:
        return row
    for name, value in after.items():
        setattr(row, name, value)
    row.version += 1
    row.updated_by_id = user_id
    row.save()
    changed = {name: value for name, value in after.items() if value != before[name]}
    audit.record(
        actor=actor,
        verb=f"{kind}.saved",
        obj=row,
        project_id=project.pk,
        before={name: before[name] for name in changed},
        after=changed,
    )
    notify_change(project=project, actor=actor, obj=row, what=what)
    tell(project, "findings", saved=kind)
    return row


def _check(model: type[models.Model], names: tuple[str, ...], fields: dict[str, str]) -> None:
    errors = []
    for name, value in fields.items():
        if name not in names:
            errors.append(FieldError(f"/{name}", "unknown", _("There is no such field.")))
            continue
        limit = getattr(model._meta.get_field(name), "max_length", None) or TEXT_MAX_CHARACTERS
        if len(value.strip()) > limit:
            detail = _("At most %(limit)d characters; these are %(length)d.") % {
                "limit": limit,
                "length": len(value.strip()),
            }
            errors.append(FieldError(f"/{name}", "too-long", detail))
    if errors:
        raise InvalidInput(_("Some fields cannot be stored as they are."), errors)
