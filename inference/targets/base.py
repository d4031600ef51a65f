"""The protocol of a target: whatever requests can be sent to and stamps read from."""

from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from inference.records import Trace
from inference.requests import GenerationRequest


@dataclass(frozen=True)
class TargetInfo:
    """What a target is, for the summary and the configuration evidence."""

    kind: Literal["engine", "http"]
    model: str
    # model digest, architecture, dtype, engine settings, versions … or server dialect, version, URL
    configuration: dict[str, Any] = field(default_factory=dict)
    max_model_tokens: int | None = None
    # stages of the load that made it ready (M22), by name; a fact of that start, no part of the configuration
    load_ms: dict[str, float] | None = None


class Target(Protocol):
    """One thing to measure. `run` may be called concurrently on one event loop."""

    async def open(self) -> TargetInfo:
        """Load or reach the target; raises TargetUnavailable with the reason."""

    async def run(self, request: GenerationRequest, trace: Trace) -> None:
        """Send one request and follow it to its end, stamping the trace from `sent_ns` on.

        Honours `request.cancel`. Trouble with the request goes into the trace, never out as an
        exception; when the calling task is cancelled, the request is aborted at the target
        (`ended="client"`) before CancelledError is raised again.
        """

    async def telemetry(self) -> dict[str, Any]:
        """The target's resources now: memory split, KV use, running, waiting, cache counters.

        Keys as in `inference.telemetry`; what is not known is absent.
        """

    def tokenize(self, text: str) -> list[int] | None:
        """Token ids of plain text, or None where the target has no tokenizer here."""

    async def close(self) -> None:
        """Release everything the target holds."""
