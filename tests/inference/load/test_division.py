"""A load divided among several generators: every request once, at its instant, with the same figures."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference.errors import InputError
from inference.load.division import divide, part_of
from inference.load.generator import LoadPlan
from inference.load.together import merged_checks
from inference.records import RequestRecord
from inference.requests import CancelRule, GenerationRequest
from inference.stats import summarise
from inference.validity import client_late
from inference.workload.arrivals import arrival_offsets_s


def talk(n: int, turns: int) -> list[GenerationRequest]:
    return [
        GenerationRequest(id=f"q{i}", prompt="x", follows=f"q{i - 1}" if i % turns else None)
        for i in range(n)
    ]


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(8, 60),
    turns=st.integers(1, 3),
    of=st.integers(1, 4),
    rate=st.sampled_from([None, 3.0]),
    warmup=st.integers(0, 5),
    seed=st.integers(0, 9),
)
def test_the_parts_are_the_plan(  # noqa: PLR0917 drawn values
    n: int, turns: int, of: int, rate: float | None, warmup: int, seed: int
) -> None:
    requests = talk(n * turns, turns)
    plan = LoadPlan(concurrency=7, rate=rate, arrival="poisson", warmup=warmup, seed=seed)
    parts = [part_of(part.packed()) for part in divide(requests, plan, of)]

    placed = {
        index: request for part in parts for index, request in zip(part.indices, part.requests, strict=True)
    }
    assert sorted(placed) == list(range(len(requests)))
    assert sum(len(part.indices) for part in parts) == len(requests)
    assert sum(part.plan.concurrency or 0 for part in parts) == 7
    assert sorted(index for part in parts for index in part.warming_indices) == list(range(warmup))
    for part in parts:
        ids = {request.id for request in part.requests}
        assert all(request.follows is None or request.follows in ids for request in part.requests)
        assert part.plan.open_loop == plan.open_loop
    if rate:
        firsts = requests[::turns]
        due = arrival_offsets_s(firsts, rate=rate, arrival="poisson", seed=seed)
        assert [placed[index * turns].arrival_s for index in range(n)] == due


def test_a_part_travels_with_everything_a_request_can_say() -> None:
    request = GenerationRequest(
        id="é",
        messages=({"role": "user", "content": "数\ud83d"},),
        stop=("a", "b"),
        cancel=CancelRule(phase="decode", after_tokens=3),
        logprobs=2,
        namespace="w",
    )
    [part] = divide([request], LoadPlan(timeout_s=3.0, warmup=1), 1)
    assert part_of(part.packed()) == part


def test_what_cannot_be_divided_is_refused() -> None:
    with pytest.raises(InputError, match="share a concurrency of 2"):
        divide(talk(9, 1), LoadPlan(concurrency=2), 3)
    with pytest.raises(InputError, match="share 2 requests"):
        divide(talk(2, 1), LoadPlan(), 3)


def record(index: int, ms: float) -> RequestRecord:
    sent = 1_000_000 * (index + 1)
    stamps: dict[str, int | list[int] | None] = {"sent_ns": sent, "finished_ns": sent + int(ms * 1e6)}
    return RequestRecord.from_json(
        dict.fromkeys(RequestRecord.__dataclass_fields__)
        | {"id": f"q{index}", "outcome": "success", "index": index, "warmup": False, "streamed": True}
        | {"stamps": stamps, "intervals_ms": {}, "flags": [], "server": {}, "detail": {}, "e2e_ms": ms}
        | {"ttft_ms": ms / 2, "reads": [[sent + 5, 1], [sent + int(ms * 1e6), 1]]}
    )


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(0.1, 1e5), min_size=1, max_size=50), st.data())
def test_the_merge_gives_the_summary_of_one_generator(times: list[float], data: st.DataObject) -> None:
    records = [record(i, ms) for i, ms in enumerate(times)]
    dealt: list[list[RequestRecord]] = [[], [], []]
    for one in records:
        dealt[data.draw(st.integers(0, 2))].append(one)
    merged = sorted((one for part in dealt for one in part), key=lambda one: one.index)
    assert summarise(merged) == summarise(records)


def test_the_late_and_the_lost_generator_are_named() -> None:
    fine = {"p99": 1.0, "p90": 1.0, "thin": False}
    checks = [
        {
            "number": 1,
            "of": 3,
            "lost": None,
            "dispatch_delay_ms": fine,
            "loop_lag_ms": fine,
            "cpu_share": 0.5,
        },
        {"number": 2, "of": 3, "lost": "was ended by SIGKILL"},
        {
            "number": 3,
            "of": 3,
            "dispatch_delay_ms": fine,
            "loop_lag_ms": fine | {"p99": 80.0},
            "cpu_share": 0.25,
        },
    ]
    merged = merged_checks(checks)
    assert (merged["cpu_share"], merged["loop_lag_ms"]["p99"]) == (0.75, 80.0)
    lost, late = client_late(merged)
    assert lost == "generator 2 of 3: it was ended by SIGKILL"
    assert late.startswith("generator 3 of 3: the client's event loop lagged: p99 80.0 ms")
