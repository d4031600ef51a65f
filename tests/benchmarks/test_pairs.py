"""Pairs of runs, their ratios, and the tables made of them."""

import pytest

from benchmarks import switches, tables, workloads
from benchmarks.limits import Limit
from benchmarks.pairs import Pair, Spread, latencies, measure, percentile
from benchmarks.peers.protocol import Job, Result, Stamps
from benchmarks.worker import Measurement


def measured(wall_s: float, cpu_s: float = 1.0, load: float = 0.0, first: tuple[int, ...] = (7,), **more):
    result = Result(wall_s=wall_s, output_tokens=1, first_ids=list(first), **more)
    return Measurement(result=result, cpu_s=cpu_s, load=load)


def pair(*runs: tuple[float, float]) -> Pair:
    return Pair(
        "single",
        "4 in, 2 out",
        "llama.cpp",
        "bfloat16",
        "int8",
        100,
        [measured(own, load=0.5) for own, _ in runs],
        [measured(other, cpu_s=2.0, load=2.0) for _, other in runs],
    )


def test_the_ratio_is_of_runs_next_to_each_other():
    found = pair((1.0, 2.0), (10.0, 10.0), (1.0, 3.0))
    assert found.ratio == Spread(2.0, 1.0, 3.0)
    assert found.product_rate == Spread(100.0, 10.0, 100.0)
    assert found.cpu_ratio.median == 2.0
    assert found.load == (0.5, 2.0)


def test_first_tokens_tell_whether_both_compute_the_same():
    found = pair((1.0, 1.0))
    found.product, found.other = [measured(1.0, first=(1, 2))], [measured(1.0, first=(1, 3))]
    assert found.agreement == 0.5


def test_both_sides_run_in_turn_after_a_short_warm_up(monkeypatch):
    order: list[tuple[str, int]] = []

    class Recorder:
        def __init__(self, name: str) -> None:
            self.name = name

        def run(self, job: Job) -> Measurement:
            order.append((self.name, job.out))
            return measured(1.0)

    empty = Pair("single", "", "peer", "float32", "float32", 1)
    measure(empty, Recorder("A"), Recorder("B"), Job(prompts=[[1] * 20], out=9), 2)
    assert order == [("A", 4), ("B", 4), ("A", 9), ("B", 9), ("A", 9), ("B", 9)]
    assert len(empty.product) == len(empty.other) == 2


@pytest.mark.parametrize(("share", "value"), [(0.5, 2), (0.99, 4), (0.25, 1), (1.0, 4)])
def test_percentiles_are_values_that_were_observed(share, value):
    assert percentile([4, 1, 3, 2], share) == value


def test_latencies_are_taken_over_all_requests():
    runs = [measured(1.0, ttft_ms=[1.0, 2.0], tpot_ms=[5.0]), measured(1.0, ttft_ms=[9.0], tpot_ms=[6.0])]
    assert latencies(runs) == {
        "ttft_p50_ms": 2.0,
        "ttft_p99_ms": 9.0,
        "tpot_p50_ms": 5.0,
        "tpot_p99_ms": 6.0,
    }


def test_stamps_give_the_first_token_and_the_mean_gap():
    stamps = Stamps(10.0, [10.5, 11.0, 12.5])
    assert (stamps.ttft_ms, stamps.tpot_ms) == (500.0, 1000.0)
    assert Stamps(0.0, [1.0]).tpot_ms is None


def test_a_row_names_both_types_the_limit_and_the_share_reached():
    cells = dict(
        zip(
            tables.PAIR_HEAD,
            tables.pair_row(pair((1.0, 2.0)), Limit(compute_s=0.25, traffic_s=0.5)),
            strict=True,
        )
    )
    assert cells["type"] == "bfloat16, peer int8"
    assert cells["limit tokens/s"] == "200 (memory)"
    assert cells["reached"] == "50%"
    assert cells["ratio"] == "2.00"


def test_tables_are_aligned_or_markdown():
    assert tables.text(("a", "b"), [("1", "22")], markdown=True) == "| a | b |\n|---|---|\n| 1 | 22 |"
    assert tables.text(("a", "bb"), [("11", "2")], markdown=False).splitlines() == [
        "a   bb",
        "--  --",
        "11  2",
    ]


@pytest.mark.parametrize("name", workloads.NAMES)
def test_a_workload_is_the_same_every_time_and_shrinks(name):
    full, again, short = workloads.build(name), workloads.build(name), workloads.build(name, 0.1)
    assert full == again
    assert len(short.job.prompts) == len(full.job.prompts)
    assert short.counted < full.counted
    assert all(
        prompt[: full.job.shared] == full.job.prompts[0][: full.job.shared] for prompt in full.job.prompts
    )


def test_the_workloads_are_those_agreed_on():
    sizes = {name: workloads.build(name).job for name in workloads.NAMES}
    assert {name: (len(job.prompts), job.out, job.shared) for name, job in sizes.items()} == {
        "mixed": (32, 64, 0),
        "decode": (32, 128, 0),
        "prefix": (32, 32, 512),
        "prefill": (8, 1, 0),
        "single": (1, 128, 0),
    }
    assert all(32 <= len(prompt) <= 512 for prompt in sizes["mixed"].prompts)
    assert {len(prompt) for prompt in sizes["prefix"].prompts} == {544}


def test_poisson_arrivals_have_the_rate_of_their_share_of_the_capacity():
    mixed = workloads.build("mixed")
    job, rate = workloads.poisson(mixed, capacity_tokens_per_s=640.0, count=400)
    assert rate == pytest.approx(7.0)
    assert job.arrivals_s is not None
    assert job.arrivals_s == sorted(job.arrivals_s)
    assert job.arrivals_s[-1] / 399 == pytest.approx(1 / 7.0, rel=0.2)


def test_each_switch_changes_one_thing_and_a_draft_only_where_there_is_one(tmp_path):
    plain = switches.cases(None)
    assert all(len(switch.options) == 1 for switch in plain)
    assert [one for one in switches.cases(tmp_path) if one not in plain] == [
        switches.Switch({"speculate": f"draft:{tmp_path}"}, ("quoting", "writing", "decode"))
    ]
