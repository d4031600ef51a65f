"""The codes of verdicts and validity in words, in the reader's language.

`inference.diagnosis` and `pocs.runs.judgement` state codes with figures; each code has one sentence
here. A code without a sentence is shown as it is, so that nothing found is ever hidden.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import TextChoices
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from inference.diagnosis.verdict import CLEAR_SHARE, STAGES
from pocs.runs.choices import MetricSet, RunState
from pocs.runs.metric_sets import METRIC_NAMES
from pocs.runs.models import Run


@dataclass(frozen=True)
class Sentence:
    """One finding, advice or reason: its code, its sentence, and the figures it rests on."""

    code: str
    text: str
    figures: Mapping[str, Any]
    stage: str = ""  # advice: the stage it acts on
    area: str = ""  # advice: its action area (D7), in words


@dataclass(frozen=True)
class Share:
    """One part of the summed time: its name and its share 0–1, None where not observed."""

    part: str
    label: str
    share: float | None


@dataclass(frozen=True)
class Verdict:
    """The first verdict of a run in words."""

    where: str
    headline: str
    shares: tuple[Share, ...]
    findings: tuple[Sentence, ...]
    advice: tuple[Sentence, ...]


HEADLINES = {
    "queue": gettext_lazy("Most of the time goes into waiting in the queue."),
    "prefill": gettext_lazy("Most of the time goes into prefill, the computation of the context."),
    "decode": gettext_lazy("Most of the time goes into decode, the generation token by token."),
    "mixed": gettext_lazy("No single stage holds most of the time: %(ranked)s."),
    "unknown": gettext_lazy("What was observed does not say in which stage the time goes."),
}
#: a stage that is ahead of the others with less than half of the time
HEADLINES_BELOW_HALF = {
    "queue": gettext_lazy("The largest part of the time goes into waiting in the queue: %(ranked)s."),
    "prefill": gettext_lazy("The largest part of the time goes into prefill: %(ranked)s."),
    "decode": gettext_lazy("The largest part of the time goes into decode: %(ranked)s."),
}
PARTS = {
    "dispatch_delay": gettext_lazy("Wait for a client slot"),
    "throttled": gettext_lazy("Throttled"),
    "network": gettext_lazy("Network"),
    "queue_wait": gettext_lazy("Queue wait"),
    "prefill": gettext_lazy("Prefill"),
    "decode": gettext_lazy("Decode"),
    "unexplained": gettext_lazy("Unexplained"),
}
AREAS = {
    "context": gettext_lazy("context governance"),
    "cache": gettext_lazy("cache management"),
    "routing": gettext_lazy("model routing"),
    "capacity": gettext_lazy("GPU capacity"),
}

FINDINGS = {
    "no_time_observed": gettext_lazy(
        "No request succeeded with observed times, so nothing can be said about them."
    ),
    "time_unexplained": gettext_lazy(
        "Queue, prefill and decode explain only %(explained_share)s of the time."
    ),
    "time_in_queue": gettext_lazy(
        "Over %(n)s successful requests, queue wait takes %(queue_share)s of the summed time, prefill "
        "%(prefill_share)s, decode %(decode_share)s."
    ),
    "time_in_prefill": gettext_lazy(
        "Over %(n)s successful requests, prefill takes %(prefill_share)s of the summed time, queue wait "
        "%(queue_share)s, decode %(decode_share)s."
    ),
    "time_in_decode": gettext_lazy(
        "Over %(n)s successful requests, decode takes %(decode_share)s of the summed time, prefill "
        "%(prefill_share)s, queue wait %(queue_share)s."
    ),
    "time_in_mixed": gettext_lazy(
        "Over %(n)s successful requests, the summed time divides into queue wait %(queue_share)s, "
        "prefill %(prefill_share)s and decode %(decode_share)s."
    ),
    "before_first_token_not_split": gettext_lazy(
        "%(share)s of the time lies before the first token and the server does not tell how it divides "
        "into queue, prefill and network."
    ),
    "first_token_not_observed": gettext_lazy(
        "The first token was not observed: the answers were not streamed, so M1 and M2 stay empty."
    ),
    "ttft_by_queueing": gettext_lazy(
        "The time to first token (p50 %(ttft_p50_ms)s, p95 %(ttft_p95_ms)s) is mostly queueing: queue "
        "wait p50 %(queue_wait_p50_ms)s, p95 %(queue_wait_p95_ms)s, against prefill p50 "
        "%(prefill_p50_ms)s (X8: TTFT is not prefill)."
    ),
    "ttft_by_context_computation": gettext_lazy(
        "The time to first token (p50 %(ttft_p50_ms)s, p95 %(ttft_p95_ms)s) is mostly context "
        "computation: prefill p50 %(prefill_p50_ms)s, p95 %(prefill_p95_ms)s, with a queue wait of p50 "
        "%(queue_wait_p50_ms)s."
    ),
    "ttft_by_model_load": gettext_lazy(
        "The time to first token (p50 %(ttft_p50_ms)s) is mostly loading of the model (%(share)s of it)."
    ),
    "ttft_by_network": gettext_lazy(
        "The time to first token (p50 %(ttft_p50_ms)s) is mostly network (%(share)s of it)."
    ),
    "ttft_by_throttling": gettext_lazy(
        "The time to first token (p50 %(ttft_p50_ms)s) is mostly throttling by the service (%(share)s of it)."
    ),
    "prefill_waits_between_chunks": gettext_lazy(
        "%(share)s of the prefill time is not computation but waiting between chunks for other requests' "
        "steps."
    ),
    "decode_stalls": gettext_lazy(
        "%(share)s of the decode time is stall: the request waited while the engine computed for others."
    ),
    "throughput_and_tpot_agree": gettext_lazy(
        "%(output_tokens_per_second)s and %(tpot_p50_ms)s per output token do not contradict each other: "
        "together they mean about %(decoding_at_once)s requests decoding at once."
    ),
    "generation_speed_not_observed": gettext_lazy("The time per output token was not observed."),
    "preempted_for_memory": gettext_lazy(
        "Requests were pushed out of the batch for lack of memory and waited %(requeue_wait_ms)s in all "
        "to come back."
    ),
    "kv_pool_full": gettext_lazy(
        "The KV cache was used up to %(kv_usage_peak)s: memory ran short before compute (X4)."
    ),
    "throttled": gettext_lazy("The service refused %(n)s of %(attempted)s requests by rate limit."),
    "requests_failed": gettext_lazy(
        "%(n)s of %(attempted)s requests were unsuccessful and are in no percentile."
    ),
    "cancelled_on_purpose": gettext_lazy(
        "%(n)s of %(attempted)s requests were interrupted on purpose and are in no percentile."
    ),
    "thin_sample": gettext_lazy("With %(n)s samples the p99 is thin: it rests on less than one request."),
}
ADVICE = {
    "raise_limits_or_slow_down": gettext_lazy(
        "Ask for a higher rate limit or send less at once: %(n)s requests were refused."
    ),
    "free_memory_first": gettext_lazy(
        "Make room in the KV cache first (shorter contexts, a larger pool, fewer sequences at once): as "
        "long as memory is short, a larger batch only queues more."
    ),
    "change_batching": gettext_lazy(
        "Change the batching: a larger batch admits waiting requests sooner; watch the tail while doing so."
    ),
    "route_or_add_capacity": gettext_lazy(
        "Route part of the load to another replica or model, or add capacity: %(queue_share)s of the "
        "time is waiting."
    ),
    "shorten_prompt": gettext_lazy(
        "Shorten the prompt: prefill, %(prefill_share)s of the time, grows with the context."
    ),
    "share_prefixes": gettext_lazy(
        "Put what prompts share at their beginning, so that the prefix cache can serve it; now it serves "
        "%(cache_hit_rate)s of the prompt tokens."
    ),
    "give_decode_more": gettext_lazy(
        "Give decode more resources or shorten the answers; a shorter prompt would not help (X11): "
        "decode is %(decode_share)s of the time."
    ),
    "smaller_prefill_chunks": gettext_lazy(
        "Use smaller prefill chunks or separate long prompts: %(stall_share)s of decode is waiting for "
        "others' steps."
    ),
    "observe_the_server": gettext_lazy(
        "Let the server tell its queue and prefill times (its metrics endpoint or per-request metrics), "
        "then run again."
    ),
}
REASONS = {
    "dispatched_late": gettext_lazy(
        "The client itself sent requests late: p99 %(p99_ms)s, limit %(limit_ms)s, so the figures cannot "
        "be trusted."
    ),
    "loop_lagged": gettext_lazy(
        "The client itself was too busy to stamp in time: p99 %(p99_ms)s, limit %(limit_ms)s, so the "
        "figures cannot be trusted."
    ),
    "nothing_measured": gettext_lazy("No request was measured."),
    "none_succeeded": gettext_lazy("None of %(attempted)s requests succeeded."),
    "first_token_not_observed": gettext_lazy(
        "The first token was not observed because the answers were not streamed: M1 and M2 are missing."
    ),
    "interrupted": gettext_lazy("The run was interrupted before its load had ended."),
    "measurement": gettext_lazy("The measurement is not valid: %(text)s"),
    "metric_set_incomplete": gettext_lazy(
        "The metric set “%(metric_set)s” is incomplete; missing: %(missing)s."
    ),
    "not_complete": gettext_lazy("The run is not complete (%(state)s), so it does not count."),
}

#: what the history calls the verbs of this app
VERBS = {
    "run.queued": gettext_lazy("queued the run"),
    "run.preparing": gettext_lazy("prepares the run"),
    "run.warming": gettext_lazy("warms up"),
    "run.measuring": gettext_lazy("measures"),
    "run.finalising": gettext_lazy("finalises the run"),
    "run.complete": gettext_lazy("completed the run"),
    "run.failed": gettext_lazy("ended the run as failed"),
    "run.cancelled": gettext_lazy("cancelled the run"),
    "run.interrupted": gettext_lazy("ended the run as interrupted"),
    "run.cancel_requested": gettext_lazy("asked to cancel the run"),
    "run.superseded": gettext_lazy("superseded the run"),
    "run.ingested": gettext_lazy("submitted a result"),
    "run.artifact_verified": gettext_lazy("delivered a file of the result"),
    "matrix.started": gettext_lazy("started the matrix"),
    "target.created": gettext_lazy("added the target"),
    "target.updated": gettext_lazy("changed the target"),
}


def verdict_of(run: Run) -> Verdict | None:
    """The run's diagnosis in words; None while there is none."""
    found = run.diagnosis
    if not found or "where" not in found:
        return None
    shares = found.get("shares") or {}
    return Verdict(
        where=found["where"],
        headline=_headline(found["where"], shares),
        shares=tuple(Share(part, str(label), shares.get(part)) for part, label in PARTS.items()),
        findings=tuple(_sentence(FINDINGS, item) for item in found.get("findings") or ()),
        advice=tuple(_sentence(ADVICE, item) for item in found.get("advice") or ()),
    )


