"""Who acts: a signed-in person, a CI token with its sponsor, or the system itself."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Actor:
    """The author of one change, as services and the audit chain see it.

    `user_id` is the person, or the sponsor who answers for a token; `token_id` tells them apart.
    A system actor has neither.
    """

    kind: Literal["user", "token", "system"]
    organisation_id: int
    label: str
    user_id: int | None = None
    token_id: int | None = None
    token_project_id: int | None = None
    token_scopes: tuple[str, ...] = ()

    @property
    def answers_with(self) -> int:
        """Number of the person who answers for what is done; ValueError for the system, which nobody does."""
        if self.user_id is None:
            raise ValueError("nobody answers for the system")
        return self.user_id

    @property
    def is_person(self) -> bool:
        return self.kind == "user"


def system_actor(organisation_id: int) -> Actor:
    """The system acting by itself (reaper, expiry) in one organisation."""
    return Actor(kind="system", organisation_id=organisation_id, label="system")
