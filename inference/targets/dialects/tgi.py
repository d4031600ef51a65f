"""Text Generation Inference: its metrics, and the headers it sends with an answer that is not streamed."""

from collections.abc import Mapping
from typing import Any

from inference.targets.dialects.base import (
    Dialect,
    Evidence,
    Phases,
    Signs,
    counter,
    gauge,
    label_number,
    seconds,
)


def _signs(evidence: Evidence) -> Signs:
    facts = []
    told = evidence.json("/info")
    named = "max_concurrent_requests" in told and "model_id" in told
    if named:
        facts.append(f"/info names the router of {told.get('model_id')}")
    family = evidence.with_prefix("tgi_")
    if family:
        facts.append(f"/metrics has {family}")
    return Signs(tuple(facts), str(told.get("version") or "") if named else "", sure=bool(facts))


def _phases(server: Mapping[str, Any]) -> Phases | None:
    """`x-queue-time` of an answer in one piece, in ms; the prefill is told of batches only."""
    told = server.get("headers")
    queue_ms = label_number(told.get("x-queue-time")) if isinstance(told, dict) else None
    return None if queue_ms is None else Phases(queue_ms=queue_ms)


TGI = Dialect(
    name="tgi",
    title="Text Generation Inference",
    probes=("/info",),
    prefixes=("tgi_",),
    signs=_signs,
    gauges={"running": gauge("tgi_batch_current_size"), "waiting": gauge("tgi_queue_size")},
    counters={
        "finished_requests_total": counter("tgi_request_success"),
        "accepted_requests_total": counter("tgi_request_count"),
        "failed_requests_total": counter("tgi_request_failure"),
    },
    durations={
        "queue_wait_ms": seconds("tgi_request_queue_duration"),
        "inference_ms": seconds("tgi_request_inference_duration"),
        "tpot_ms": seconds("tgi_request_mean_time_per_token_duration"),
        "e2e_ms": seconds("tgi_request_duration"),
        "prefill_step_ms": seconds("tgi_batch_forward_duration", method="prefill"),
        "decode_step_ms": seconds("tgi_batch_forward_duration", method="decode"),
    },
    progress=("prefill_step_ms", "decode_step_ms"),
    populations=("queue_wait_ms", "inference_ms", "finished_requests_total"),
    phases=_phases,
    per_request=("x-queue-time (not streamed)",),
)
