"""Who calls the live API, and which models they may ask: a project token with the scope for it."""

from dataclasses import dataclass

from django.utils.text import slugify

from pocs.people import policies
from pocs.projects import tokens
from pocs.projects.models import CIToken, Project
from pocs.runs.choices import TargetKind
from pocs.runs.models import Target
from pocs.serving import wire
from pocs.serving.errors import ApiError

CAPABILITY = "inference.use"


@dataclass(frozen=True)
class ServedModel:
    """A target as a model of the API."""

    id: str
    target_id: int
    engine: str  # mark of the engine that serves it
    created: int  # seconds since the epoch

    def body(self, owner: str) -> dict[str, object]:
        return {"id": self.id, "object": "model", "created": self.created, "owned_by": owner}


@dataclass(frozen=True)
class Caller:
    """A token or person that has been let in, and the models of the project by id.

    `asker` names whose limits count (`7` for a token, `person-7` for a person).
    """

    asker: str
    project_id: int
    models: dict[str, ServedModel]

    @property
    def owner(self) -> str:
        return f"project-{self.project_id}"

    def model(self, name: str) -> ServedModel:
        """The model of this name, or of a target by number (`target-7`); ApiError 404 for any other."""
        found = self.models.get(name)
        if found is None:
            by_number = (model for model in self.models.values() if name == f"target-{model.target_id}")
            found = next(by_number, None)
        if found is None:
            text = f"The model '{name[:80]}' does not exist or you do not have access to it."
            raise ApiError(404, text, param="model", code="model_not_found")
        return found


def caller_of(authorization: str, address: str) -> Caller:
    """Let a caller in by their `Authorization` header; ApiError 401 or 403 else."""
    token = _token(authorization, address)
    if not policies.allowed(token.as_actor(), CAPABILITY, token.project):
        text = "You have insufficient permissions for this operation. Missing scopes: inference."
        raise ApiError(403, text, code="insufficient_permissions")
    tokens.note_use(token)
    return caller_for(str(token.pk), token.project)


def caller_for(asker: str, project: Project) -> Caller:
    """The caller of a project, once let in."""
    return Caller(asker, project.pk, {model.id: model for model in models_of(project)})


def _token(authorization: str, address: str) -> CIToken:
    scheme, _, plaintext = authorization.strip().partition(" ")
    if scheme.lower() != "bearer" or not plaintext.strip():
        text = "You didn't provide a project token. Send it as 'Authorization: Bearer TOKEN'."
        raise ApiError(401, text)
    token = tokens.find_usable(plaintext.strip())
    if token is None:
        raise ApiError(401, "The project token is unknown, expired or revoked.", code="invalid_api_key")
    if not tokens.address_allowed(token, address):
        raise ApiError(401, "The project token may not be used from this address.", code="ip_not_authorized")
    return token


def models_of(project: Project) -> list[ServedModel]:
    """The project's engine targets as models; names that would be alike get the target's number."""
    targets = Target.objects.filter(project=project, kind=TargetKind.ENGINE).order_by("pk")
    taken: set[str] = set()
    models = []
    for target in targets:
        name = slugify(target.name, allow_unicode=True)
        if not name or name in taken:
            name = f"{name or 'target'}-{target.pk}"
        taken.add(name)
        created = int(target.created_at.timestamp())
        models.append(ServedModel(name, target.pk, wire.mark_of(target), created))
    return models
