"""Actions, techniques, risks and goals in words."""

from django.utils.translation import gettext_lazy

AREAS = {
    "context": gettext_lazy("context governance"),
    "cache": gettext_lazy("cache management"),
    "routing": gettext_lazy("model routing"),
    "capacity": gettext_lazy("GPU capacity"),
}
ADVICE = {
    "raise_limits_or_slow_down": gettext_lazy(
        "Ask for a higher rate limit or send less at once: %(n)s requests were refused."
    ),
    "free_memory_first": gettext_lazy(
        "Make room in the KV cache first (shorter contexts, a larger pool, fewer sequences at once): as "
        "long as memory is short, a larger batch only queues more."
    ),
    "page_the_cache": gettext_lazy(
        "Use smaller or paged cache blocks: %(kv_fragmentation_peak)s of the slots in held blocks carried no "
        "token."
    ),
    "quantise_the_cache_or_weights": gettext_lazy(
        "Quantise the weights or the KV cache to make room for more sequences (KV use at its peak "
        "%(kv_usage_peak)s, preemptions %(preemptions)s)."
    ),
    "change_batching": gettext_lazy(
        "Change the batching: a larger batch admits waiting requests sooner; watch the tail while doing so."
    ),
    "route_load": gettext_lazy(
        "Route part of the load to another replica or a smaller model: %(queue_share)s of the time is "
        "waiting."
    ),
    "add_capacity": gettext_lazy(
        "More capacity is backed by evidence: the device was used to %(utilisation)s on average while up to "
        "%(waiting_peak)s requests waited, and memory was not what was short."
    ),
    "measure_the_device_first": gettext_lazy(
        "Measure the device's utilisation before asking for more capacity: %(queue_share)s of the time is "
        "waiting, but nothing here says that the device was busy (X7)."
    ),
    "keep_the_model_loaded": gettext_lazy(
        "Keep the model loaded or route to a replica that has it: %(load_share)s of the queue wait was "
        "loading."
    ),
    "shorten_prompt": gettext_lazy(
        "Shorten the prompt: prefill, %(prefill_share)s of the time, grows with the context."
    ),
    "share_prefixes": gettext_lazy(
        "Put what prompts share at their beginning, so that the prefix cache can serve it; now it serves "
        "%(cache_hit_rate)s of the prompt tokens."
    ),
    "prefix_shorter_than_block": gettext_lazy(
        "Lengthen the shared beginning beyond %(block_tokens)s tokens, or set smaller blocks: at present "
        "%(shared_prefix_tokens)s shared tokens fill none, so that the cache, though on, finds nothing."
    ),
    "smaller_prefill_chunks": gettext_lazy(
        "Use smaller prefill chunks or separate long prompts: %(stall_share)s of decode is waiting for "
        "others' steps."
    ),
    "give_decode_more": gettext_lazy(
        "Give decode a larger part of each step (fewer prompts computed beside it, a faster decode path); a "
        "shorter prompt would not help (X11): decode is %(decode_share)s of the time."
    ),
    "guess_tokens": gettext_lazy(
        "Try speculative decoding: with %(running_mean)s requests in the batch on average there is room to "
        "compute guesses."
    ),
    "quantise_weights": gettext_lazy(
        "Quantise the weights: each token reads them once, and decode is %(decode_share)s of the time."
    ),
    "shorten_answers": gettext_lazy(
        "Shorten the answers: decode grows with their length (median %(output_tokens_p50)s tokens)."
    ),
    "look_at_the_network": gettext_lazy(
        "Look at the way between client and service: %(network_share)s of the time is network."
    ),
    "observe_the_server": gettext_lazy(
        "Let the server tell its queue and prefill times (its metrics endpoint or per-request metrics), "
        "then run again."
    ),
}
TECHNIQUES = {
    "T1": gettext_lazy("quantisation (T1)"),
    "T2": gettext_lazy("speculative decoding (T2)"),
    "T3": gettext_lazy("PagedAttention (T3)"),
    "T4": gettext_lazy("batching (T4)"),
    "T5": gettext_lazy("cache reuse (T5)"),
    "T6": gettext_lazy("model routing (T6)"),
    "T7": gettext_lazy("model compression and resource pools (T7)"),
    "T8": gettext_lazy("batching, decoding strategy and queue (T8)"),
    "T9": gettext_lazy("KV-cache management (T9)"),
}
RISKS = {
    "accuracy": gettext_lazy("answers may change"),
    "fragmentation": gettext_lazy("the cache may fragment"),
    "scheduling": gettext_lazy("scheduling becomes more complex"),
    "rollback": gettext_lazy("harder to roll back"),
    "tail": gettext_lazy("the tail may suffer (Q7)"),
    "memory": gettext_lazy("it takes memory from the cache"),
}
GOALS = {
    "cost": gettext_lazy("lower cost"),
    "latency": gettext_lazy("lower latency"),
    "long_context": gettext_lazy("long contexts"),
    "stability": gettext_lazy("stability"),
}
