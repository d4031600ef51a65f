"""One live request at the desk: its order, its place in the batch, and what the engine makes of it."""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

from channels.db import database_sync_to_async

from inference.phases import derive
from inference.records import Trace
from inference.requests import GenerationRequest
from inference.targets.base import TargetInfo
from inference.targets.embedded import EngineTarget
from pocs.runs.models import Target
from pocs.serving import wire
from pocs.serving.engines import Engines
from pocs.serving.errors import ApiError, unavailable
from pocs.serving.pace import ASSUMED_S, Pace, bounded_s
from pocs.serving.wire import Entry, Message

logger = logging.getLogger(__name__)

#: a web process that holds the prompt sends it within this; else it is gone
ORDER_WITHIN_S = 5.0
LEAST_LOGPROB = -9999.0  # what stands for minus infinity, which JSON does not know
#: the field of an order that too long a prompt is reported at, by its kind
LENGTH_PARAMS = ("messages", "prompt", "prompt_token_ids")


class Answering:
    """`begin` once; `leave` at any time ends it, and its blocks are free within a step."""

    def __init__(
        self,
        entry: Entry,
        engines: Engines,
        send: Callable[[Message], None],
        *,
        default_tokens: int,
        pace: Pace,
    ) -> None:
        self.entry = entry
        self._pace, self._begun = pace, time.monotonic()
        self.task: asyncio.Task[None] | None = None
        self._engines, self._send, self._default_tokens = engines, send, default_tokens
        self._order: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._said = 0
        self._left: ApiError | None = None
        self._leaving = False
        self._load_ms = 0.0

    def begin(self, desk: str, on_end: Callable[[object], None]) -> None:
        self.task = asyncio.create_task(self._follow(desk))
        self.task.add_done_callback(on_end)

    def take_order(self, order: dict[str, Any]) -> None:
        if not self._order.done():
            self._order.set_result(order)

    def leave(self, reason: ApiError | None) -> None:
        """End the request; its client is told the reason, unless it is the client who has left."""
        if not self._leaving and self.task is not None:
            self._leaving, self._left = True, reason
            self.task.cancel()

    def _say(self, kind: str, *rest: Any) -> None:
        self._said += 1
        self._send([kind, self.entry.id, self._said, *rest])

    async def _follow(self, desk: str) -> None:
        try:
            self._say("taken", desk)
            async with asyncio.timeout(ORDER_WITHIN_S):
                order = await self._order
            await self._answer(order)
        except asyncio.CancelledError:
            if self._left is not None:
                self._say("failed", self._left.as_wire())
        except TimeoutError:
            logger.info("a live request was taken whose web process did not send it")
        except ApiError as error:
            self._say("failed", error.as_wire())
        except Exception as error:  # without the request itself: it holds what no log may show
            logger.exception("a live request failed")
            text = f"The request failed inside the platform ({type(error).__name__})."
            self._say("failed", ApiError(500, text, type="server_error").as_wire())

    async def _answer(self, order: dict[str, Any]) -> None:
        target = await database_sync_to_async(_target_of)(self.entry)
        begun = time.monotonic()
        engine, info = await self._engines.engine_for(target)
        self._load_ms = (time.monotonic() - begun) * 1e3
        fields = order["fields"]
        if "max_tokens" not in fields:
            fields["max_tokens"] = await self._tokens_that_fit(engine, info, fields, target)
        request = _request(self.entry.id, fields, target)
        trace = Trace(self.entry.id)
        stream = _Stream(trace, self._say)
        await engine.run(request, trace, on_read=stream.note)
        if trace.ended == "orderly":
            stream.note()
            self._pace.note(time.monotonic() - self._begun)
            self._say("end", self._facts(trace, request, info))
        elif trace.ended == "refused":
            raise await self._refusal(trace, engine, info, request)
        else:
            raise unavailable(trace.error or "The engine did not finish the answer.", code="engine_failed")

    async def _tokens_that_fit(
        self, engine: EngineTarget, info: TargetInfo, fields: dict[str, Any], target: Target
    ) -> int:
        """Output tokens for a request that names no number: the default, or less where less has room."""
        prompt = await engine.prompt_tokens(_request(self.entry.id, fields, target))
        room = min(_room(info) - prompt, self._default_tokens)
        return max(1, room)  # where nothing has room, the engine says so

    async def _refusal(
        self, trace: Trace, engine: EngineTarget, info: TargetInfo, request: GenerationRequest
    ) -> ApiError:
        text = trace.error or "The engine refused the request."
        if trace.status is not None:
            after_s = bounded_s(self._pace.service_s or ASSUMED_S)
            return ApiError(429, text, type="rate_limit_error", code="engine_busy", retry_after_s=after_s)
        param = next((name for name in LENGTH_PARAMS if getattr(request, name) is not None), "prompt")
        param = "prompt" if param == "prompt_token_ids" else param
        too_long = await engine.prompt_tokens(request) + request.max_tokens > _room(info)
        return ApiError(
            400, text, param=param, code="context_length_exceeded" if too_long else "invalid_prompt"
        )

    def _facts(self, trace: Trace, request: GenerationRequest, info: TargetInfo) -> dict[str, Any]:
        """What is known at the end: usage, and the split of its time by the engine's own stamps."""
        record = derive(trace, request, open_loop=False)
        intervals = record.intervals_ms
        return {
            "finish_reason": trace.finish_reason,
            "prompt_tokens": trace.input_tokens or 0,
            "cached_tokens": trace.cached_tokens or 0,
            "completion_tokens": trace.output_tokens or 0,
            "fingerprint": "fp_" + str(info.configuration.get("model_digest")).removeprefix("sha256:")[:12],
            "metrics": {
                "model_load_ms": self._load_ms,
                "queue_ms": intervals["queue_wait"],
                "prefill_ms": intervals["prefill"],
                "decode_ms": intervals["decode"],
                "tpot_ms": record.tpot_ms,
                "cached_tokens": trace.cached_tokens,
                "recomputed_tokens": trace.recomputed_tokens,
                "preemptions": len(trace.preempted_ns),
            },
        }


