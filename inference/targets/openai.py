"""An OpenAI-compatible endpoint as a target: chat or completions, streamed, over plain sockets."""

import asyncio
import json
import ssl
import time
from typing import Any, Literal
from urllib.parse import quote

import h11

from inference.errors import InputError, TargetUnavailable
from inference.phases import BUSY_STATUS
from inference.records import Trace
from inference.requests import GenerationRequest
from inference.targets.base import TargetInfo
from inference.targets.dialects import GENERIC, Dialect
from inference.targets.dialects.base import Answer
from inference.targets.dialects.detect import NO_ANSWER, detect
from inference.targets.http import Connection, ConnectionFailed, ConnectionPool, Endpoint, fetch
from inference.targets.http_answer import HttpAnswer
from inference.targets.ollama_answer import native_options
from inference.targets.openai_answer import AnswerReader, Tokenize, error_of_body, parse_json
from inference.targets.server_pages import server_pages

PROBE_TIMEOUT_S = 5.0
AFTER_DONE_TIMEOUT_S = 1.0  # for the end of the body after `[DONE]`
LEAVE_QUEUE_AFTER_S = 0.01  # a request left in the queue has reached the server, and no more
FIRST_BACKOFF_S, LAST_BACKOFF_S = 1.0, 30.0

#: `ollama` is the native endpoint of that server, beside the API: its durations come with no other answer
PATHS = {"chat": "/chat/completions", "completions": "/completions", "ollama": "/api/chat"}


