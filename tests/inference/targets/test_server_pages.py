"""Pages of metrics that are there, missing, huge, slow or something else, along whole measurements."""

from typing import Any

import pytest

from inference.load.generator import LoadPlan
from inference.load.session import measure
from inference.targets import server_pages
from inference.targets.openai import OpenAITarget

from .conftest import request
from .fake_server import FakeServer, Pages, Script, answer

MODELS = {"data": [{"id": "m", "owned_by": "vllm"}]}


@pytest.fixture(autouse=True)
def short_settling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_pages, "SETTLE_EVERY_S", 0.01)


class FakeVllm:
    """Counts answered requests as vLLM's page does; 10 ms of queue and 20 ms of prefill each."""

    def __init__(self) -> None:
        self.answered = 1000  # earlier traffic

    def choose(self, body: dict[str, Any], n: int) -> Script:
        self.answered += 1
        return Script(answer(["one ", "two"], first_ms=35, gap_ms=2))

    def metrics(self) -> Script:
        n = self.answered
        lines = [
            "# TYPE vllm:kv_cache_usage_perc gauge",
            "vllm:kv_cache_usage_perc 0.25",
            "# TYPE vllm:num_requests_waiting gauge",
            "vllm:num_requests_waiting 1",
            "# TYPE vllm:prefix_cache_queries_total counter",
            f"vllm:prefix_cache_queries_total {100 * n}",
            "# TYPE vllm:prefix_cache_hits_total counter",
            f"vllm:prefix_cache_hits_total {40 * n}",
            "# TYPE vllm:request_success_total counter",
            f'vllm:request_success_total{{finished_reason="stop"}} {n}',
            'vllm:cache_config_info{block_size="16",kv_cache_memory_bytes="4096"} 1',
        ]
        for name, seconds in (("request_queue_time", 0.01), ("request_prefill_time", 0.02)):
            family = f"vllm:{name}_seconds"
            lines += [
                f"# TYPE {family} histogram",
                f'{family}_bucket{{le="0.3"}} {n}',
                f'{family}_bucket{{le="+Inf"}} {n}',
                f"{family}_sum {n * seconds}",
                f"{family}_count {n}",
            ]
        return Script([(0, "\n".join(lines).encode())], content_type="text/plain")

    @property
    def pages(self) -> Pages:
        return {"/metrics": self.metrics, "/version": lambda: json_page(b'{"version": "0.32.0"}')}


def json_page(body: bytes) -> Script:
    return Script([(0, body)], content_type="application/json")


async def measured(server: FakeServer, *, warmup: int = 0, n: int = 4, **options: Any) -> dict[str, Any]:
    options = {"server_metrics_url": "auto", **options}
    target = OpenAITarget(server.url, "m", **options)
    info = await target.open()
    try:
        plan = LoadPlan(concurrency=2, warmup=warmup)
        session = await measure(target, info, [request(i) for i in range(n)], plan)
    finally:
        await target.close()
    return session.summary


async def test_a_plain_vllm_fills_queue_wait_memory_and_cache_of_its_own_window() -> None:
    vllm = FakeVllm()
    async with FakeServer(vllm.choose, models=MODELS, pages=vllm.pages) as server:
        summary = await measured(server, warmup=3)
    told = summary["server"]
    assert told["dialect"]["name"] == "vllm"
    queue = told["times"]["queue_wait_ms"]
    assert (queue["n"], queue["p95_at_most"]) == (4, 300.0)  # neither earlier traffic nor the warm-up
    assert queue["mean"] == pytest.approx(10.0)
    assert told["counts"]["finished_requests"]["value"] == 4
    assert summary["cache_hit_rate"] == pytest.approx(0.4)
    assert summary["sources"]["cache_hit_rate"] == summary["sources"]["queue_wait_ms"] == "server aggregate"
    assert summary["sources"]["ttft_ms"] == "client"
    assert summary["memory"]["kv_usage_peak"] == 0.25
    assert (summary["memory"]["kv_pool_bytes"], summary["memory"]["kv_used_peak_bytes"]) == (4096, 1024)
    parts = told["before_first_token"]
    assert parts["rest_ms"] == pytest.approx(parts["client_ttft_ms"] - 30.0)
    assert told["notes"] == []


