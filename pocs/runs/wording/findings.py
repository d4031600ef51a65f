"""What a verdict found, and where it says that the time goes, in words."""

from django.utils.translation import gettext_lazy

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

#: where time can go, in the order in which a request passes (`inference.diagnosis.shares.PLACES`)
PLACES = {
    "dispatch": gettext_lazy("Client (dispatch)"),
    "throttling": gettext_lazy("Throttling"),
    "network": gettext_lazy("Network"),
    "queue": gettext_lazy("Queue"),
    "model_load": gettext_lazy("Model load"),
    "prefill": gettext_lazy("Prefill"),
    "decode": gettext_lazy("Decode"),
    "stalls": gettext_lazy("Stalls"),
    "preemption": gettext_lazy("Preemption"),
    "unexplained": gettext_lazy("Unexplained"),
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
    "prefix_shorter_than_block": gettext_lazy(
        "The prompts share their first %(shared_prefix_tokens)s tokens, but a block of the cache holds "
        "%(block_tokens)s and only whole blocks are found again: the hit rate is %(cache_hit_rate)s."
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
