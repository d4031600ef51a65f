"""The questions of D1–D5 in words: names, answers, what an answer rests on, what would settle it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy

from pocs.runs.wording.sentences import sentence

VERDICTS = {
    "supported": gettext_lazy("supported"),
    "ruled_out": gettext_lazy("ruled out"),
    "not_observed": gettext_lazy("not observable"),
}
#: code -> name of what is judged
NAMES = {
    "first_token": gettext_lazy("First token"),
    "first_token_beyond_limit": gettext_lazy("First token"),
    "generation": gettext_lazy("Generation speed"),
    "generation_beyond_limit": gettext_lazy("Generation speed"),
    "memory": gettext_lazy("Memory shortage"),
    "queueing": gettext_lazy("Queueing"),
    "queueing_by_gauge": gettext_lazy("Queueing"),
    "model": gettext_lazy("The model itself"),
    "model_shared": gettext_lazy("The model itself"),
    "ttft_queueing": gettext_lazy("Queueing"),
    "ttft_context_computation": gettext_lazy("Context computation"),
    "ttft_model_load": gettext_lazy("Model load"),
    "ttft_network": gettext_lazy("Network"),
    "ttft_throttling": gettext_lazy("Throttling"),
    "prefill_with_context": gettext_lazy("Prefill grows with the context (D3)"),
    "prefill_waits_for_batch": gettext_lazy("Prefill waits for others in the batch (D3)"),
    "prefill_by_attention": gettext_lazy("Attention makes long prompts dearer by the token (D3)"),
    "decode_token_by_token": gettext_lazy("Decode is computation token by token (D4)"),
    "decode_with_context": gettext_lazy("Reading the cache slows decode as the context grows (D4)"),
    "decode_waits_for_schedule": gettext_lazy("Decode waits for the scheduler (D4)"),
    "decode_with_batch": gettext_lazy("Decode slows as the batch grows (D4)"),
    "decode_with_output_length": gettext_lazy("Decode is long because answers are (D4)"),
    "memory_short": gettext_lazy("Memory was short (D5)"),
    "memory_makes_queue": gettext_lazy("Short memory made requests queue (D5)"),
    "memory_runs_out": gettext_lazy("Memory ran out (D5)"),
    "memory_leaves_device_idle": gettext_lazy("The device idled while memory was short (D5)"),
}
_CORRELATION = gettext_lazy("Rank correlation %(correlation)s over %(n)s requests.")
_OF_TTFT = gettext_lazy(
    "%(share)s of the time before the first token, %(ms_per_request)s a request; %(unexplained_share)s is "
    "unexplained."
)
#: code -> the figures that the answer rests on
BASES = {
    "first_token": gettext_lazy(
        "%(share)s of the time lies before the first token; TTFT p50 %(ttft_p50_ms)s, p95 %(ttft_p95_ms)s "
        "(n %(n)s)."
    ),
    "first_token_beyond_limit": gettext_lazy(
        "The limit is not held: %(limit_metric)s %(limit_percentile)s is %(value_ms)s, allowed %(limit_ms)s."
    ),
    "generation": gettext_lazy(
        "%(share)s of the time is generation; TPOT p50 %(tpot_p50_ms)s, p95 %(tpot_p95_ms)s (n %(n)s)."
    ),
    "generation_beyond_limit": gettext_lazy(
        "The limit is not held: %(limit_metric)s %(limit_percentile)s is %(value_ms)s, allowed %(limit_ms)s."
    ),
    "memory": gettext_lazy(
        "KV use at its peak %(kv_usage_peak)s, preemptions %(preemptions)s, steps out of memory "
        "%(oom_steps)s, cache hits %(cache_hit_rate)s."
    ),
    "queueing": gettext_lazy(
        "%(share)s of the time is queue wait, p50 %(queue_wait_p50_ms)s, p95 %(queue_wait_p95_ms)s; at most "
        "%(waiting_peak)s waited and %(running_peak)s ran at once."
    ),
    "queueing_by_gauge": gettext_lazy(
        "No request's own wait was told; by the server's gauge at most %(waiting_peak)s waited and "
        "%(running_peak)s ran at once."
    ),
    "model": gettext_lazy(
        "%(share)s of the time is the model's computation, with %(running_mean)s requests in the batch on "
        "average."
    ),
    "model_shared": gettext_lazy(
        "%(share)s of the time is computation, but shared by %(running_mean)s requests in the batch on "
        "average: that says nothing of the model alone."
    ),
    "ttft_queueing": gettext_lazy(
        "%(share)s of the time before the first token, %(ms_per_request)s a request, while at most "
        "%(waiting_peak)s waited and %(running_peak)s ran; %(unexplained_share)s is unexplained."
    ),
    "ttft_context_computation": gettext_lazy(
        "%(share)s of the time before the first token, %(ms_per_request)s a request, for a median of "
        "%(input_tokens_p50)s input tokens with %(cache_hit_rate)s from the cache; %(unexplained_share)s is "
        "unexplained."
    ),
    "ttft_model_load": _OF_TTFT,
    "ttft_network": _OF_TTFT,
    "ttft_throttling": gettext_lazy(
        "%(n)s of %(attempted)s requests were refused by rate limit; back-off is %(share)s of the time "
        "before the first token."
    ),
    "prefill_with_context": _CORRELATION,
    "prefill_waits_for_batch": gettext_lazy(
        "%(share)s of prefill is waiting between chunks for others' steps."
    ),
    "prefill_by_attention": gettext_lazy(
        "A token costs %(long_ms_per_token)s in prompts of %(long_tokens)s tokens and %(short_ms_per_token)s "
        "in prompts of %(short_tokens)s (n %(n)s)."
    ),
    "decode_token_by_token": gettext_lazy("%(share)s of decode is computation."),
    "decode_with_context": _CORRELATION,
    "decode_waits_for_schedule": gettext_lazy("%(share)s of decode is stall or waiting after a preemption."),
    "decode_with_batch": _CORRELATION,
    "decode_with_output_length": _CORRELATION,
    "memory_short": gettext_lazy("KV use at its peak %(kv_usage_peak)s, preemptions %(preemptions)s."),
    "memory_makes_queue": gettext_lazy(
        "KV use at its peak %(kv_usage_peak)s while at most %(waiting_peak)s requests waited."
    ),
    "memory_runs_out": gettext_lazy("%(oom_steps)s steps ended for want of memory."),
    "memory_leaves_device_idle": gettext_lazy(
        "KV use at its peak %(kv_usage_peak)s with the device used to %(utilisation)s on average."
    ),
}
#: what to measure to answer what stayed open
SETTLE = {
    "stream_the_answers": gettext_lazy("Measure with streamed answers, so that the first token is seen."),
    "server_times": gettext_lazy(
        "Let the server tell its queue and prefill times, for each request or on its metrics endpoint."
    ),
    "server_metrics": gettext_lazy(
        "Let the server tell KV use, waiting requests and preemptions on its metrics endpoint."
    ),
    "device_utilisation": gettext_lazy("Read the device's utilisation during the run (NVML or DCGM)."),
    "run_alone": gettext_lazy("Run the same scenario with a single request at a time."),
    "two_input_lengths": gettext_lazy("Run at two input lengths that differ at least twofold."),
    "two_output_lengths": gettext_lazy("Run at two output lengths."),
    "two_loads": gettext_lazy("Run at two loads, so that the size of the batch varies."),
    "embedded_or_traces": gettext_lazy(
        "Measure the same model in the embedded engine, or let the server trace its steps."
    ),
    "more_requests": gettext_lazy("Run with more requests."),
    "one_change_against_baseline": gettext_lazy(
        "An experiment with this one change against the baseline, repeated."
    ),
}
LEVELS = {
    "high": gettext_lazy("high"),
    "medium": gettext_lazy("medium"),
    "low": gettext_lazy("low"),
}
CONFIDENCE = {
    "confidence_samples": gettext_lazy("it rests on %(n)s requests"),
    "confidence_explained": gettext_lazy("%(explained_share)s of the time lies in observed phases"),
    "confidence_resources": gettext_lazy("memory or device was not observed"),
    "confidence_validity": gettext_lazy("the measurement is not valid"),
    "confidence_no_records": gettext_lazy("only the summary is known, not the requests"),
    "confidence_all": gettext_lazy(
        "%(n)s requests, %(explained_share)s of the time in observed phases, resources observed"
    ),
}


@dataclass(frozen=True)
class Judged:
    """One judged question in words; `verdict` is its code, for colours."""

    code: str
    name: str
    verdict: str
    verdict_label: str
    basis: str
    settle: str
    figures: Mapping[str, Any]


def judged(item: Mapping[str, Any]) -> Judged:
    """The judgement of a stored diagnosis in words."""
    code, verdict = str(item.get("code")), str(item.get("verdict"))
    return Judged(
        code=code,
        name=str(NAMES.get(code, code)),
        verdict=verdict,
        verdict_label=str(VERDICTS.get(verdict, verdict)),
        basis=sentence(BASES, item).text if _says_something(item) else "",
        settle=settle_text(str(item.get("settle") or "")),
        figures=item.get("figures") or {},
    )


#: figures that say nothing by themselves
BESIDE = frozenset({"n", "attempted", "unexplained_share"})


def _says_something(item: Mapping[str, Any]) -> bool:
    """Whether an open question has at least one figure to show; an answered one always has."""
    figures = item.get("figures") or {}
    if item.get("verdict") != "not_observed":
        return True
    return any(value for name, value in figures.items() if name not in BESIDE)


def settle_text(code: str) -> str:
    """What to measure, in words; empty for an answered question."""
    return str(SETTLE.get(code, code)) if code else ""
