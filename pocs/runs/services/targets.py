"""Targets of a project: what is measured, and whether it can be measured at all."""

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _

from pocs.common import audit
from pocs.common.actors import Actor
from pocs.common.errors import Conflict, FieldError, InvalidInput, StaleVersion
from pocs.people import policies
from pocs.projects.models import Project
from pocs.runs.choices import TargetKind
from pocs.runs.credentials import seal
from pocs.runs.endpoint_settings import checked_endpoint_settings
from pocs.runs.engine_settings import checked_settings
from pocs.runs.models import Target


def target_create(
    *,
    actor: Actor,
    project: Project,
    name: str,
    kind: str,
    location: str,
    model: str = "",
    engine_settings: dict[str, Any] | None = None,
    endpoint_settings: dict[str, Any] | None = None,
    credential: str = "",
    baseline: Target | None = None,
) -> Target:
    """Add a target; the credential is stored encrypted and never shown again.

    `baseline` is the target that it is a candidate for, see `candidate_create`.
    """
    policies.require(actor, "target.edit", project)
    target = Target(project=project, kind=kind, baseline=baseline)
    _fill(target, name=name, location=location, model=model, engine_settings=engine_settings or {})
    target.endpoint_settings = _endpoint_settings(target, endpoint_settings)
    target.credential = seal(credential)
    with transaction.atomic():
        target.save()
        audit.record(
            actor=actor, verb="target.created", obj=target, project_id=project.pk, after=_seen(target)
        )
    return target


def target_update(
    *,
    actor: Actor,
    target: Target,
    version: int,
    name: str,
    location: str,
    model: str = "",
    engine_settings: dict[str, Any] | None = None,
    endpoint_settings: dict[str, Any] | None = None,
    credential: str | None = None,
) -> Target:
    """Change a target. `credential` None keeps the stored one, an empty text removes it.

    A credential is for one server: when the location moves to another one it must be given again.
    """
    policies.require(actor, "target.edit", target.project)
    with transaction.atomic():
        stored = Target.objects.select_for_update().get(pk=target.pk)
        if stored.version != version:
            raise StaleVersion(
                _("Someone else has changed this target meanwhile: look at it again before you save."),
                current=stored.version,
            )
        before, server = _seen(stored), _server_of(stored)
        _fill(stored, name=name, location=location, model=model, engine_settings=engine_settings or {})
        if endpoint_settings is not None:
            stored.endpoint_settings = _endpoint_settings(stored, endpoint_settings)
        if credential is None and stored.credential is not None and _server_of(stored) != server:
            text = _("The stored credential belongs to another server: enter the one for this address.")
            raise _wrong("/credential", "other_server", text)
        if credential is not None:
            stored.credential = seal(credential)
        stored.version += 1
        stored.save()
        audit.record(
            actor=actor,
            verb="target.updated",
            obj=stored,
            project_id=stored.project_id,
            before=before,
            after=_seen(stored),
        )
    return stored


def model_root() -> Path:
    """The folder that models may be loaded from: where the default model lies."""
    return Path(settings.PHASEGATE_MODEL_PATH).resolve().parent


def model_path(location: str) -> Path:
    """The model folder or .gguf file at `location` (a relative one counts from the model folder).

    Raises InvalidInput that says what is wrong with it.
    """
    root = model_root()
    path = (root / location).resolve()
    if not path.is_relative_to(root):
        raise _wrong("/location", "outside", _("Models are loaded from %(root)s only.") % {"root": root})
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise _wrong(
                "/location",
                "no_model",
                _("%(path)s is no model folder: it has no config.json.") % {"path": path},
            )
        return path
    if not path.is_file():
        raise _wrong(
            "/location", "absent", _("There is no model folder or .gguf file at %(path)s.") % {"path": path}
        )
    with path.open("rb") as file:
        magic = file.read(4)
    if path.suffix.lower() != ".gguf" or magic != b"GGUF":
        raise _wrong("/location", "no_gguf", _("%(path)s is not a GGUF file.") % {"path": path})
    return path


def _fill(target: Target, *, name: str, location: str, model: str, engine_settings: dict[str, Any]) -> None:
    """Set the checked fields of the target; raises InvalidInput or Conflict for the name."""
    name, location = name.strip(), location.strip()
    if not name:
        raise _wrong("/name", "required", _("Give the target a name."))
    if Target.objects.filter(project=target.project, name=name).exclude(pk=target.pk).exists():
        raise Conflict(_("This project already has a target named “%(name)s”.") % {"name": name})
    if target.kind == TargetKind.ENGINE:
        location = str(model_path(location))
        target.engine_settings = checked_settings(engine_settings, model_path)
    elif target.kind == TargetKind.HTTP:
        location = _checked_url(location)
        if not model.strip():
            raise _wrong("/model", "required", _("Name the model that the endpoint serves."))
        target.engine_settings = {}
    else:
        raise _wrong("/kind", "choice", _("A target is either the embedded engine or an endpoint."))
    target.name, target.location, target.model = name, location, model.strip()


def _endpoint_settings(target: Target, given: dict[str, Any] | None) -> dict[str, Any]:
    return checked_endpoint_settings(given or {}) if target.kind == TargetKind.HTTP else {}


def _server_of(target: Target) -> tuple[str, str | None, int | None] | None:
    """Where a credential is sent to."""
    if target.kind != TargetKind.HTTP:
        return None
    parts = urlsplit(target.location)
    return parts.scheme, parts.hostname, parts.port


def _checked_url(location: str) -> str:
    try:
        parts = urlsplit(location)
        port_given = parts.port is None or parts.port > 0
    except ValueError:
        port_given, parts = False, urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_given:
        raise _wrong(
            "/location", "url", _("“%(url)s” is no base URL such as http://host:8000/v1.") % {"url": location}
        )
    if parts.username or parts.password:
        raise _wrong("/location", "url", _("Enter the credential in its own field, not inside the URL."))
    if parts.query or parts.fragment:
        raise _wrong("/location", "url", _("A base URL has neither “?” nor “#”."))
    return location.rstrip("/")


def _wrong(pointer: str, code: str, text: str) -> InvalidInput:
    return InvalidInput(text, [FieldError(pointer, code, text)])


def _seen(target: Target) -> dict[str, Any]:
    """What the audit chain keeps of a target: that there is a credential, never which."""
    return {
        "name": target.name,
        "kind": target.kind,
        "location": target.location,
        "model": target.model,
        "engine_settings": target.engine_settings,
        **({"baseline": target.baseline.name} if target.baseline is not None else {}),
        "credential": target.credential is not None,
    }
