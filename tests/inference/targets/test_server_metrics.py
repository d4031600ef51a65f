"""What a server's counters say of one window: growth, restarts, frozen gauges, and who counts whom."""

from typing import Any

import pytest

from inference.targets.dialects import named
from inference.targets.server_metrics import ServerWindow, read
from inference.targets.server_summary import with_server

from .recorded import LLAMA, VLLM, page

MS = 1_000_000


def window(dialect: str, *pages: tuple[float, str]) -> ServerWindow:
    """A window fed with (ms, page)."""
    found = ServerWindow(named(dialect))
    for at_ms, text in pages:
        found.add(read(text, named(dialect), at_ns=int(at_ms * MS)))
    return found


def observed(dialect: str, *names: str) -> dict[str, Any]:
    found = window(dialect, *((1000.0 * i, page(name)) for i, name in enumerate(names))).observed()
    assert found is not None
    return found


def summary(**fields: Any) -> dict[str, Any]:
    return {"succeeded": 8, "attempted": 8, "cache_hit_rate": None, "target": {"kind": "http"}, **fields}


def told(found: dict[str, Any], **of_client: Any) -> dict[str, Any]:
    label = {"name": "vllm", "title": "vLLM", "version": "0.32.0", "found_from": ["owned_by"]}
    return with_server(summary(**of_client), {"dialect": label, "url": "http://x/metrics", "window": found})


def codes(result: dict[str, Any]) -> list[str]:
    return [note["code"] for note in result["server"]["notes"]]


def vllm_page(
    *, steps: int, running: int = 0, kv: float = 0.0, ttft: tuple[float, int] = (0.0, 0), finished: int = 0
) -> str:
    return f"""# TYPE vllm:num_requests_running gauge
vllm:num_requests_running {running}
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc {kv}
# TYPE vllm:iteration_tokens_total histogram
vllm:iteration_tokens_total_sum 9
vllm:iteration_tokens_total_count {steps}
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_sum {ttft[0]}
vllm:time_to_first_token_seconds_count {ttft[1]}
# TYPE vllm:request_success_total counter
vllm:request_success_total{{finished_reason="stop"}} {finished}
"""


def test_the_recorded_load_over_its_own_window() -> None:
    times = observed("vllm", f"{VLLM}/load/metrics_before", f"{VLLM}/load/metrics_after")["times"]
    assert times["prefill_ms"]["n"] == times["ttft_ms"]["n"] == 8
    assert times["prefill_ms"]["sum"] == pytest.approx(21_321.9, abs=0.1)
    assert times["ttft_ms"]["sum"] == pytest.approx(27_782.5, abs=0.1)
    assert times["queue_wait_ms"]["sum"] == pytest.approx(0.13, abs=0.01)
    assert times["queue_wait_ms"]["p95_at_most"] == 300.0  # the buckets say no more
    assert times["ttft_ms"]["p95_above"], times["ttft_ms"]["p95_at_most"] == (5000.0, 7500.0)


def test_waiting_for_a_running_step_is_a_part_of_its_own() -> None:
    found = observed("vllm", f"{VLLM}/load/metrics_before", f"{VLLM}/load/metrics_after")
    client = {"n": 8, "mean": 27_800 / 8, "p50": 1.0, "p95": 1.0}
    parts = told(found, ttft_ms=client)["server"]["before_first_token"]
    assert parts["before_scheduler_ms"] * 8 == pytest.approx(6460, abs=1)
    assert parts["outside_ms"] * 8 == pytest.approx(17.5, abs=0.1)
    assert (parts["n_client"], parts["n_server"]) == (8, 8)
    whole = parts["queue_wait_ms"] + parts["prefill_ms"] + parts["outside_ms"] + parts["before_scheduler_ms"]
    assert whole == pytest.approx(parts["client_ttft_ms"])
    assert parts["rest_ms"] == pytest.approx(parts["outside_ms"] + parts["before_scheduler_ms"])


def test_both_numbers_are_shown_with_source_and_n_and_never_averaged() -> None:
    """Case 7: earlier traffic in the counters, and two sides that differ."""
    before = vllm_page(steps=1000, ttft=(500.0, 4000), finished=4000)
    after = vllm_page(steps=2000, ttft=(500.0 + 480 * 0.0164, 4480), finished=4470)
    found = window("vllm", (0, before), (1000, after)).observed()
    assert found is not None
    result = told(
        found, ttft_ms={"n": 480, "mean": 47.0, "p50": 40.0, "p95": 90.0}, attempted=480, succeeded=480
    )
    row = result["server"]["beside_client"][0]
    assert (row["client"]["mean"], row["client"]["n"], row["client"]["source"]) == (47.0, 480, "client")
    assert row["server"]["mean"] == pytest.approx(16.4)
    assert (row["server"]["n"], row["server"]["source"]) == (480, "server aggregate")
    assert row["difference_ms"] == pytest.approx(30.6)
    assert "unequal_counts" in codes(result)
    text = next(note["text"] for note in result["server"]["notes"] if note["code"] == "unequal_counts")
    assert "vllm:time_to_first_token_seconds 480" in text
    assert "vllm:request_success_total 470" in text


def test_aborted_requests_are_in_some_families_only() -> None:
    found = observed(
        "vllm", f"{VLLM}/disconnect/in_decode_metrics_before", f"{VLLM}/disconnect/in_decode_metrics_after"
    )
    assert found["times"]["ttft_ms"]["n"] == 1
    assert found["counts"]["finished_requests"]["value"] == 0
    assert "unequal_counts" in codes(told(found))


