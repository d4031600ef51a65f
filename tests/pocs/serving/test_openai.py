"""The API as the `openai` package uses it: streams, usage, refusals, models."""

import json
from typing import Any

import httpx2 as httpx
import openai
import pytest
from openai import OpenAI

from pocs.projects.models import Project
from pocs.runs.models import Target
from tests.factories import Cast, make_ci_token, make_target
from tests.pocs.serving.conftest import Site
from tests.pocs.serving.fakes import ANSWER, CACHED_TOKENS, PROMPT_TOKENS, FakeEngine

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("desk")]

HELLO: list[Any] = [{"role": "user", "content": "Hello"}]
TEXT = "".join(ANSWER)


def test_a_whole_answer_with_its_usage(client: OpenAI, target: Target) -> None:
    answer = client.chat.completions.create(model="small-model", messages=HELLO)
    assert answer.object == "chat.completion"
    assert answer.model == "small-model"
    assert answer.choices[0].message.content == TEXT
    assert answer.choices[0].message.role == "assistant"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    assert answer.usage.prompt_tokens == PROMPT_TOKENS
    assert answer.usage.completion_tokens == len(ANSWER)
    assert answer.usage.total_tokens == PROMPT_TOKENS + len(ANSWER)
    assert answer.usage.prompt_tokens_details is not None
    assert answer.usage.prompt_tokens_details.cached_tokens == CACHED_TOKENS
    assert answer.system_fingerprint == "fp_" + "d" * 12
    assert answer.to_dict().get("metrics") is None


def test_a_streamed_answer_piece_by_piece(client: OpenAI, target: Target) -> None:
    chunks = list(client.chat.completions.create(model="small-model", messages=HELLO, stream=True))
    assert {chunk.object for chunk in chunks} == {"chat.completion.chunk"}
    assert len({chunk.id for chunk in chunks}) == 1
    assert chunks[0].choices[0].delta.role == "assistant"
    pieces = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices[0].delta.content]
    assert pieces == list(ANSWER)
    assert [chunk.choices[0].finish_reason for chunk in chunks[:-1]] == [None] * (len(chunks) - 1)
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert all(chunk.usage is None for chunk in chunks)


def test_usage_at_the_end_of_a_stream(client: OpenAI, target: Target) -> None:
    stream = client.chat.completions.create(
        model="small-model", messages=HELLO, stream=True, stream_options={"include_usage": True}, max_tokens=2
    )
    chunks = list(stream)
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == 2
    assert chunks[-2].choices[0].finish_reason == "length"


def test_the_split_of_the_time_where_it_is_asked_for(client: OpenAI, target: Target) -> None:
    extra = {"metrics": True}
    answer = client.chat.completions.create(model="small-model", messages=HELLO, extra_body=extra)
    whole = answer.to_dict()["metrics"]
    stream = client.chat.completions.create(
        model="small-model", messages=HELLO, stream=True, extra_body=extra
    )
    streamed = list(stream)[-1].to_dict()["metrics"]
    for metrics in (whole, streamed):
        assert isinstance(metrics, dict)
        assert metrics["queue_ms"] == pytest.approx(1.0)
        assert metrics["prefill_ms"] == pytest.approx(2.0)
        assert metrics["decode_ms"] >= 0
        assert 0 <= metrics["waited_ms"] <= metrics["ttft_ms"] <= metrics["e2e_ms"]
        assert metrics["cached_tokens"] == CACHED_TOKENS


def test_what_is_asked_for_reaches_the_engine(client: OpenAI, target: Target, engine: FakeEngine) -> None:
    client.chat.completions.create(
        model="small-model",
        messages=[
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "One"}, {"type": "text", "text": "two"}]},
        ],
        max_completion_tokens=5,
        temperature=0.5,
        top_p=0.9,
        seed=11,
        stop=["\n", "END"],
        presence_penalty=0.25,
        frequency_penalty=-0.5,
        user="someone",
        extra_body={"top_k": 40, "min_p": 0.05, "repetition_penalty": 1.1, "min_tokens": 1},
    )
    (request,) = engine.requests
    assert request.messages == (
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "One\ntwo"},
    )
    assert (request.max_tokens, request.min_tokens) == (5, 1)
    assert (request.temperature, request.top_p, request.top_k, request.min_p) == (0.5, 0.9, 40, 0.05)
    assert (request.seed, request.stop) == (11, ("\n", "END"))
    assert (request.presence_penalty, request.frequency_penalty) == (0.25, -0.5)
    assert (request.repetition_penalty, request.priority) == (1.1, "live")
    assert request.namespace == f"live:{target.project_id}"


def test_defaults_are_those_of_the_api(client: OpenAI, target: Target, engine: FakeEngine) -> None:
    client.chat.completions.create(model="small-model", messages=HELLO)
    client.completions.create(model="small-model", prompt="Once")
    chat, text = engine.requests
    assert (chat.temperature, chat.top_p, chat.stop, chat.seed) == (1.0, 1.0, (), None)
    assert chat.max_tokens == 200 - PROMPT_TOKENS  # what fits, where no number is named
    assert (text.prompt, text.max_tokens) == ("Once", 16)


