"""Which habits an endpoint has: a few small requests, and what was seen of each answer."""

import time
from typing import Any

from inference.phases import derive
from inference.records import RequestRecord, Trace
from inference.requests import CancelRule, GenerationRequest
from inference.targets.openai import OpenAITarget

SCHEMA = "phasegate-conformance/1"
UNKNOWN_MODEL = "no-such-model"
EARLY_HEADERS_MS = 5.0  # headers this long before the first token did not wait for it


async def conformance(url: str, model: str, *, api_key: str | None = None) -> dict[str, Any]:
    """`{"schema", "target", "habits"}`; each habit is `{"name", "seen", "why_it_matters"}`.

    Sends seven requests of a few tokens. Raises TargetUnavailable when the endpoint cannot be reached and
    InputError for a wrong URL.
    """
    target = OpenAITarget(url, model, api_key=api_key)
    info = await target.open()
    try:
        plain = await _ask(target, "plain", "Count from one to ten in words.", max_tokens=16)
        one = await _ask(target, "one", "Say yes.", max_tokens=1)
        chinese = await _ask(target, "chinese", "请用中文说：你好，世界。", max_tokens=24)
        stopped = await _ask(
            target, "stop", "Count: one, two, three, four, five.", max_tokens=32, stop=(" ",)
        )
        left = await _ask(
            target,
            "left",
            "Write a long story.",
            max_tokens=64,
            cancel=CancelRule(phase="decode", after_tokens=2),
        )
    finally:
        await target.close()
    whole = await _once(OpenAITarget(url, model, api_key=api_key, streamed=False), "whole")
    unknown = await _once(OpenAITarget(url, UNKNOWN_MODEL, api_key=api_key), "unknown")
    return {
        "schema": SCHEMA,
        "target": {"kind": info.kind, "model": info.model, **info.configuration},
        "habits": [
            *_stream_habits(plain),
            _habit("one token", _outcome(one), "a request for one token has no time per output token"),
            _habit("text of several bytes", _characters(chinese), "half characters must never be shown"),
            _habit("stop text", _outcome(stopped), "the finish reason tells a stop from a length limit"),
            _habit("leaving during generation", _outcome(left), "interruption can be measured"),
            _habit("answer without streaming", _outcome(whole), "it has no first token to observe"),
            _habit("unknown model", _outcome(unknown), "a wrong model name must not pass for a result"),
        ],
    }


def _stream_habits(record: RequestRecord) -> list[dict[str, Any]]:
    stream = record.server.get("stream", {})
    known = [tokens for _, tokens in record.reads if tokens is not None]
    per_read = f"{min(known)} to {max(known)}" if known else "not told"
    return [
        _habit("streamed answer", _outcome(record), "TTFT and TPOT need it"),
        _habit(
            "streams",
            "yes" if record.streamed and len(record.reads) > 1 else "no",
            "else TTFT is not observed",
        ),
        _habit("headers", _headers(record), "early headers say nothing of the first token"),
        _habit("role-only chunk", "role_ns" in record.detail, "it is no first token"),
        _habit(
            "usage at the end", stream.get("usage_at_the_end", 0) > 0, "output tokens by the server's count"
        ),
        _habit(
            "usage on chunks", stream.get("usage_on_chunks", 0) > 0, "shows tokens whose text is held back"
        ),
        _habit("tokens in a read", per_read, "TPOT is exact where it is told"),
        _habit("finish reason", record.finish_reason or "none", "without one an answer is incomplete"),
        _habit("[DONE] marker", bool(stream.get("done_marker")), "no proof of success by itself"),
        _habit("comments", stream.get("comments", 0), "keep-alive lines are no output"),
        _habit("reasoning channel", bool(record.reasoning_text), "its tokens come before the answer"),
        _habit("cached prompt tokens", record.cached_tokens is not None, "cache hits by request"),
        _habit("phases told by the server", _server_phases(record), "else queue and prefill are one part"),
    ]


def _headers(record: RequestRecord) -> str:
    headers_ns, first_ns = record.detail.get("headers_ns"), record.stamps.get("first_ns")
    if not isinstance(headers_ns, int) or not isinstance(first_ns, int):
        return "not observed"
    lead_ms = (first_ns - headers_ns) / 1e6
    return (
        f"{lead_ms:.0f} ms before the first token" if lead_ms > EARLY_HEADERS_MS else "with the first token"
    )


def _server_phases(record: RequestRecord) -> str:
    return next((name for name in ("metrics", "timings") if record.server.get(name)), "none")


def _characters(record: RequestRecord) -> str:
    return "broken characters" if "\ufffd" in record.text else _outcome(record)


def _outcome(record: RequestRecord) -> str:
    parts: list[str] = [record.outcome]
    if record.finish_reason:
        parts.append(f"finish reason {record.finish_reason}")
    if record.status not in (None, 200):
        parts.append(f"HTTP {record.status}")
    if record.error:
        parts.append(record.error)
    return ", ".join(parts)


def _habit(name: str, seen: Any, why_it_matters: str) -> dict[str, Any]:
    return {"name": name, "seen": seen, "why_it_matters": why_it_matters}


async def _once(target: OpenAITarget, name: str) -> RequestRecord:
    try:
        return await _ask(target, name, "Say yes.", max_tokens=4)
    finally:
        await target.close()


async def _ask(target: OpenAITarget, name: str, text: str, **fields: Any) -> RequestRecord:
    request = GenerationRequest(
        id=f"conformance-{name}", messages=({"role": "user", "content": text},), **fields
    )
    now_ns = time.monotonic_ns()
    trace = Trace(request.id, scheduled_ns=now_ns, dispatched_ns=now_ns)
    await target.run(request, trace)
    return derive(trace, request, open_loop=False)
