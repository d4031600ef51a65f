"""S2, long context: what a thousand tokens of context cost, and what of them came from the cache."""

from collections.abc import Sequence

from inference.kinds.base import Findings, Kind, one_load
from inference.kinds.course import Course
from inference.kinds.figures import middle, ratio, spread, successes
from inference.records import RequestRecord
from inference.stats import cache_hit_rate


def judge(course: Course, records: Sequence[RequestRecord]) -> Findings:
    good = successes(records)
    by_prefill = [per_1k(record, record.intervals_ms.get("prefill")) for record in good]
    by_ttft = [per_1k(record, record.ttft_ms) for record in good]
    seen = any(value is not None for value in by_prefill)
    found = Findings(
        facts={
            **spread("input", (record.input_tokens for record in good), unit="tokens"),
            **spread("prefill_per_1k_tokens", by_prefill),
            **spread("ttft_per_1k_tokens", by_ttft),
            "prefill_share": middle(
                ratio(record.intervals_ms.get("prefill"), record.e2e_ms) for record in good
            ),
            "cached_share": cache_hit_rate(good),
            "preempted_requests": sum(bool(record.detail.get("preempted_ns")) for record in good),
        }
    )
    facts, source = found.facts, "prefill" if seen else "ttft"
    if facts[f"{source}_per_1k_tokens_n"]:
        found.say(
            "long_context_prefill" if seen else "long_context_first_token",
            n=facts[f"{source}_per_1k_tokens_n"],
            input_max_tokens=facts["input_max_tokens"],
            p50_ms=facts[f"{source}_per_1k_tokens_p50_ms"],
            p95_ms=facts[f"{source}_per_1k_tokens_p95_ms"],
        )
    return found


def per_1k(record: RequestRecord, took_ms: float | None) -> float | None:
    """ms per thousand tokens that were really computed; None where that is not known or nothing was."""
    computed = (record.input_tokens or 0) - (record.cached_tokens or 0)
    return None if took_ms is None or computed <= 0 else took_ms / computed * 1000


KIND = Kind(name="long_context", code="S2", procedure=one_load(judge))
