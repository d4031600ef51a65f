"""From the trace of one request to its record: outcome, latencies and intervals, derived only here.

What sums to what (all from `time.monotonic_ns()`, in milliseconds):

- `dispatch_delay + throttled + network + queue_wait + prefill + decode + unexplained` is the time from
  `scheduled` to the last token-bearing read; null parts count as nothing. In open loop this is `e2e_ms`;
  in closed loop `e2e_ms` starts at `sent`, so the sum without `dispatch_delay` is `e2e_ms`.
- `prefill = prefill_compute + prefill_wait`, `decode = decode_compute + decode_stall + requeue_wait`,
  and `model_load` is a part of `queue_wait`.
- `release` lies after the end (finished, aborted or failed → blocks freed) and is in no sum.

A GPU may compute prompts and answers in one step. A request is in one phase at a time all the same, so the
sums hold; but what a mixed step took is no more the work of one phase than of the other. The record then has
the flag `phases_share_steps`, and its detail says how much of each compute time passed in such steps and
what each of them computed.
"""

from collections.abc import Iterable
from itertools import pairwise

from inference.records import Outcome, RequestRecord, Trace
from inference.requests import GenerationRequest
from inference.targets.dialects import phases_of_answer

#: the parts that add up to the end-to-end time, in the order in which they pass
SUMMED = ("dispatch_delay", "throttled", "network", "queue_wait", "prefill", "decode", "unexplained")
INTERVALS = (
    "dispatch_delay",
    "throttled",
    "network",
    "queue_wait",
    "model_load",
    "prefill",
    "prefill_compute",
    "prefill_wait",
    "decode",
    "decode_compute",
    "decode_stall",
    "requeue_wait",
    "release",
    "unexplained",
)

BUSY_STATUS = frozenset({429, 503})
UNACCEPTABLE_STATUS = frozenset({400, 413, 414, 422})  # this request, at this target, never

TOKENS_PER_READ_UNKNOWN = "tokens_per_read_unknown"
NOT_STREAMED = "not_streamed"
PHASES_SHARE_STEPS = "phases_share_steps"
SERVER_PHASES_CONTRADICT = "server_phases_exceed_the_observed_time"

_NS_PER_MS = 1_000_000
_SERVER_TOLERANCE_NS = _NS_PER_MS


def derive(
    trace: Trace, request: GenerationRequest, *, open_loop: bool, index: int = 0, warmup: bool = False
) -> RequestRecord:
    """The record of a request whose trace is complete.

    `open_loop` decides where latencies start: at `scheduled` (else a slow target hides its own queue)
    or, in closed loop, at `sent`.
    """
    reads = _token_reads(trace)
    first_ns = reads[0][0] if reads else None
    last_ns = reads[-1][0] if reads else None
    start_ns = trace.scheduled_ns if open_loop and trace.scheduled_ns is not None else trace.sent_ns
    flags: list[str] = []
    if not trace.streamed:
        flags.append(NOT_STREAMED)
    outcome = outcome_of(trace)
    end_name, end_ns = _end(trace, outcome, last_ns)
    error = trace.error
    if error is None and outcome in ("failed", "incomplete"):
        error = _what_is_missing(trace)
    streamed_first_ns = first_ns if trace.streamed else None
    return RequestRecord(
        id=trace.request_id,
        outcome=outcome,
        finish_reason=trace.finish_reason,
        error=error,
        text=trace.text,
        reasoning_text=trace.reasoning_text,
        token_ids=trace.token_ids,
        input_tokens=trace.input_tokens,
        cached_tokens=trace.cached_tokens,
        output_tokens=trace.output_tokens,
        output_tokens_source=trace.output_tokens_source,
        ttft_ms=_ms(start_ns, streamed_first_ns),
        ttfv_ms=_ms(start_ns, trace.first_visible_ns if trace.streamed else None),
        ttfot_ms=_ms(start_ns, trace.first_answer_ns if trace.streamed else None),
        tpot_ms=_tpot_ms(trace, reads, flags),
        e2e_ms=_ms(start_ns, last_ns),
        max_gap_ms=max(gaps_ms(reads), default=None),
        stamps={
            "scheduled_ns": trace.scheduled_ns,
            "dispatched_ns": trace.dispatched_ns,
            "sent_ns": trace.sent_ns,
            "queued_ns": trace.queued_ns,
            "admitted_ns": list(trace.admitted_ns) if trace.queued_ns is not None else None,
            "first_ns": first_ns,
            "last_ns": last_ns,
            end_name: end_ns,
            "freed_ns": trace.freed_ns,
            "closed_ns": trace.closed_ns,
        },
        intervals_ms=_intervals(trace, reads, end_ns, flags),
        reads=reads,
        tenant=request.tenant,
        application=request.application,
        warmup=warmup,
        server=dict(trace.server),
        index=index,
        streamed=trace.streamed,
        status=trace.status,
        tool_call_text=trace.tool_call_text,
        flags=flags,
        detail=_detail(trace, first_ns, last_ns),
    )


