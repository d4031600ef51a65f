"""The trace of one request while it runs, and the record that is kept of it.

A target fills the trace with stamps and tokens and judges nothing; `inference.phases` derives every
interval and the outcome from it. All stamps are `time.monotonic_ns()`; what was not observed is None.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

Outcome = Literal["success", "failed", "incomplete", "cancelled", "rate_limited", "timeout", "rejected"]
TokenSource = Literal["engine", "usage", "tokenizer", "reads"]

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


@dataclass
class Trace:
    """Everything observed of one request, in the order of metrics.md."""

    request_id: str
    index: int = 0  # position in the input; warm-up requests count apart
    warmup: bool = False
    # the client's own stamps
    scheduled_ns: int | None = None
    ready_ns: int | None = None  # scheduled, and a client slot free: later than this is the client's fault
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
    # of these, steps that computed prompts and answers at once: (start ns, end ns, prefill tokens, decode
    # tokens) of the whole step; none where steps are phase-pure
    mixed_steps: list[tuple[int, int, int, int]] = field(default_factory=list)
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
    # orderly: as the protocol says · cut: before that · client: we left · timeout: we gave up ·
    # refused: the target declined to serve it (admission, or an HTTP status of 400 and above)
    ended: Literal["orderly", "cut", "client", "timeout", "refused", "none"] = "none"
    text: str = ""
    reasoning_text: str = ""
    tool_call_text: str = ""
    token_ids: list[int] | None = None
    # for each output token, where asked for: (id, log probability, bytes) of itself, then of the alternatives
    logprobs: list[list[tuple[int, float, bytes]]] = field(default_factory=list)
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
    index: int = 0  # position in the input; warm-up requests count apart
    streamed: bool = True
    status: int | None = None
    tool_call_text: str = ""
    # what a reader must know of the figures, e.g. `tokens_per_read_unknown`
    flags: list[str] = field(default_factory=list)
    # beyond the contract: headers_ns, role_ns, preempted_ns, prefill chunks, recomputed_tokens, and the
    # logprobs where asked for: for each token [[id, log probability], …], its own first
    detail: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The object of one line of requests.jsonl."""
        return asdict(self)

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> "RequestRecord":
        """The record of one line of requests.jsonl; fields this version does not know are left out."""
        known = {name: row[name] for name in cls.__dataclass_fields__ if name in row}
        known["reads"] = [(ns, tokens) for ns, tokens in row.get("reads") or []]
        return cls(**known)