def test_a_fallen_counter_is_a_restart_and_splits_the_window() -> None:
    one = window(
        "vllm",
        (0, vllm_page(steps=100, ttft=(10.0, 10), finished=10)),
        (500, vllm_page(steps=140, ttft=(14.0, 14), finished=14)),
        (1000, vllm_page(steps=3, ttft=(0.5, 1), finished=1)),
        (1500, vllm_page(steps=9, ttft=(1.5, 3), finished=3)),
    )
    found = one.observed()
    assert found is not None
    assert found["times"]["ttft_ms"]["n"] == 4 + 3
    assert found["times"]["ttft_ms"]["sum"] == pytest.approx(5500.0)
    result = told(found)
    assert "restarted" in codes(result)
    assert result["server"]["resets"][0]["at_ms"] == 1000.0


def test_frozen_gauges_say_since_when_and_move_again_with_the_next_request() -> None:
    """Case 9: all running requests were cut off; the gauges stay at 99 % and N running."""
    one = ServerWindow(named("vllm"))

    def add(at_ms: float, text: str) -> dict[str, Any]:
        return one.add(read(text, named("vllm"), at_ns=int(at_ms * MS)))

    assert "gauges_stale_ms" not in add(0, vllm_page(steps=5, running=4, kv=0.5))
    assert "gauges_stale_ms" not in add(500, vllm_page(steps=9, running=8, kv=0.99))
    assert "gauges_stale_ms" not in add(1000, vllm_page(steps=9, running=8, kv=0.99))
    frozen = add(2500, vllm_page(steps=9, running=8, kv=0.99))
    assert frozen["gauges_stale_ms"] == 2000.0
    found = one.observed()
    assert found is not None
    assert "gauges_stale" in codes(told(found))
    assert "gauges_stale_ms" not in add(3000, vllm_page(steps=10, running=0, kv=0.0))
    assert "gauges_stale_ms" not in add(9000, vllm_page(steps=10, running=0, kv=0.0))  # idle, and it says so


def test_the_hit_rate_is_of_the_window_and_in_tokens() -> None:
    found = observed("vllm", f"{VLLM}/prefix/metrics_before", f"{VLLM}/prefix/metrics_after")
    result = told(found)
    rate = result["server"]["cache_hit_rate"]
    assert (rate["hit_tokens"], rate["source"]) == (512.0, "server aggregate")
    assert result["cache_hit_rate"] == rate["value"] == 512 / rate["asked_tokens"]
    assert result["sources"]["cache_hit_rate"] == "server aggregate"
    kept = told(found, cache_hit_rate=0.25)  # what the answers themselves told is nearer
    assert (kept["cache_hit_rate"], kept["sources"]["cache_hit_rate"]) == (0.25, "server per request")


def test_no_hit_beside_a_block_longer_than_the_shared_prefix() -> None:
    """Case 10: both numbers are told, so that nobody advises to turn the cache on."""
    text = """# TYPE vllm:prefix_cache_queries_total counter
vllm:prefix_cache_queries_total {queries}
# TYPE vllm:prefix_cache_hits_total counter
vllm:prefix_cache_hits_total 0
vllm:cache_config_info{{block_size="784"}} 1
"""
    found = window("vllm", (0, text.format(queries=100)), (1, text.format(queries=4900))).observed()
    assert found is not None
    note = next(note for note in told(found)["server"]["notes"] if note["code"] == "prefix_below_block")
    assert note["figures"] == {"queries": 4800.0, "block_tokens": 784}


def test_preemptions_and_requests_that_waited_for_memory() -> None:
    preempted = observed("vllm", f"{VLLM}/preemption/metrics_before", f"{VLLM}/preemption/metrics_after")
    assert preempted["counts"]["preemptions"]["value"] == 3
    waited = observed("vllm", f"{VLLM}/kv_limited/metrics_before", f"{VLLM}/kv_limited/metrics_after")
    assert waited["times"]["queue_wait_ms"]["sum"] == pytest.approx(9400, abs=100)
    assert waited["counts"]["preemptions"]["value"] == 0


def test_llama_cpp_counts_seconds_without_requests() -> None:
    found = observed("llama_cpp", f"{LLAMA}/load/metrics_before", f"{LLAMA}/load/metrics_after")
    prefill = found["times"]["prefill_ms"]
    assert (prefill["n"], prefill["mean"]) == (None, None)
    assert prefill["sum"] == pytest.approx(2161.9, abs=0.1)
    result = told(found)
    assert result["cache_hit_rate"] == pytest.approx(100 / 476)  # computed 376, cached 100
    assert result["server"]["beside_client"] == []


def test_with_statistics_off_there_is_no_family_at_all() -> None:
    scrape = read(page(f"{VLLM}/log_stats_disabled/metrics"), named("vllm"))
    assert (dict(scrape.gauges), dict(scrape.growths)) == ({}, {})


def test_without_an_endpoint_only_the_sources_are_told() -> None:
    measured = {"ttft_ms": {"n": 3, "mean": 1.0}, "target": {"kind": "engine"}, "cache_hit_rate": 0.5}
    result = with_server(measured, None)
    assert result["server"] is None
    assert result["sources"]["ttft_ms"] == result["sources"]["cache_hit_rate"] == "engine"
    assert result["sources"]["queue_wait_ms"] is None