class _Stream:
    """Turns what each read of the engine added to the trace into messages."""

    def __init__(self, trace: Trace, say: Callable[..., None]) -> None:
        self._trace, self._say = trace, say
        self._accepted = False
        self._characters = 0
        self._tokens = 0  # whose log probabilities have been told

    def note(self) -> None:
        trace = self._trace
        if trace.input_tokens is None:
            return
        if not self._accepted:
            self._accepted = True
            self._say("queued", trace.input_tokens)
        piece = trace.text[self._characters :]
        told = trace.logprobs[self._tokens :]
        if piece or (
            told and trace.ended == "orderly"
        ):  # a token without text goes with the next that has one
            self._characters, self._tokens = len(trace.text), len(trace.logprobs)
            self._say("text", piece, trace.output_tokens, [token_logprobs(token) for token in told])


def token_logprobs(told: list[tuple[int, float, bytes]]) -> dict[str, Any]:
    """One token as a chat's `logprobs` have it, of what the engine tells: itself first, then alternatives."""
    own, *alternatives = [
        {
            "token": spelt.decode(errors="replace"),
            "logprob": max(logprob, LEAST_LOGPROB),
            "bytes": list(spelt),
        }
        for _, logprob, spelt in told
    ]
    return own | {"top_logprobs": alternatives}


def _target_of(entry: Entry) -> Target:
    target = Target.objects.filter(pk=entry.target_id).first()
    if target is None or wire.mark_of(target) != entry.engine:
        raise unavailable("The model was changed while the request waited; send it again.", retry_after_s=1)
    return target


def _request(request_id: str, fields: dict[str, Any], target: Target) -> GenerationRequest:
    """The engine's request; cached prefixes are shared inside a project only."""
    tuples = {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
    return GenerationRequest(
        id=request_id, namespace=f"live:{target.project_id}", priority="live", **(fields | tuples)
    )


def _room(info: TargetInfo) -> int:
    """Tokens of prompt and answer that the model and its cache take; the last one is never computed."""
    engine = info.configuration["engine"]
    in_cache = engine["kv_blocks"] * engine["block_tokens"] + 1
    return min(info.max_model_tokens or in_cache, in_cache)
