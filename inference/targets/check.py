"""Whether an endpoint can be measured, found out before a run: what works, what is missing, what is wrong.

A report is codes with figures, free of any language: `good`, `lacks` (something cannot be measured) or
`bad` (a run would say nothing). It holds no credential.
"""

import asyncio
import ssl
import time
from typing import Any, Literal

from inference.errors import TargetUnavailable
from inference.phases import SERVER_PHASES_CONTRADICT, derive
from inference.records import RequestRecord, Trace
from inference.requests import GenerationRequest
from inference.targets.http import ConnectionFailed
from inference.targets.openai import OpenAITarget

SCHEMA = "phasegate-check/1"
ANSWER_TIMEOUT_S = 60.0
OPEN_TIMEOUT_S = 15.0
OUTPUT_TOKENS = 16
Verdict = Literal["good", "lacks", "bad"]
Item = dict[str, Any]


async def check_endpoint(target: OpenAITarget, *, has_key: bool) -> dict[str, Any]:
    """`{"schema", "ok", "dialect", "configuration", "items"}`; an item is `{"code", "verdict", "figures"}`.

    Opens the target, asks for one short answer and closes it. Never raises for what the endpoint does.
    """
    report: dict[str, Any] = {"schema": SCHEMA, "ok": False, "dialect": {}, "configuration": {}, "items": []}
    try:
        report["items"] = await _items(target, report, has_key=has_key)
    finally:
        await target.close()
    report["ok"] = all(item["verdict"] != "bad" for item in report["items"])
    return report


async def _items(target: OpenAITarget, report: dict[str, Any], *, has_key: bool) -> list[Item]:
    begun_ns = time.monotonic_ns()
    try:
        async with asyncio.timeout(OPEN_TIMEOUT_S):
            info = await target.open()
    except TimeoutError:
        return [_item("reachable", "bad", text=f"no answer within {OPEN_TIMEOUT_S:g} s")]
    except TargetUnavailable as fault:
        return [_refused(fault)]
    items = [_item("reachable", "good", took_ms=(time.monotonic_ns() - begun_ns) / 1e6)]
    report["dialect"], report["configuration"] = target.dialect_label, info.configuration
    items.append(await _tls(target))
    record = await _ask(target)
    items.append(await _auth(target, record, has_key=has_key))
    items.append(_model(target, info.configuration, record))
    items += _answer(record)
    items.append(_item("dialect", "good" if target.dialect.name != "generic" else "lacks", **_label(target)))
    items.append(await _metrics(target))
    return items


def _item(code: str, verdict: Verdict, **figures: Any) -> Item:
    return {"code": code, "verdict": verdict, "figures": figures}


def _refused(fault: TargetUnavailable) -> Item:
    """Why it could not be opened: no way there, a certificate that is not trusted, or the key."""
    cause: BaseException | None = fault.__cause__
    if cause is None:
        return _item("auth", "bad", text=str(fault))
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return _item(
                "tls", "bad", text=str(getattr(cause, "verify_message", "") or cause.reason or cause)
            )
        cause = cause.__cause__
    return _item("reachable", "bad", text=str(fault))


async def _tls(target: OpenAITarget) -> Item:
    try:
        told = await target.tls()
    except ConnectionFailed as fault:
        return _item("tls", "bad", text=str(fault))
    if told is None:
        return _item("tls", "lacks")
    return _item("tls", "good", **told)


async def _auth(target: OpenAITarget, record: RequestRecord, *, has_key: bool) -> Item:
    if record.status in (401, 403):
        return _item("auth", "bad", text=record.error or f"HTTP {record.status}", has_key=has_key)
    return _item("auth", "good", has_key=has_key, open_without=has_key and await target.open_without_key())


def _model(target: OpenAITarget, configuration: dict[str, Any], record: RequestRecord) -> Item:
    figures = {
        "model": target.model,
        "listed": configuration.get("listed_models"),
        "named": record.server.get("model"),
    }
    if "model_entry" in configuration:
        return _item("model", "good", **figures)
    if configuration.get("listed_models"):
        return _item("model", "bad" if record.outcome != "success" else "lacks", **figures)
    return _item("model", "good" if record.outcome == "success" else "lacks", **figures)


def _answer(record: RequestRecord) -> list[Item]:
    """Whether it answers, streams, counts its tokens, and has a first token that can be believed."""
    if record.outcome != "success":
        return [
            _item("answers", "bad", outcome=record.outcome, text=record.error or "", status=record.status)
        ]
    items = [_item("answers", "good", e2e_ms=record.e2e_ms, output_tokens=record.output_tokens)]
    several = len(record.reads) > 1 or record.output_tokens == 1
    items.append(
        _item("streams", "good" if record.streamed and several else "lacks", reads=len(record.reads))
    )
    usage = record.output_tokens_source == "usage"
    items.append(
        _item(
            "usage", "good" if usage else "lacks", source=record.output_tokens_source, n=record.output_tokens
        )
    )
    return [*items, _first_token(record)]


def _first_token(record: RequestRecord) -> Item:
    """Sent, headers, first and last token must follow one another, and the server's own times fit in."""
    names = ("sent_ns", "first_ns", "last_ns")
    sent_ns, first_ns, last_ns = (record.stamps.get(name) for name in names)
    headers_ns = record.detail.get("headers_ns")
    figures = {"ttft_ms": record.ttft_ms, "e2e_ms": record.e2e_ms}
    if not record.streamed or record.ttft_ms is None:
        return _item("first_token", "lacks", **figures)
    order = [ns for ns in (sent_ns, headers_ns, first_ns, last_ns) if isinstance(ns, int)]
    contradicts = SERVER_PHASES_CONTRADICT in record.flags
    sensible = order == sorted(order) and record.ttft_ms > 0 and not contradicts
    return _item("first_token", "good" if sensible else "bad", contradicts=contradicts, **figures)


async def _metrics(target: OpenAITarget) -> Item:
    """Whether the server's own figures can be read, and which of M5 to M8 they give."""
    await target.begin_window()
    pages = target.pages
    found = await target.telemetry() if pages.readable else {}
    told = sorted({*found, *(pages.window.last.growths if pages.window.last else {})})
    figures = {"url": pages.url, "told": told, "title": target.dialect.title}
    if told:
        took_ms, size = pages.window.slowest_ms, pages.window.largest_bytes
        return _item("metrics", "good", took_ms=took_ms, size_bytes=size, **figures)
    text = pages.problem or next(iter(pages.window.problems), "")
    return _item("metrics", "lacks", text=text, **figures)


def _label(target: OpenAITarget) -> dict[str, Any]:
    return {**target.dialect_label, "per_request": list(target.dialect.per_request)}


async def _ask(target: OpenAITarget) -> RequestRecord:
    text = "Count from one to ten in words."
    content: dict[str, Any] = (
        {"messages": ({"role": "user", "content": text},)}
        if target.endpoint != "completions"
        else {"prompt": text}
    )
    request = GenerationRequest(id="check", max_tokens=OUTPUT_TOKENS, **content)
    now_ns = time.monotonic_ns()
    trace = Trace(request.id, scheduled_ns=now_ns, dispatched_ns=now_ns)
    try:
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            await target.run(request, trace)
    except TimeoutError:
        trace.ended, trace.error = "timeout", f"no complete answer within {ANSWER_TIMEOUT_S:g} s"
    return derive(trace, request, open_loop=False)