class OpenAITarget:
    """One model behind an OpenAI-compatible base URL such as `http://host:port/v1`.

    `endpoint="chat"` sends a `prompt` as one user message; `prompt_token_ids` need `completions`, and
    `messages` need `chat`. `throttle_retries` repeats a request refused with 429 or 503 that many times
    after the server's `Retry-After` (else a doubling pause); the wait is kept apart as `throttled`.
    `tokenize` counts tokens where the server sends no usage. `server_metrics_url` (or `auto`:
    `/metrics` beside the API) and `device_metrics_url` (a DCGM exporter) are read by `telemetry`.
    The server's dialect is found out when the target is opened.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        endpoint: Literal["chat", "completions", "ollama"] = "chat",
        tokenize: Tokenize | None = None,
        streamed: bool = True,
        throttle_retries: int = 0,
        server_metrics_url: str | None = None,
        device_metrics_url: str | None = None,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        if endpoint not in PATHS:
            raise InputError(f"endpoint must be one of {', '.join(PATHS)}, not {endpoint!r}")
        if not model:
            raise InputError("an http target needs the name of its model")
        self.model = model
        self.endpoint = endpoint
        self._address = Endpoint.parse(base_url)
        self._pool = ConnectionPool(self._address, ssl_context)
        self._api_key = api_key
        self._tokenize = tokenize
        self._streamed = streamed
        self._throttle_retries = throttle_retries
        self._root = ConnectionPool(self._address.root, ssl_context)
        self.pages = server_pages(
            self._address,
            ssl_context,
            self._headers(None),
            metrics_url=server_metrics_url,
            devices_url=device_metrics_url,
        )
        self.dialect: Dialect = GENERIC
        self.dialect_label: dict[str, Any] = {}

    async def open(self) -> TargetInfo:
        """Reach the endpoint, read its model list and find out its dialect; raises TargetUnavailable."""
        configuration: dict[str, Any] = {"url": self._address.url, "endpoint": self.endpoint}
        models = await self._models()
        if models.status in (401, 403):
            text = self._without_key(error_of_body(models.body, models.status))
            raise TargetUnavailable(f"{self._address.url} refused the key: {text}")
        if "server" in models.headers:
            configuration["server"] = models.headers["server"]
        entry = _model_entry(models.body, self.model, configuration) if models.status == 200 else {}
        self.dialect, self.dialect_label = await detect(
            self._root, models, self._headers(None), metrics=await self.pages.first()
        )
        self.pages.speak(self.dialect)
        configuration["dialect"] = {name: self.dialect_label[name] for name in ("name", "version")}
        return TargetInfo(
            kind="http",
            model=self.model,
            configuration=configuration,
            max_model_tokens=_max_model_tokens(entry),
        )

    async def _models(self) -> Answer:
        """The answer of the model list; one that is slow to come is no fault: the server may be busy."""
        try:
            found = await fetch(self._pool, "/models", self._headers(None), timeout_s=PROBE_TIMEOUT_S)
        except ConnectionFailed as fault:
            raise TargetUnavailable(f"cannot reach {self._address.url}: {fault}") from fault
        except TimeoutError:
            return NO_ANSWER
        return Answer(found.status, found.headers, found.body)

    async def run(self, request: GenerationRequest, trace: Trace) -> None:
        try:
            body = self._body(request)
        except InputError as fault:
            trace.error, trace.ended = str(fault), "refused"
            return
        reader = AnswerReader(trace, tokenize=self._tokenize)
        try:
            await self._attempts(request, trace, reader, body)
        except ConnectionFailed as fault:
            finished = reader.done_seen and trace.ended == "none"
            trace.ended = "orderly" if finished else "cut"
            if trace.headers_ns is None:
                trace.error = f"{self._address.authority}: {fault}"
        except asyncio.CancelledError:
            trace.ended = "client"
            raise
        finally:
            if trace.closed_ns is None:
                trace.closed_ns = time.monotonic_ns()
            reader.finish()
            self._hide_key(trace)

    async def telemetry(self) -> dict[str, Any]:
        """The server's own figures where its `/metrics` are read; empty otherwise."""
        return await self.pages.sample()

    async def begin_window(self) -> None:
        """The measured requests start now: the server's counters are read from here on."""
        await self.pages.begin()

    async def server_observation(self) -> dict[str, Any]:
        """What the server told of the window, for `inference.targets.server_summary`; call after the load."""
        return {"dialect": self.dialect_label, **await self.pages.end()}

    async def tls(self) -> dict[str, Any] | None:
        """Of a new connection: version and end of the certificate, None in clear; raises ConnectionFailed."""
        connection = await self._pool.acquire(fresh=True)
        try:
            return connection.tls()
        finally:
            connection.close()

    async def open_without_key(self) -> bool:
        """Whether the model list is answered to somebody without the key."""
        try:
            found = await fetch(self._pool, "/models", timeout_s=PROBE_TIMEOUT_S)
        except (ConnectionFailed, TimeoutError):
            return False
        return found.status == 200

    def tokenize(self, text: str) -> list[int] | None:
        ids = self._tokenize(text) if self._tokenize else None
        return None if ids is None else list(ids)

    async def close(self) -> None:
        self._pool.close()
        self._root.close()
        self.pages.close()

    # -- one request ------------------------------------------------------------------------------------

    async def _attempts(
        self, request: GenerationRequest, trace: Trace, reader: AnswerReader, body: bytes
    ) -> None:
        for attempt in range(self._throttle_retries + 1):
            await self._attempt(request, trace, reader, body)
            if trace.status not in BUSY_STATUS or attempt == self._throttle_retries:
                return
            pause_from_ns = time.monotonic_ns()
            pause_s = trace.server.get("retry_after_s")
            if pause_s is None:
                pause_s = min(LAST_BACKOFF_S, FIRST_BACKOFF_S * 2**attempt)
            await asyncio.sleep(pause_s)
            trace.throttled_ns += time.monotonic_ns() - pause_from_ns
            trace.error, trace.ended, trace.status = None, "none", None
            trace.headers_ns = trace.closed_ns = None

    async def _attempt(
        self, request: GenerationRequest, trace: Trace, reader: AnswerReader, body: bytes
    ) -> None:
        """One exchange; repeated once on a new connection when an idle one turns out to be closed."""
        pool = self._root if self.endpoint == "ollama" else self._pool
        connection = await pool.acquire()
        for fresh in (False, True):
            if fresh:
                connection = await pool.acquire(fresh=True)
            sent_ns = connection.send("POST", PATHS[self.endpoint], self._headers(request), body)
            if trace.sent_ns is None or fresh:
                trace.sent_ns = sent_ns
            try:
                complete = await self._exchange(connection, request, trace, reader)
            except ConnectionFailed:
                connection.close()
                if fresh or connection.exchanges == 1 or trace.headers_ns is not None:
                    raise
                continue
            except BaseException:
                connection.close()
                raise
            if complete:
                pool.release(connection)
            else:
                connection.close()
            return

    async def _exchange(
        self, connection: Connection, request: GenerationRequest, trace: Trace, reader: AnswerReader
    ) -> bool:
        """Read one answer to its end; True when the connection can be used again."""
        if request.cancel is not None and request.cancel.phase == "queue":
            await asyncio.sleep(LEAVE_QUEUE_AFTER_S)
            trace.ended = "client"
            return False
        answer = HttpAnswer(trace, reader)
        loop = asyncio.get_running_loop()
        limit = asyncio.timeout(None)

        def take(ns: int, event: h11.Event) -> bool:
            answer.take(ns, event)
            if reader.done_seen and limit.when() is None:
                limit.reschedule(loop.time() + AFTER_DONE_TIMEOUT_S)
            return _leaves(request, trace)

        try:
            async with limit:
                complete = await connection.exchange(take)
        except TimeoutError:  # all was said; only the body was never closed
            trace.ended = "orderly"
            return False
        if not complete:
            trace.ended = "client"
        return complete

    def _body(self, request: GenerationRequest) -> bytes:
        """The JSON to send; what equals the servers' default is left out, as not every server knows it."""
        fields: dict[str, Any] = {"model": self.model, **self._content(request)}
        fields |= {"max_tokens": request.max_tokens, "temperature": request.temperature}
        fields["stream"] = self._streamed
        if self._streamed:
            fields["stream_options"] = {"include_usage": True}
            if self.dialect.running_usage:
                fields["stream_options"]["continuous_usage_stats"] = True
        if request.logprobs is not None:
            raise InputError("log probabilities are read from the embedded engine only")
        optional: dict[str, tuple[Any, Any]] = {
            "top_p": (request.top_p, 1.0),
            "top_k": (request.top_k, 0),
            "min_p": (request.min_p, 0.0),
            "seed": (request.seed, None),
            "stop": (list(request.stop), []),
            "stop_token_ids": (list(request.stop_token_ids), []),
            "min_tokens": (request.min_tokens, 0),
            "ignore_eos": (request.ignore_eos, False),
            "presence_penalty": (request.presence_penalty, 0.0),
            "frequency_penalty": (request.frequency_penalty, 0.0),
            "repetition_penalty": (request.repetition_penalty, 1.0),
        }
        fields |= {name: value for name, (value, default) in optional.items() if value != default}
        if self.endpoint == "ollama":
            fields = native_options(fields)
        return json.dumps(fields, ensure_ascii=False).encode()

    def _content(self, request: GenerationRequest) -> dict[str, Any]:
        if self.endpoint != "completions":
            if request.prompt_token_ids is not None:
                raise InputError("prompt_token_ids need the completions endpoint")
            return {"messages": request.messages or [{"role": "user", "content": request.prompt}]}
        if request.messages is not None:
            raise InputError("messages need the chat endpoint")
        return {"prompt": request.prompt if request.prompt is not None else request.prompt_token_ids}

    def _without_key(self, text: str) -> str:
        """The text with the key taken out: careless servers say it back in their errors."""
        return text.replace(self._api_key, "***") if self._api_key else text

    def _hide_key(self, trace: Trace) -> None:
        if trace.error:
            trace.error = self._without_key(trace.error)
        if self._api_key and (kept := trace.server.get("other_events")):
            trace.server["other_events"] = [self._without_key(text) for text in kept]

    def _headers(self, request: GenerationRequest | None) -> list[tuple[str, str]]:
        headers = [("User-Agent", "phasegate")]
        if self._api_key:
            headers.append(("Authorization", f"Bearer {self._api_key}"))
        if request is not None:
            headers.append(("Content-Type", "application/json"))
            headers.append(("Accept", "text/event-stream"))
            headers.append(("X-Request-Id", quote(request.id, safe="-._~")))
        return headers