def test_log_probabilities_of_chats_and_completions(client: OpenAI, target: Target) -> None:
    answer = client.chat.completions.create(
        model="small-model", messages=HELLO, logprobs=True, top_logprobs=2, max_tokens=3
    )
    assert answer.choices[0].logprobs is not None
    content = answer.choices[0].logprobs.content
    assert content is not None
    assert [one.token for one in content] == list(ANSWER[:3])
    assert content[2].bytes == list("你好".encode())
    assert [(top.token, top.logprob) for top in content[0].top_logprobs] == [("x", -2.0), ("x", -3.0)]
    stream = client.chat.completions.create(
        model="small-model", messages=HELLO, logprobs=True, max_tokens=3, stream=True
    )
    told = [chunk.choices[0].logprobs for chunk in stream if chunk.choices[0].logprobs]
    assert [one.content[0].token for one in told if one.content] == list(ANSWER[:3])
    text = client.completions.create(model="small-model", prompt="Once", logprobs=1, max_tokens=2)
    assert text.choices[0].logprobs is not None
    assert text.choices[0].logprobs.tokens == ["Hello", ", "]
    assert text.choices[0].logprobs.text_offset == [0, 5]
    assert text.choices[0].logprobs.top_logprobs == [{"x": -2.0}, {"x": -2.0}]


def test_text_completions_whole_and_streamed(client: OpenAI, target: Target) -> None:
    answer = client.completions.create(model="small-model", prompt="Once", max_tokens=2)
    assert answer.object == "text_completion"
    assert answer.choices[0].text == "Hello, "
    assert answer.choices[0].finish_reason == "length"
    chunks = list(client.completions.create(model="small-model", prompt=[[1, 2, 3]], stream=True))
    assert "".join(chunk.choices[0].text for chunk in chunks) == TEXT
    assert chunks[-1].choices[0].finish_reason == "stop"


def test_the_bytes_of_a_stream(http: httpx.Client, target: Target) -> None:
    body = {"model": "small-model", "messages": HELLO, "stream": True}
    response = http.post("/chat/completions", json=body)
    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.headers["x-request-id"]
    assert response.headers["cache-control"] == "no-store"
    events = response.content.split(b"\n\n")
    assert events[-2:] == [b"data: [DONE]", b""]
    assert all(event.startswith(b"data: {") for event in events[:-2])
    texts = [json.loads(event[6:])["choices"][0]["delta"].get("content", "") for event in events[:-2]]
    assert "".join(texts) == TEXT
    assert "你好".encode() in response.content


def test_the_models_of_the_project(client: OpenAI, cast: Cast, target: Target) -> None:
    make_target(cast.project, name="small MODEL")
    make_target(cast.project, name="小模型")
    make_target(cast.project, name="Elsewhere", kind="http", location="http://127.0.0.1:1/v1", model="x")
    names = [model.id for model in client.models.list()]
    assert names[0] == "small-model"
    assert names[1].startswith("small-model-")
    assert names[2] == "小模型"
    assert len(names) == 3
    assert client.models.retrieve("小模型").id == "小模型"
    assert client.models.retrieve(f"target-{target.pk}").id == "small-model"


def test_a_model_of_another_project_is_not_found(client: OpenAI, cast: Cast, target: Target) -> None:
    foreign = make_target(Project.objects.get(members__user=cast.outsider), name="Foreign")
    for name in ("foreign", f"target-{foreign.pk}", "none"):
        with pytest.raises(openai.NotFoundError) as refused:
            client.chat.completions.create(model=name, messages=HELLO)
        assert refused.value.code == "model_not_found"
        with pytest.raises(openai.NotFoundError):
            client.models.retrieve(name)


def test_a_token_without_the_scope_and_one_that_is_none(site: Site, cast: Cast, target: Target) -> None:
    _, reader = make_ci_token(cast.project, sponsor=cast.lead, scopes=("read",))
    with pytest.raises(openai.PermissionDeniedError) as refused:
        OpenAI(base_url=site.base_url, api_key=reader, max_retries=0).models.list()
    assert refused.value.code == "insufficient_permissions"
    for wrong in ("pgt_unknown", "x"):
        with pytest.raises(openai.AuthenticationError):
            OpenAI(base_url=site.base_url, api_key=wrong, max_retries=0).models.list()


def test_a_token_that_was_revoked_or_is_used_elsewhere(site: Site, cast: Cast, target: Target) -> None:
    from django.utils import timezone

    made = {"sponsor": cast.lead, "scopes": ("inference",)}
    _, revoked = make_ci_token(cast.project, **made, revoked_at=timezone.now())
    _, elsewhere = make_ci_token(cast.project, **made, allowed_addresses=["10.1.2.0/24"])
    for plaintext in (revoked, elsewhere):
        with pytest.raises(openai.AuthenticationError):
            OpenAI(base_url=site.base_url, api_key=plaintext, max_retries=0).models.list()
    token, good = make_ci_token(cast.project, **made, allowed_addresses=["127.0.0.1"])
    OpenAI(base_url=site.base_url, api_key=good, max_retries=0).models.list()
    token.refresh_from_db()
    assert token.last_used_at is not None


def test_what_the_engine_refuses_is_a_400_even_of_a_stream(
    client: OpenAI, target: Target, engine: FakeEngine
) -> None:
    engine.refuse = "The prompt has 300 tokens, but the model takes 200 in all."
    for stream in (False, True):
        with pytest.raises(openai.BadRequestError, match="takes 200") as refused:
            client.chat.completions.create(model="small-model", messages=HELLO, stream=stream, max_tokens=194)
        assert refused.value.code == "context_length_exceeded"
        assert refused.value.param == "messages"


def test_a_model_that_cannot_be_loaded(client: OpenAI, target: Target, engine: FakeEngine) -> None:
    engine.unavailable = "There is no model at models/small."
    with pytest.raises(openai.InternalServerError, match="no model at") as failed:
        client.chat.completions.create(model="small-model", messages=HELLO)
    assert failed.value.status_code == 503
    assert failed.value.code == "model_unavailable"
    assert failed.value.response.headers["retry-after"]
