"""S1, short requests: what a request costs before its first token when there is little to compute."""

from collections.abc import Sequence

from inference.kinds.base import Findings, Kind, one_load
from inference.kinds.course import Course
from inference.kinds.figures import middle, ratio, spread, successes
from inference.records import RequestRecord


def judge(course: Course, records: Sequence[RequestRecord]) -> Findings:
    good = successes(records)
    found = Findings(
        facts={
            **spread("input", (record.input_tokens for record in good), unit="tokens"),
            **spread("ttft", (record.ttft_ms for record in good)),
            **spread("e2e", (record.e2e_ms for record in good)),
            "first_token_share": middle(ratio(record.ttft_ms, record.e2e_ms) for record in good),
        }
    )
    if found.facts["first_token_share"] is not None:
        found.say(
            "short_request_first_token",
            n=found.facts["ttft_n"],
            first_token_share=found.facts["first_token_share"],
            ttft_p95_ms=found.facts["ttft_p95_ms"],
        )
    return found


KIND = Kind(name="short_request", code="S1", procedure=one_load(judge))