def _leaves(request: GenerationRequest, trace: Trace) -> bool:
    """Whether the request's cancel rule says to leave now; refused and ended ones are not left."""
    rule = request.cancel
    if rule is None or trace.status != 200 or trace.ended != "none":
        return False
    if rule.phase == "prefill":
        return trace.headers_ns is not None
    seen = sum(1 if tokens is None else tokens for _, tokens in trace.reads)
    return seen >= max(1, rule.after_tokens)


def _model_entry(body: bytes, model: str, configuration: dict[str, Any]) -> dict[str, Any]:
    """What the model list says of the model; the names it has are noted where ours is not among them."""
    try:
        rows = parse_json(body).get("data")
        entries = [row for row in rows if isinstance(row, dict)]
    except (ValueError, AttributeError, TypeError):
        return {}
    for entry in entries:
        if entry.get("id") == model:
            configuration["model_entry"] = {
                name: value
                for name, value in entry.items()
                if isinstance(value, str | int | float) and name != "created"  # some servers say: now
            }
            return entry
    configuration["listed_models"] = [entry.get("id") for entry in entries][:20]
    return {}


def _max_model_tokens(entry: dict[str, Any]) -> int | None:
    meta = entry.get("meta")
    found = entry.get("max_model_len") or (meta.get("n_ctx") if isinstance(meta, dict) else None)
    return found if isinstance(found, int) else None