def outcome_of(trace: Trace) -> Outcome:
    """The success rule: a finish reason, no error, output, and an orderly end; else which population."""
    if trace.ended in ("timeout", "client"):
        return "timeout" if trace.ended == "timeout" else "cancelled"
    if trace.ended == "refused":
        if trace.status in BUSY_STATUS:
            return "rate_limited"
        return "rejected" if trace.status is None or trace.status in UNACCEPTABLE_STATUS else "failed"
    if trace.error is None and (trace.finish_reason is None or trace.ended != "orderly"):
        return "incomplete"
    return "success" if trace.error is None and has_output(trace) else "failed"


def has_output(trace: Trace) -> bool:
    """Whether anything was generated: text on any channel, or tokens beyond a lone end token.

    A token may have no text of its own (half a character, a special token), so a count proves output too;
    but an answer of nothing but the end token is an empty answer.
    """
    if trace.text or trace.reasoning_text or trace.tool_call_text:
        return True
    return (trace.output_tokens or 0) > (1 if trace.finish_reason == "stop" else 0)


def gaps_ms(reads: Iterable[tuple[int, int | None]]) -> list[float]:
    """Gaps between consecutive token-bearing reads (ITL); several events of one read are a gap of 0."""
    stamps = [ns for ns, _ in reads]
    return [(b - a) / _NS_PER_MS for a, b in pairwise(stamps)]


def _token_reads(trace: Trace) -> list[tuple[int, int | None]]:
    """The reads that carry tokens; in the embedded engine its own token stamps, equal ones as one."""
    if not trace.token_ns:
        return list(trace.reads)
    grouped: list[tuple[int, int | None]] = []
    for ns in trace.token_ns:
        if grouped and grouped[-1][0] == ns:
            grouped[-1] = (ns, (grouped[-1][1] or 0) + 1)
        else:
            grouped.append((ns, 1))
    return grouped


def _tpot_ms(trace: Trace, reads: list[tuple[int, int | None]], flags: list[str]) -> float | None:
    """(last − first) ÷ (output tokens − tokens in the first read); undefined for a single read."""
    if len(reads) < 2 or trace.output_tokens is None or not trace.streamed:
        return None
    in_first_read = reads[0][1]
    if in_first_read is None or trace.output_tokens_source == "reads":
        flags.append(TOKENS_PER_READ_UNKNOWN)
        in_first_read = 1
    later_tokens = trace.output_tokens - in_first_read
    if later_tokens <= 0:
        return None
    return (reads[-1][0] - reads[0][0]) / _NS_PER_MS / later_tokens


def _end(trace: Trace, outcome: Outcome, last_ns: int | None) -> tuple[str, int | None]:
    """Which of finished_ns, aborted_ns and failed_ns the record has, and its stamp."""
    name = {"success": "finished_ns", "cancelled": "aborted_ns", "timeout": "aborted_ns"}.get(
        outcome, "failed_ns"
    )
    own: int | None = getattr(trace, name)
    others = (own, trace.finished_ns, trace.aborted_ns, trace.failed_ns, trace.closed_ns, last_ns)
    return name, next((ns for ns in others if ns is not None), None)


def _what_is_missing(trace: Trace) -> str:
    if trace.ended == "cut":
        return "the connection was cut before the answer was complete"
    if trace.finish_reason is None:
        return "the answer ended without a finish reason" if trace.reads else "the answer had no output"
    if not has_output(trace):
        return f"the answer ended with finish reason {trace.finish_reason!r} and no output"
    return "the answer did not end orderly"


def _intervals(
    trace: Trace, reads: list[tuple[int, int | None]], end_ns: int | None, flags: list[str]
) -> dict[str, float | None]:
    out: dict[str, float | None] = dict.fromkeys(INTERVALS)
    out["dispatch_delay"] = _ms(trace.scheduled_ns, trace.sent_ns)
    out["throttled"] = trace.throttled_ns / _NS_PER_MS if trace.throttled_ns else None
    if trace.queued_ns is not None:
        _engine_intervals(trace, reads, out)
        if trace.mixed_steps:
            flags.append(PHASES_SHARE_STEPS)
    elif reads and trace.sent_ns is not None:
        _endpoint_intervals(trace, reads, out, flags)
    if end_ns is not None and trace.freed_ns is not None:
        out["release"] = max(0, trace.freed_ns - end_ns) / _NS_PER_MS
    if reads and trace.sent_ns is not None:
        start_ns = trace.scheduled_ns if trace.scheduled_ns is not None else trace.sent_ns
        known = sum(out[name] or 0.0 for name in SUMMED if name != "unexplained")
        rest = (reads[-1][0] - start_ns) / _NS_PER_MS - known
        out["unexplained"] = 0.0 if abs(rest) < 1e-3 else rest  # below the clock's own resolution
    return out