def _headline(where: str, shares: Mapping[str, float | None]) -> str:
    """The verdict in one sentence; the stages with their shares where none has half of the time."""
    stages = [(shares.get(part) or 0.0, part) for part in STAGES.values()]
    share_there = shares.get(STAGES.get(where, "")) or 0.0
    headlines = HEADLINES_BELOW_HALF if 0 < share_there < CLEAR_SHARE else HEADLINES
    ranked = (
        _("%(stage)s %(share)s") % {"stage": PARTS[part], "share": shown("share", share)}
        for share, part in sorted(stages, reverse=True)
        if share > 0
    )
    return str(headlines.get(where, where)) % {"ranked": _(", ").join(ranked)}


def validity_sentences(run: Run) -> list[Sentence]:
    """Why the run does not count, in words; empty for a valid one."""
    return [_sentence(REASONS, item) for item in run.validity_reasons]


def validity_texts(run: Run) -> list[str]:
    """The same as plain sentences."""
    return [sentence.text for sentence in validity_sentences(run)]


def _sentence(templates: Mapping[str, Any], item: Mapping[str, Any]) -> Sentence:
    code, figures = str(item.get("code")), item.get("figures") or {}
    template = templates.get(code)
    area = str(item.get("area") or "")
    return Sentence(
        code=code,
        text=str(template) % _Shown(figures) if template is not None else code,
        figures=figures,
        stage=str(item.get("stage") or ""),
        area=str(AREAS.get(area, area)),
    )


