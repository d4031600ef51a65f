"""Errors of the domain: services raise them, the API and the pages render them alike."""

from dataclasses import dataclass, field
from typing import Any

from django.utils.functional import Promise

Text = str | Promise


@dataclass(frozen=True)
class FieldError:
    """One wrong input: `pointer` is a JSON pointer into the body or `/field` of a form."""

    pointer: str
    code: str
    detail: Text


@dataclass(frozen=True)
class Missing:
    """One unmet guard: its code (`G3`), what is missing in the checklist's words, where to do it."""

    guard: str
    text: Text
    code: str = ""
    object: str = ""
    url: str = ""


class DomainError(Exception):
    """Base: `status` is the HTTP status, `type` the stable problem type, `detail` localised text."""

    status = 400
    type = "invalid"

    def __init__(self, detail: Text, **extra: Any) -> None:
        super().__init__(str(detail))
        self.detail = detail
        self.extra = extra


class InvalidInput(DomainError):
    """Wrong input; nothing was stored."""

    status = 400
    type = "invalid-input"

    def __init__(self, detail: Text, errors: list[FieldError] | None = None) -> None:
        super().__init__(detail)
        self.errors = errors or []


class NotPermitted(DomainError):
    """The object is the actor's to see, the action is not the actor's to take."""

    status = 403
    type = "not-permitted"


class NotFound(DomainError):
    """No such object for this actor: foreign objects and absent ones look alike."""

    status = 404
    type = "not-found"


class Conflict(DomainError):
    """The object's state does not allow the change."""

    status = 409
    type = "conflict"


class StaleVersion(DomainError):
    """Someone else saved in between; `extra["current"]` is the version now."""

    status = 412
    type = "stale-version"


@dataclass
class GateReport:
    """What the guards of one transition say: an empty list means that it may happen."""

    missing: list[Missing] = field(default_factory=list)

    @property
    def met(self) -> bool:
        return not self.missing


class GateNotMet(DomainError):
    """A guarded transition was refused: `missing` says by which guards and what to do."""

    status = 409
    type = "gate-not-met"

    def __init__(self, detail: Text, missing: list[Missing]) -> None:
        super().__init__(detail)
        self.missing = missing


class PreconditionRequired(DomainError):
    """A write came without `If-Match`, so it could overwrite what nobody has seen."""

    status = 428
    type = "precondition-required"


class IdempotencyMismatch(DomainError):
    """The key was used before with another body."""

    status = 422
    type = "idempotency-key-reused"


class InFlight(DomainError):
    """The first request with this key has not been answered yet; try again after `retry_after_s`."""

    status = 409
    type = "request-in-flight"
    retry_after_s = 1