def _engine_intervals(
    trace: Trace, reads: list[tuple[int, int | None]], out: dict[str, float | None]
) -> None:
    """Intervals from the engine's own stamps; boundaries never run backwards, so parts never overlap."""
    sent_ns = trace.sent_ns if trace.sent_ns is not None else trace.queued_ns
    if trace.queued_ns is None or sent_ns is None:
        return
    queued_ns = max(sent_ns, trace.queued_ns)
    out["network"] = _ms(sent_ns, queued_ns)
    if not trace.admitted_ns:
        return
    admitted_ns = max(queued_ns, trace.admitted_ns[0])
    out["queue_wait"] = _ms(queued_ns, admitted_ns)
    if trace.model_load_ns:
        out["model_load"] = min(trace.model_load_ns, admitted_ns - queued_ns) / _NS_PER_MS
    if not reads:
        return
    first_ns, last_ns = max(admitted_ns, reads[0][0]), max(admitted_ns, reads[-1][0])
    work = _union([(start, end) for start, end, _ in trace.chunks] + trace.decode_steps)
    prefill = (first_ns - admitted_ns) / _NS_PER_MS
    compute = _overlap_ns(work, admitted_ns, first_ns) / _NS_PER_MS
    out |= {"prefill": prefill, "prefill_compute": compute, "prefill_wait": prefill - compute}
    decode = (last_ns - first_ns) / _NS_PER_MS
    compute = _overlap_ns(work, first_ns, last_ns) / _NS_PER_MS
    waits = _union(list(zip(trace.preempted_ns, trace.admitted_ns[1:], strict=False)))
    requeue = _overlap_ns(waits, first_ns, last_ns) / _NS_PER_MS
    out |= {"decode": decode, "decode_compute": compute, "requeue_wait": requeue if waits else None}
    out["decode_stall"] = max(0.0, decode - compute - requeue)


def _endpoint_intervals(
    trace: Trace, reads: list[tuple[int, int | None]], out: dict[str, float | None], flags: list[str]
) -> None:
    """What a client and the answer itself tell: decode from the reads, queue and prefill from the server.

    The server's figures are used only where they fit into the observed time to the first token; the
    rest of that time (network, front end, waiting for a running step) stays `unexplained`.
    """
    if not trace.streamed or trace.sent_ns is None:
        return
    out["decode"] = _ms(reads[0][0], reads[-1][0])
    told = phases_of_answer(trace.server)
    queue_ms, prefill_ms = told.queue_ms, told.prefill_ms
    if prefill_ms is None:
        return
    available_ms = (reads[0][0] - trace.sent_ns - trace.throttled_ns) / _NS_PER_MS
    if queue_ms is None and prefill_ms <= available_ms:
        queue_ms = available_ms - prefill_ms
    if (queue_ms or 0.0) + prefill_ms > available_ms + _SERVER_TOLERANCE_NS / _NS_PER_MS:
        flags.append(SERVER_PHASES_CONTRADICT)
        return
    prefill_ms = min(prefill_ms, available_ms)
    out["prefill"] = prefill_ms
    out["queue_wait"] = None if queue_ms is None else min(queue_ms, available_ms - prefill_ms)
    if told.load_ms and out["queue_wait"] is not None:
        out["model_load"] = min(told.load_ms, out["queue_wait"])


def _detail(trace: Trace, first_ns: int | None, last_ns: int | None) -> dict[str, object]:
    detail: dict[str, object] = {
        "ready_ns": trace.ready_ns,
        "headers_ns": trace.headers_ns,
        "role_ns": trace.role_ns,
        "first_visible_ns": trace.first_visible_ns,
        "first_answer_ns": trace.first_answer_ns,
        "preempted_ns": list(trace.preempted_ns),
        "prefill_chunks": [list(chunk) for chunk in trace.chunks],
        "recomputed_tokens": trace.recomputed_tokens,
        "logprobs": [[[one, logprob] for one, logprob, _ in token] for token in trace.logprobs],
    }
    if trace.mixed_steps and trace.admitted_ns and first_ns is not None and last_ns is not None:
        spans = _union([(start, end) for start, end, *_ in trace.mixed_steps])
        detail |= {
            "mixed_steps": [list(step) for step in trace.mixed_steps],
            "mixed_prefill_ms": _overlap_ns(spans, trace.admitted_ns[0], first_ns) / _NS_PER_MS,
            "mixed_decode_ms": _overlap_ns(spans, first_ns, last_ns) / _NS_PER_MS,
        }
    return {name: value for name, value in detail.items() if value not in (None, [], 0)}


def _ms(start_ns: int | None, end_ns: int | None) -> float | None:
    if start_ns is None or end_ns is None:
        return None
    return (end_ns - start_ns) / _NS_PER_MS


def _union(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The spans sorted and merged, so that overlapping ones are counted once."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def _overlap_ns(spans: list[tuple[int, int]], start_ns: int, end_ns: int) -> int:
    return sum(max(0, min(end, end_ns) - max(start, start_ns)) for start, end in spans)
