"""Servers are recognised from what they say, and the names of their families are read old and new."""

import json
from typing import Any

import pytest

from inference.targets.dialects import DIALECTS, GENERIC, named, phases_of_answer, recognise
from inference.targets.dialects.base import Answer, Evidence
from inference.targets.server_metrics import read
from inference.telemetry.prometheus import family_names

from .recorded import LLAMA, VLLM, exchange, page

NOTHING = Answer(404, {}, b"")


def answer(content: Any, **headers: str) -> Answer:
    return Answer(200, headers, json.dumps(content).encode())


def listed(owner: str = "me") -> Answer:
    return answer({"data": [{"id": "m", "owned_by": owner}]})


@pytest.mark.parametrize(
    ("models", "probes", "families", "name", "version"),
    [
        (listed("vllm"), {"/version": answer({"version": "0.32.0"})}, "", "vllm", "0.32.0"),
        (
            listed(),
            {"/version": answer({"version": "0.6.1"})},
            "vllm:num_requests_running 0",
            "vllm",
            "0.6.1",
        ),
        (listed(), {"/get_server_info": answer({"tp_size": 1, "version": "0.5.2"})}, "", "sglang", "0.5.2"),
        (listed(), {}, "sglang_num_running_reqs 1", "sglang", None),
        (
            listed(),
            {"/info": answer({"model_id": "x", "max_concurrent_requests": 128, "version": "3.0.0"})},
            "",
            "tgi",
            "3.0.0",
        ),
        (listed(), {}, "tgi_queue_size 4", "tgi", None),
        (answer({}, server="llama.cpp"), {}, "", "llama_cpp", None),
        (
            listed(),
            {"/props": answer({"default_generation_settings": {}, "build_info": "b1"})},
            "",
            "llama_cpp",
            "b1",
        ),
        (listed("library"), {"/api/version": answer({"version": "0.9.0"})}, "", "ollama", "0.9.0"),
        (listed(), {"/version": answer({"version": "1.0"})}, "", "generic", None),  # anybody may have one
        (NOTHING, {"/props": answer([]), "/info": Answer(200, {}, b"<html>")}, "up 1", "generic", None),
    ],
)
def test_a_server_is_recognised_from_what_it_says(
    models: Answer, probes: dict[str, Answer], families: str, name: str, version: str | None
) -> None:
    dialect, label = recognise(Evidence(models, probes, family_names(families)))
    assert (dialect.name, label["name"], label["version"]) == (name, name, version)
    assert label["found_from"]


def test_the_recorded_servers_are_recognised() -> None:
    vllm = Evidence(
        Answer(*exchange(f"{VLLM}/models")),
        {"/version": Answer(*exchange(f"{VLLM}/version"))},
        family_names(page(f"{VLLM}/load/metrics_after")),
    )
    found, label = recognise(vllm)
    assert (found.name, label["version"]) == ("vllm", "0.32.0")
    assert len(label["found_from"]) == 3
    assert recognise(Evidence(Answer(*exchange(f"{LLAMA}/models")), {}))[0].name == "llama_cpp"
    assert recognise(Evidence(Answer(*exchange("llama-cpp/python/models")), {}))[0] is GENERIC


def test_a_name_is_found_again_and_an_unknown_one_is_generic() -> None:
    assert [named(dialect.name) for dialect in DIALECTS] == list(DIALECTS)
    assert named("teapot") is GENERIC


@pytest.mark.parametrize(
    ("dialect", "text", "found"),
    [
        ("vllm", "vllm:gpu_cache_usage_perc 0.5", {"kv_usage": 0.5}),
        ("vllm", "vllm:gpu_cache_usage_perc 0.5\nvllm:kv_cache_usage_perc 0.25", {"kv_usage": 0.25}),
        (
            "vllm",
            'vllm:kv_cache_usage_perc{engine="0"} 0.9\nvllm:kv_cache_usage_perc{engine="1"} 0.7',
            {"kv_usage": 0.9},  # shares of two engines are never added
        ),
        ("sglang", "sglang_num_running_reqs 2\nsglang:num_queue_reqs 1", {"running": 2.0, "waiting": 1.0}),
        ("tgi", "tgi_queue_size 4\ntgi_batch_current_size 8", {"waiting": 4.0, "running": 8.0}),
        (
            "llama_cpp",
            "llamacpp:requests_processing 1\nllamacpp:requests_deferred 0",
            {"running": 1.0, "waiting": 0.0},
        ),
        ("generic", "vllm:kv_cache_usage_perc 0.5", {}),
        ("vllm", "# TYPE vllm:num_requests_running counter\nvllm:num_requests_running 3", {}),  # TYPE decides
    ],
)
def test_gauges_are_read_under_old_and_new_names(dialect: str, text: str, found: dict[str, float]) -> None:
    for whole in (True, False):
        assert dict(read(text, named(dialect), whole=whole).gauges) == found


def test_a_histogram_whose_name_says_total_is_one() -> None:
    scrape = read(page(f"{VLLM}/load/metrics_after"), named("vllm"))
    assert scrape.growths["step_tokens"].count == 620.0
    assert scrape.constants == {"kv_pool_bytes": 1073741824, "kv_block_tokens": 128, "kv_blocks_total": 364}


def test_a_sample_reads_the_same_figures_as_the_whole_page() -> None:
    for name, dialect in (
        (f"{VLLM}/load/metrics_during_2", "vllm"),
        (f"{LLAMA}/load/metrics_after", "llama_cpp"),
    ):
        whole, light = (read(page(name), named(dialect), at_ns=1, whole=whole) for whole in (True, False))
        assert light.gauges == whole.gauges
        assert {key: (one.count, one.total) for key, one in light.growths.items()} == {
            key: (one.count, one.total) for key, one in whole.growths.items()
        }


def test_the_one_stage_of_sglang_that_is_prefill() -> None:
    text = """# TYPE sglang:per_stage_req_latency_seconds histogram
sglang:per_stage_req_latency_seconds_sum{stage="prefill_forward"} 3
sglang:per_stage_req_latency_seconds_count{stage="prefill_forward"} 2
sglang:per_stage_req_latency_seconds_sum{stage="request_process"} 90
sglang:per_stage_req_latency_seconds_count{stage="request_process"} 9
"""
    growth = read(text, named("sglang")).growths["prefill_ms"]
    assert (growth.count, growth.total) == (2.0, 3.0)


def test_phases_come_with_the_answer_whoever_sent_it() -> None:
    vllm = phases_of_answer({"metrics": {"queue_time_ms": 4.0, "time_to_first_token_ms": 70.0}})
    assert (vllm.queue_ms, vllm.prefill_ms) == (4.0, 70.0)
    assert phases_of_answer({"timings": {"prompt_ms": 12}}).prefill_ms == 12.0
    ollama = phases_of_answer({"ollama": {"prompt_eval_duration": 5_000_000, "load_duration": 2_000_000}})
    assert (ollama.prefill_ms, ollama.load_ms) == (5.0, 2.0)
    assert phases_of_answer({"headers": {"x-queue-time": "7"}}).queue_ms == 7.0
    nonsense = phases_of_answer({"metrics": "x", "timings": [1], "ollama": None})
    assert (nonsense.queue_ms, nonsense.prefill_ms) == (None, None)
