"""What a project declares before it runs: whom it affects, how ready it is, what makes it real."""

from typing import Any

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from pocs.common import audit
from pocs.common.actors import Actor
from pocs.common.errors import FieldError, InvalidInput, NotFound
from pocs.common.phrases import said
from pocs.common.versions import changed, save_version, stale
from pocs.people import policies
from pocs.people.models import Team
from pocs.projects.changes import notify_change
from pocs.projects.choices import AffectedKind, DeclarationKind, ReadinessKind
from pocs.projects.models import AffectedItem, Declaration, Project, ReadinessItem
from pocs.projects.services.projects import require_open


def affected_add(
    *, actor: Actor, project: Project, kind: str, name: str, owner: str = "", note: str = ""
) -> AffectedItem:
    """List an application, team or kind of data that the service touches (E8)."""
    policies.require(actor, "project.edit", project)
    require_open(project)
    values = _checked_affected(project, {"kind": kind, "name": name, "owner": owner, "note": note})
    with transaction.atomic():
        item = AffectedItem.objects.create(project=project, **values)
        after = values
        audit.record(actor=actor, verb="affected.added", obj=item, project_id=project.pk, after=after)
        notify_change(
            project=project, actor=actor, obj=item, what=gettext_lazy("Something affected was added")
        )
    return item


def affected_update(
    *, actor: Actor, project: Project, item: AffectedItem, version: int, **fields: str
) -> AffectedItem:
    """Change fields of an entry in the version its editor has seen; those not given stay."""
    policies.require(actor, "project.edit", project)
    require_open(project)
    with transaction.atomic():
        stored = project.affected.select_for_update().filter(pk=item.pk).first()
        if stored is None:
            raise NotFound(_("There is no such entry in this project."))
        if version != stored.version:
            raise stale(stored)
        kept = {name: getattr(stored, name) for name in ("kind", "name", "owner", "note")}
        values = _checked_affected(project, kept | fields, besides=stored.pk)
        before, after = changed(stored, values)
        if after:
            save_version(stored, **after)
            audit.record(
                actor=actor,
                verb="affected.changed",
                obj=stored,
                project_id=project.pk,
                before=before,
                after=after,
            )
            notify_change(
                project=project, actor=actor, obj=stored, what=gettext_lazy("Something affected changed")
            )
    return stored


def _checked_affected(project: Project, fields: dict[str, str], besides: int | None = None) -> dict[str, str]:
    """The fields with white space trimmed; InvalidInput for a wrong kind, no name, or one listed already."""
    values = {name: value.strip() for name, value in fields.items()}
    wrong = _too_long(AffectedItem, values)
    if values["kind"] not in AffectedKind.values:
        wrong.append(FieldError("/kind", "unknown", _("Choose application, team or data.")))
    same = project.affected.filter(kind=values["kind"], name=values["name"])
    if besides is not None:
        same = same.exclude(pk=besides)
    if not values["name"]:
        wrong.append(FieldError("/name", "required", _("Name what is affected.")))
    elif same.exists():
        wrong.append(FieldError("/name", "taken", _("This is listed already.")))
    if wrong:
        raise InvalidInput(_("What is affected is not complete."), wrong)
    return values


def affected_remove(*, actor: Actor, project: Project, item: AffectedItem) -> None:
    """Take an entry off the list of what is affected."""
    policies.require(actor, "project.edit", project)
    require_open(project)
    if item.project_id != project.pk:
        raise NotFound(_("There is no such entry in this project."))
    with transaction.atomic():
        before = {"kind": item.kind, "name": item.name, "owner": item.owner, "note": item.note}
        audit.record(actor=actor, verb="affected.removed", obj=item, project_id=project.pk, before=before)
        notify_change(
            project=project, actor=actor, obj=item, what=gettext_lazy("Something affected was removed")
        )
        item.delete()


def readiness_set(
    *,
    actor: Actor,
    project: Project,
    kind: str,
    ready: bool,
    basis: str = "",
    team: Team | None = None,
    version: int | None = None,
) -> ReadinessItem:
    """State one of the five readiness points (E9); “ready” needs what shows it.

    `version` is what the editor has seen, 0 for a point that had not been stated yet; None skips the check.
    """
    policies.require(actor, "project.edit", project)
    require_open(project)
    basis = basis.strip()
    wrong: list[FieldError] = []
    if kind not in ReadinessKind.values:
        wrong.append(FieldError("/kind", "unknown", _("There is no such readiness point.")))
    if ready and not basis:
        wrong.append(FieldError("/basis", "required", _("Say what shows that it is ready.")))
    if team is not None and team.organisation_id != project.organisation_id:
        wrong.append(FieldError("/team", "unknown", _("There is no such team in your organisation.")))
    if wrong:
        raise InvalidInput(_("The readiness point is not complete."), wrong)
    values = {"ready": ready, "basis": basis, "team_id": team.pk if team else None}
    return _set_row(
        actor=actor,
        project=project,
        model=ReadinessItem,
        kind=kind,
        values=values,
        version=version,
        verb="readiness.set",
    )


def declaration_set(
    *,
    actor: Actor,
    project: Project,
    kind: str,
    statement: str,
    source: str = "",
    version: int | None = None,
) -> Declaration:
    """Declare what makes the POC real (S13–S15) and where it comes from; `version` as in `readiness_set`."""
    policies.require(actor, "project.edit", project)
    require_open(project)
    values: dict[str, Any] = {"statement": statement.strip(), "source": source.strip()}
    wrong = _too_long(Declaration, values)
    if kind not in DeclarationKind.values:
        wrong.append(FieldError("/kind", "unknown", _("There is no such declaration.")))
    if values["statement"] and not values["source"]:
        wrong.append(FieldError("/source", "required", _("Say where it comes from.")))
    if values["source"] and not values["statement"]:
        wrong.append(FieldError("/statement", "required", _("Say what is declared.")))
    if wrong:
        raise InvalidInput(_("The declaration is not complete."), wrong)
    return _set_row(
        actor=actor,
        project=project,
        model=Declaration,
        kind=kind,
        values=values,
        version=version,
        verb="declaration.set",
    )


def _set_row(
    *,
    actor: Actor,
    project: Project,
    model: Any,
    kind: str,
    values: dict[str, Any],
    version: int | None,
    verb: str,
) -> Any:
    """Create or change the project's one row of this kind, in the version the editor has seen."""
    with transaction.atomic():
        row = model.objects.select_for_update().filter(project=project, kind=kind).first()
        before: dict[str, Any] | None
        if row is None:
            try:
                with transaction.atomic():
                    row = model.objects.create(project=project, kind=kind, **values)
            except IntegrityError:
                raise stale(model.objects.get(project=project, kind=kind)) from None
            before, after = None, values
        else:
            if version is not None and version != row.version:
                raise stale(row)
            before, after = changed(row, values)
            if not after:
                return row
            save_version(row, **after)
        audit.record(
            actor=actor,
            verb=verb,
            obj=row,
            project_id=project.pk,
            before=before,
            after={"kind": kind} | after,
        )
        what = said(gettext_lazy("%(item)s changed"), item=row)
        notify_change(project=project, actor=actor, obj=row, what=what)
    return row


def _too_long(model: Any, values: dict[str, str]) -> list[FieldError]:
    wrong = []
    for name, value in values.items():
        limit = model._meta.get_field(name).max_length
        if limit and len(value) > limit:
            message = _("At most %(limit)s characters; there are %(count)s.") % {
                "limit": limit,
                "count": len(value),
            }
            wrong.append(FieldError(f"/{name}", "max_length", message))
    return wrong
