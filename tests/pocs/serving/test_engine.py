"""The whole way with the real engine and a tiny model: answers, leaving, a run in between, another model."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2 as httpx
import openai
import pytest
from openai import OpenAI

from pocs.runs.models import Target
from pocs.runs.seat import EngineSeat
from pocs.serving import services
from pocs.serving.models import ModelSwitch
from tests.factories import Cast, make_target
from tests.inference.engine.conftest import byte_tokenizer, tiny_config, tiny_model
from tests.pocs.serving.conftest import Start, wait_until

pytestmark = pytest.mark.django_db(transaction=True)

SETTINGS = {"dtype": "float32", "threads": 1, "kv_blocks": 260, "block_tokens": 32}
LONG = 8000  # tokens: some seconds of answer, of which a test sees the first
PROMPT = "Once upon a time there was 一只猫 🐈"


@pytest.fixture(scope="module")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "tiny"
    tiny_model(tiny_config(max_position_embeddings=8192)).save_pretrained(folder)
    byte_tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture
def target(cast: Cast, tiny_folder: Path) -> Target:
    return make_target(cast.project, name="tiny", location=str(tiny_folder), engine_settings=SETTINGS)


@pytest.fixture
def seat() -> Iterator[Any]:
    """A seat over the real engine."""
    seat = EngineSeat()
    seat.record_switches(services.switch_record)
    seat.fake = _Fake()  # type: ignore[attr-defined] what the fixture of the desk lets go
    yield seat
    seat.close()


class _Fake:
    hold = threading.Event()


def telemetry(seat: EngineSeat) -> dict[str, Any]:
    assert seat.engine is not None
    return asyncio.run(seat.engine.telemetry())


def test_the_life_of_live_inference(
    start_desk: Start, client: OpenAI, http: httpx.Client, target: Target, seat: EngineSeat
) -> None:
    """One story, because each start of an engine costs seconds."""
    start_desk()
    client = client.with_options(timeout=120)
    asked: dict[str, Any] = {"model": "tiny", "prompt": PROMPT, "max_tokens": 24, "seed": 5}

    whole = client.completions.create(**asked, logprobs=2, extra_body={"metrics": True, "ignore_eos": True})
    assert whole.usage is not None
    assert whole.usage.prompt_tokens == len(PROMPT.encode())
    assert whole.usage.completion_tokens == 24
    assert whole.choices[0].finish_reason == "length"
    metrics: Any = whole.to_dict()["metrics"]
    phases = metrics["waited_ms"] + metrics["queue_ms"] + metrics["prefill_ms"] + metrics["decode_ms"]
    assert 0 < phases <= metrics["e2e_ms"] + 1
    assert metrics["model_load_ms"] > 0
    assert whole.choices[0].logprobs is not None
    assert len(whole.choices[0].logprobs.tokens or []) == 24

    again: Any = asked | {"stream": True, "stream_options": {"include_usage": True}}
    chunks = list(client.completions.create(**again, extra_body={"ignore_eos": True}))
    assert "".join(chunk.choices[0].text for chunk in chunks[:-1]) == whole.choices[0].text
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.prompt_tokens_details is not None
    assert (chunks[-1].usage.prompt_tokens_details.cached_tokens or 0) >= 16

    with pytest.raises(openai.BadRequestError) as refused:
        client.completions.create(model="tiny", prompt="a" * 9000, max_tokens=1)
    assert refused.value.code == "context_length_exceeded"

    _a_client_that_leaves_frees_its_blocks(http, seat)
    _many_at_once_answer_as_alone(client, asked)
    _an_engine_that_is_killed_comes_back(client, asked, seat, whole.choices[0].text)

    switches = list(ModelSwitch.objects.order_by("pk"))
    assert [(switch.source_id, switch.target_id, switch.outcome) for switch in switches] == [
        (None, target.pk, "switched")
    ]


def _a_client_that_leaves_frees_its_blocks(http: httpx.Client, seat: EngineSeat) -> None:
    body = {"model": "tiny", "prompt": "x", "max_tokens": LONG, "stream": True, "ignore_eos": True}
    with http.stream("POST", "/completions", json=body) as response:
        next(response.iter_raw())
    wait_until(lambda: telemetry(seat)["kv_used_bytes"] == 0)
    assert telemetry(seat)["aborted_total"] == 1


def _many_at_once_answer_as_alone(client: OpenAI, asked: dict[str, Any]) -> None:
    def ask(seed: int) -> str:
        fields = asked | {"seed": seed}
        return client.completions.create(**fields, extra_body={"ignore_eos": True}).choices[0].text

    alone = [ask(seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ask, range(4))) == alone


def _an_engine_that_is_killed_comes_back(
    client: OpenAI, asked: dict[str, Any], seat: EngineSeat, text: str
) -> None:
    import os
    import signal

    long: Any = {"model": "tiny", "prompt": "x", "max_tokens": LONG, "stream": True}
    stream = client.completions.create(**long, extra_body={"ignore_eos": True})
    next(iter(stream))
    assert seat.engine is not None
    assert seat.engine.process_id is not None
    os.kill(seat.engine.process_id, signal.SIGKILL)
    with pytest.raises(openai.APIError, match="SIGKILL"):
        list(stream)
    answer = client.completions.create(**asked, extra_body={"ignore_eos": True})
    assert answer.choices[0].text == text