async def test_somebody_else_at_the_server_is_said() -> None:
    vllm = FakeVllm()

    def two(body: dict[str, Any], n: int) -> Script:
        vllm.answered += 1
        return vllm.choose(body, n)

    async with FakeServer(two, models=MODELS, pages=vllm.pages) as server:
        summary = await measured(server)
    note = next(note for note in summary["server"]["notes"] if note["code"] == "more_than_ours")
    assert note["figures"] == {"server": 8, "client": 4}


def pages_with(script: Script) -> Pages:
    return {"/metrics": lambda: script}


@pytest.mark.parametrize(
    ("script", "word"),
    [
        (Script([(0, b"not here")], status=404, content_type="text/plain"), "HTTP 404"),
        (Script([(0, b"<!doctype html><p>login")], content_type="text/html"), "HTML"),
        (json_page(b'{"up": true}'), "JSON"),
        (Script([(0, b"a" * 5000)], content_type="text/plain"), "larger than 4,096 bytes"),
        (
            Script([(5000, b"late")], content_type="text/plain", head_at_ms=5000),
            "did not answer within 0.05 s",
        ),
        (Script([(0, b"up 1\nvllm:renamed 3\n")], content_type="text/plain"), "none of the families of vLLM"),
    ],
)
async def test_a_page_that_gives_nothing_is_told_in_a_sentence_and_the_run_goes_on(
    script: Script, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_pages, "SCRAPE_TIMEOUT_S", 0.05 if "late" in str(script.writes) else 2.0)
    monkeypatch.setattr(server_pages, "MAX_PAGE_BYTES", 4096)
    choose = FakeVllm().choose
    async with FakeServer(choose, models=MODELS, pages=pages_with(script)) as server:
        summary = await measured(server)
    assert summary["succeeded"] == 4
    assert summary["cache_hit_rate"] is None
    assert word in summary["server"]["notes"][0]["text"]


async def test_a_page_that_comes_back_counts_again() -> None:
    vllm, broken = FakeVllm(), iter([False, False, True])

    def sometimes() -> Script:
        return Script([(0, b"")], status=500) if next(broken, False) else vllm.metrics()

    pages = vllm.pages | {"/metrics": sometimes}
    async with FakeServer(vllm.choose, models=MODELS, pages=pages) as server:
        summary = await measured(server)
    assert "scrapes_failed" in [note["code"] for note in summary["server"]["notes"]]


async def test_the_key_goes_to_its_own_server_only() -> None:
    vllm = FakeVllm()
    async with (
        FakeServer(vllm.choose, models=MODELS, pages=vllm.pages) as server,
        FakeServer(vllm.choose, pages=vllm.pages) as elsewhere,
    ):
        url = elsewhere.url.removesuffix("/v1") + "/metrics"
        await measured(server, api_key="sk-secret", server_metrics_url=url)
    assert all("authorization" not in headers for _, headers in elsewhere.got)
    assert any(path == "/metrics" for path, _ in elsewhere.got)
    assert all(headers["authorization"] == "Bearer sk-secret" for _, headers in server.got)


async def test_accelerators_are_read_from_an_exporter_of_their_own() -> None:
    vllm = FakeVllm()
    page = b"""# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0"} 80
DCGM_FI_DEV_GPU_UTIL{gpu="1"} 60
DCGM_FI_DEV_FB_USED{gpu="0"} 10
DCGM_FI_DEV_FB_FREE{gpu="0"} 30
"""
    dcgm = Script([(0, page)], content_type="text/plain")
    async with (
        FakeServer(vllm.choose, models=MODELS, pages=vllm.pages) as server,
        FakeServer(vllm.choose, pages=pages_with(dcgm)) as exporter,
    ):
        url = exporter.url.removesuffix("/v1") + "/metrics"
        summary = await measured(server, device_metrics_url=url)
    assert summary["engine"]["gpu_utilisation_mean"] == 0.8
    assert summary["memory"]["gpu_memory_used_peak_bytes"] == 10 * 2**20
