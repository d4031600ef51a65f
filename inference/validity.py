"""Whether a run's figures may be used: was the client on time, and is there anything to state."""

from collections.abc import Mapping, Sequence
from typing import Any

from inference.records import RequestRecord

#: limits of the client's own error; beyond them a run is invalid
DISPATCH_DELAY_P99_LIMIT_MS = 50.0
LOOP_LAG_P99_LIMIT_MS = 50.0


def validity(
    summary: Mapping[str, Any], window: Sequence[RequestRecord], *, interrupted: bool = False
) -> dict[str, Any]:
    """`{"valid", "reasons", "lacks", "limits"}`: whether what was measured can be trusted, and what it lacks.

    `reasons` say why it can't: the client itself was beyond its stated limits, or the run was cut short.
    `lacks` say what a trustworthy run has nothing to state with (no success, no first token): requests
    that failed are a finding, not a fault of the measurement.
    """
    late = client_late(summary.get("self_check") or {}, stamps_at_target=_stamps_at_target(summary))
    lacking: list[str] = []
    successes = [record for record in window if record.outcome == "success"]
    if not window:
        lacking.append("no request was measured")
    elif not successes:
        lacking.append(f"none of {len(window)} requests succeeded")
    elif all(record.ttft_ms is None for record in successes):
        lacking.append("the first token was not observed (answers were not streamed): M1 and M2 are missing")
    reasons = [*late, "the run was interrupted"] if interrupted else late
    return {
        "valid": not reasons,
        "reasons": reasons,
        "lacks": lacking,
        "limits": {
            "dispatch_delay_p99_ms": DISPATCH_DELAY_P99_LIMIT_MS,
            "loop_lag_p99_ms": LOOP_LAG_P99_LIMIT_MS,
        },
    }


def client_late(self_check: Mapping[str, Any], *, stamps_at_target: bool = False) -> list[str]:
    """Why the client's own delays spoil a measurement; empty where they are within their limits.

    Judged by p99, below 100 samples by p90 (p99 would be the single worst one). The lag of the event loop
    spoils stamps that are taken in it, so not those of the embedded engine (`stamps_at_target`).
    """
    if several := self_check.get("generators"):  # each for itself: the late one is named
        return [
            f"generator {one['number']} of {one['of']}: {reason}"
            for one in several
            for reason in generator_faults(one, stamps_at_target=stamps_at_target)
        ]
    checks = [("dispatch_delay_ms", "requests left the client late", DISPATCH_DELAY_P99_LIMIT_MS)]
    if not stamps_at_target:
        checks.append(("loop_lag_ms", "the client's event loop lagged", LOOP_LAG_P99_LIMIT_MS))
    late: list[str] = []
    for name, what, limit_ms in checks:
        found = self_check.get(name) or {}
        judged_by = "p90" if found.get("thin") else "p99"
        value = found.get(judged_by)
        if value is not None and value > limit_ms:
            late.append(f"{what}: {judged_by} {value:.1f} ms, limit {limit_ms:g} ms")
    return late


def generator_faults(check: Mapping[str, Any], *, stamps_at_target: bool = False) -> list[str]:
    """What spoils the part of one of several generators: that it was lost, or late."""
    lost = [f"it {check['lost']}"] if check.get("lost") else []
    return lost + client_late(check, stamps_at_target=stamps_at_target)


def _stamps_at_target(summary: Mapping[str, Any]) -> bool:
    return (summary.get("target") or {}).get("kind") == "engine"
