"""What a model switch did: times, requests and memory, ready to be shown and kept."""

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from inference.errors import TargetUnavailable

How = Literal["beside", "unload_first"]
Outcome = Literal["switched", "kept", "rolled_back", "lost"]


@dataclass(kw_only=True)
class SwitchRequests:
    """Requests that met the switch."""

    drained: int = 0  # open when it began, and ended on the old model
    waited: int = 0  # arrived while no model was loaded, and waited for one
    failed: int = 0  # ended without an answer because of the switch, those without a place to wait included
    refused: int = 0  # of these: there was no place to wait


@dataclass(kw_only=True)
class SwitchMemory:
    """Resident bytes of all engine processes of the target; what was not observed is None."""

    before_bytes: int | None = None
    peak_bytes: int | None = None
    after_bytes: int | None = None
    device_before_bytes: int | None = None  # the same on the accelerators, from NVML
    device_peak_bytes: int | None = None
    device_after_bytes: int | None = None
    need_bytes: int | None = None  # estimated for the new model
    available_bytes: int | None = None  # when the choice was made
    back_to_baseline: bool | None = None  # only the serving process is left, and it has grown by no other


@dataclass(kw_only=True)
class SwitchReport:
    """One switch. Times are milliseconds; `stages_ms` has those that happened, in order, without gaps:

    `prepare` the new process starts while the old one serves · `drain` open requests end · `unload` until
    the old process is gone · `load` until the new model is loaded · `first_good_token` from then until a
    short greedy request has been answered · `rollback_load` and `rollback_first_good_token` the same for the
    old model. `load_ms` splits the new model's load, its process's start included.
    """

    how: How
    how_reason: str
    source: dict[str, Any] | None  # the model before: path, model, model_digest, dtype; None: there was none
    target: dict[str, Any]
    started_at: str  # UTC
    outcome: Outcome = "lost"
    reason: str | None = None  # why the new model does not serve
    rollback_reason: str | None = None  # why the old one does not serve again either
    stages_ms: dict[str, float] = field(default_factory=dict)
    load_ms: dict[str, float] | None = None
    first_good_token_ms: float | None = None  # since the start of the switch, of the model that serves now
    outage_ms: float | None = None  # nobody could be served; None: it has not ended
    held_ms: float = 0.0  # arriving requests had to wait
    total_ms: float = 0.0
    requests: SwitchRequests = field(default_factory=SwitchRequests)
    memory: SwitchMemory = field(default_factory=SwitchMemory)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON; the models before and after are `from` and `to`."""
        found = asdict(self)
        return {"from": found.pop("source"), "to": found.pop("target"), **found}


class SwitchFailed(TargetUnavailable):
    """The new model does not serve; `report` says what does instead."""

    def __init__(self, message: str, report: SwitchReport) -> None:
        super().__init__(message)
        self.report = report