class _Shown(dict[str, str]):
    """The figures of one code as text with their unit, by name; "—" for what was not observed."""

    def __init__(self, figures: Mapping[str, Any]) -> None:
        super().__init__({name: shown(name, value) for name, value in figures.items()})

    def __missing__(self, name: str) -> str:
        return "—"


def shown(name: str, value: Any) -> str:
    """One figure with the unit that its name states."""
    if value is None:
        return "—"
    if name in _NAMED:
        return _NAMED[name](value)
    if isinstance(value, str):
        return value
    if name.endswith("_ms"):
        return _("%(value)s ms") % {"value": _number(value)}
    if name.endswith("_per_second"):
        return _("%(value)s tokens/s") % {"value": _number(value)}
    share = name.endswith(("share", "_rate", "_peak"))
    return f"{_number(value * 100)} %" if share else _number(value)


def _label_of(choices: type[TextChoices]) -> Callable[[str], str]:
    return lambda value: str(choices(value).label) if value in choices.values else value


_NAMED: dict[str, Callable[[Any], str]] = {
    "missing": lambda codes: _(", ").join(str(METRIC_NAMES.get(code, code)) for code in codes),
    "metric_set": _label_of(MetricSet),
    "state": _label_of(RunState),
}


def _number(value: float) -> str:
    """At most three significant digits below 100, whole numbers above."""
    if isinstance(value, int):
        return number_format(value)
    size = abs(value)
    decimals = 0 if size >= 100 else 1 if size >= 10 else 2
    return number_format(round(value, decimals), decimal_pos=decimals)
