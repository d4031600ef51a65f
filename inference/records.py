"""The trace of one request while it runs, and the record that is kept of it.

A target fills the trace with stamps and tokens and judges nothing; `inference.phases` derives every
interval and the outcome from it. All stamps are `time.monotonic_ns()`; what was not observed is None.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

Outcome = Literal["success", "failed", "incomplete", "cancelled", "rate_limited", "timeout", "rejected"]
TokenSource = Literal["engine", "usage", "tokenizer", "reads"]


@dataclass
class Trace:
    """Everything observed of one request, in the order of metrics.md."""

    request_id: str
    # the client's own stamps
    scheduled_ns: int | None = None
    dispatched_ns: int | None = None
    sent_ns: int | None = None
    headers_ns: int | None = None
    role_ns: int | None = None  # a role-only chunk: recorded, never a token
    reads: list[tuple[int, int | None]] = field(default_factory=list)  # (ns, tokens; None: unknown)
    first_visible_ns: int | None = None  # first visible output on any channel
    first_answer_ns: int | None = None  # first answer content
    closed_ns: int | None = None  # the stream's end
    throttled_ns: int = 0  # time spent in 429/503 back-off
    # the engine's stamps (embedded targets)
    queued_ns: int | None = None
    admitted_ns: list[int] = field(default_factory=list)
    preempted_ns: list[int] = field(default_factory=list)
    chunks: list[tuple[int, int, int]] = field(default_factory=list)  # prefill (start ns, end ns, tokens)
    decode_steps: list[tuple[int, int]] = field(default_factory=list)  # this sequence's steps (start, end)
    token_ns: list[int] = field(default_factory=list)  # one stamp per output token, inside the engine
    model_load_ns: int = 0  # part of the queue wait in which the model was loading
    recomputed_tokens: int = 0
    finished_ns: int | None = None
    aborted_ns: int | None = None
    failed_ns: int | None = None
    freed_ns: int | None = None
    # what came out
    streamed: bool = True
    status: int | None = None
    finish_reason: str | None = None
    error: str | None = None
    ended: Literal["orderly", "cut", "client", "timeout", "refused", "none"] = "none"
    text: str = ""
    reasoning_text: str = ""
    tool_call_text: str = ""
    token_ids: list[int] | None = None
    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    output_tokens_source: TokenSource | None = None
    server: dict[str, Any] = field(default_factory=dict)  # what the server told of this request


@dataclass
class RequestRecord:
    """One line of requests.jsonl (cli.md has the names and their meaning)."""

    id: str
    outcome: Outcome
    finish_reason: str | None
    error: str | None
    text: str
    reasoning_text: str
    token_ids: list[int] | None
    input_tokens: int | None
    cached_tokens: int | None
    output_tokens: int | None
    output_tokens_source: TokenSource | None
    ttft_ms: float | None
    ttfv_ms: float | None
    ttfot_ms: float | None
    tpot_ms: float | None
    e2e_ms: float | None
    max_gap_ms: float | None
    stamps: dict[str, int | list[int] | None]
    intervals_ms: dict[str, float | None]
    reads: list[tuple[int, int | None]]
    tenant: str = ""
    application: str = ""
    warmup: bool = False
    server: dict[str, Any] = field(default_factory=dict)
