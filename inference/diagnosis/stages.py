"""What a slow prefill (D3), a slow decode (D4) and short memory (D5) go together with, tested on the run."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from inference.diagnosis.correlation import (
    GROWS_FROM,
    LEAST_PAIRS,
    MOST_PAIRS,
    observed_pairs,
    rank_correlation,
)
from inference.diagnosis.crowd import NS_PER_MS, Crowd, crowd_of, span_of
from inference.diagnosis.judgement import CLEAR_SHARE, Judgement, by_share
from inference.diagnosis.resources import Resources
from inference.diagnosis.shares import TimeSplit
from inference.records import RequestRecord

#: a token of a long prompt that costs so much more than one of a short prompt speaks of attention
ATTENTION_FACTOR = 1.3
#: … where the long prompts are at least so much longer
LENGTH_FACTOR = 2.0
#: looking around costs a pass over all requests for each that is looked at
MOST_LOOKED_AROUND = 500


def slow_prefill(records: Sequence[RequestRecord], split: TimeSplit) -> list[Judgement]:
    """D3: context length, batching, attention computation."""
    measured = _measured(records)
    pairs = observed_pairs((_new_tokens(record), _prefill_ms(record)) for record in measured)
    return [
        _grows("prefill_with_context", pairs, settle="two_input_lengths"),
        by_share("prefill_waits_for_batch", split.of("prefill_wait", "prefill"), settle="embedded_or_traces"),
        _attention(pairs),
    ]


def slow_decode(records: Sequence[RequestRecord], split: TimeSplit) -> list[Judgement]:
    """D4: token-by-token generation, cache access, scheduling, batching, output length."""
    measured = _measured(records)
    stall, requeue = split.of("decode_stall", "decode"), split.of("requeue_wait", "decode")
    scheduling = None if stall is None and requeue is None else (stall or 0.0) + (requeue or 0.0)
    crowd = crowd_of(records)
    beside = observed_pairs(
        (_others(record, crowd), record.tpot_ms) for record in _measured(records, MOST_LOOKED_AROUND)
    )

    def over(figure: Callable[[RequestRecord], float | None]) -> list[tuple[float, float]]:
        return observed_pairs((figure(record), record.tpot_ms) for record in measured)

    return [
        by_share(
            "decode_token_by_token",
            split.of("decode_compute", "decode"),
            least=CLEAR_SHARE,
            settle="embedded_or_traces",
        ),
        _grows("decode_with_context", over(_context_tokens), settle="two_input_lengths"),
        by_share("decode_waits_for_schedule", scheduling, settle="embedded_or_traces"),
        _grows("decode_with_batch", beside, settle="two_loads"),
        _grows(
            "decode_with_output_length",
            observed_pairs((record.output_tokens, record.intervals_ms.get("decode")) for record in measured),
            settle="two_output_lengths",
        ),
    ]


def short_memory(resources: Resources, summary: Mapping[str, Any]) -> list[Judgement]:
    """D5: whether short memory made requests queue, run out of memory, or leave the device idle."""
    memory = {"kv_usage_peak": resources.kv_usage_peak, "preemptions": resources.preemptions}
    if not resources.memory_observed:
        return [Judgement("memory_short", "not_observed", memory, "server_metrics")]
    if not resources.memory_short:
        return [Judgement("memory_short", "ruled_out", memory)]
    waiting = memory | {"waiting_peak": resources.waiting_peak}
    idle = memory | {"utilisation": resources.device_utilisation}
    oom = {"oom_steps": resources.oom_steps}
    return [
        _by_fact(
            "memory_makes_queue",
            None if resources.waiting_peak is None else resources.waiting_peak > 0,
            waiting,
            "server_metrics",
        ),
        _by_fact(
            "memory_runs_out",
            None if resources.oom_steps is None else resources.oom_steps > 0,
            oom,
            "server_metrics",
        ),
        _by_fact("memory_leaves_device_idle", resources.device_idle, idle, "device_utilisation"),
    ]


def _by_fact(code: str, fact: bool | None, figures: dict[str, Any], settle: str) -> Judgement:
    if fact is None:
        return Judgement(code, "not_observed", figures, settle)
    return Judgement(code, "supported" if fact else "ruled_out", figures)


def _grows(code: str, pairs: list[tuple[float, float]], *, settle: str) -> Judgement:
    """Supported where the second figure grows with the first."""
    found = rank_correlation(pairs)
    figures = {"correlation": found, "n": len(pairs)}
    if found is None:
        return Judgement(
            code, "not_observed", figures, settle if len(pairs) >= LEAST_PAIRS else "more_requests"
        )
    return Judgement(code, "supported" if found >= GROWS_FROM else "ruled_out", figures)


def _attention(pairs: list[tuple[float, float]]) -> Judgement:
    """Attention grows with the square of the length: then a token of a long prompt costs more."""
    usable = [(tokens, ms) for tokens, ms in pairs if tokens > 0]
    if len(usable) < LEAST_PAIRS:
        return Judgement("prefill_by_attention", "not_observed", {"n": len(usable)}, "more_requests")
    tokens, took = np.asarray(sorted(usable), dtype=float).T
    quarter = max(3, len(usable) // 4)
    short, long = float(np.median(tokens[:quarter])), float(np.median(tokens[-quarter:]))
    cost = took / tokens
    figures = {
        "short_tokens": short,
        "long_tokens": long,
        "short_ms_per_token": float(np.median(cost[:quarter])),
        "long_ms_per_token": float(np.median(cost[-quarter:])),
        "n": len(usable),
    }
    if long < LENGTH_FACTOR * short:
        return Judgement("prefill_by_attention", "not_observed", figures, "two_input_lengths")
    dearer = figures["long_ms_per_token"] >= ATTENTION_FACTOR * figures["short_ms_per_token"]
    return Judgement("prefill_by_attention", "supported" if dearer else "ruled_out", figures)


def _measured(records: Sequence[RequestRecord], most: int = MOST_PAIRS) -> list[RequestRecord]:
    """The measured successes, thinned evenly when there are very many."""
    found = [record for record in records if record.outcome == "success" and not record.warmup]
    return found[:: max(1, -(-len(found) // most))]


def _new_tokens(record: RequestRecord) -> float | None:
    """Prompt tokens that had to be computed."""
    if record.input_tokens is None:
        return None
    return float(record.input_tokens - (record.cached_tokens or 0))


def _prefill_ms(record: RequestRecord) -> float | None:
    compute = record.intervals_ms.get("prefill_compute")
    return record.intervals_ms.get("prefill") if compute is None else compute


def _context_tokens(record: RequestRecord) -> float | None:
    """The context in the middle of the generation."""
    if record.input_tokens is None or record.output_tokens is None:
        return None
    return record.input_tokens + record.output_tokens / 2


def _others(record: RequestRecord, crowd: Crowd) -> float | None:
    """How many ran beside it while it was decoded."""
    span, decode_ms = span_of(record), record.intervals_ms.get("decode")
    last = record.stamps.get("last_ns")
    if span is None or not decode_ms or not isinstance(last, int):
        return None
    running = crowd.running(last / NS_PER_MS - decode_ms, last / NS_PER_MS)
    return None if running is None else max(0.0, running - 1.0)
