"""From the messages of one ticket to one answer over HTTP, whole or streamed."""

import time
from typing import Any

from channels.db import database_sync_to_async

from pocs.runs.models import Run
from pocs.serving.answers import Answer
from pocs.serving.exchange import Exchange, Headers
from pocs.serving.orders import Order
from pocs.serving.ticket import Ticket, Waiting
from pocs.serving.wire import Message

#: a stream's headers wait so long for the engine's yes or no; a later refusal comes inside the stream
HEADERS_WITHIN_S = 0.5


class Conversation:
    """`carry_on` until the answer has ended; a refusal is raised as ApiError."""

    def __init__(
        self,
        exchange: Exchange,
        order: Order,
        model: str,
        ticket: Ticket,
        project_id: int,
        *,
        phases: bool = False,
    ) -> None:
        self._phases = phases  # the stream begins at once and tells each phase as it begins
        self._exchange, self._order, self._ticket = exchange, order, ticket
        self._project_id = project_id
        prefix = "chatcmpl-" if order.kind == "chat" else "cmpl-"
        self._answer = Answer(order, model, prefix + ticket.entry.id)
        self._first_s: float | None = None  # from its arrival until the first piece of text
        self._last_s: float | None = None
        self._open = False  # the stream's headers are out
        self._role_sent = False

    async def carry_on(self) -> None:
        if self._order.stream:
            await self._stream()
        else:
            await self._whole()

    # -- whole ------------------------------------------------------------------------------------------

    async def _whole(self) -> None:
        async for event in self._ticket.events():
            if not isinstance(event, Waiting):
                self._take(event)
        body = self._answer.whole(self._metrics())
        await self._exchange.answer(body, headers=self._headers())

    # -- streamed ---------------------------------------------------------------------------------------

    async def _stream(self) -> None:
        if self._phases:
            await self._begin()
        async for event in self._ticket.events(first_look_s=HEADERS_WITHIN_S):
            if self._phases:
                await self._exchange.events([await self._phase(event)])
            if isinstance(event, Waiting):
                text = await self._waiting_text(event)
                await self._begin(text)
                await self._exchange.comment(text)
            elif event[0] != "taken":
                await self._begin()
                await self._exchange.events(self._chunks(event))
        await self._exchange.done()

    async def _phase(self, event: Message | Waiting) -> dict[str, Any]:
        """What the request is at now, in ms after its arrival: an object beside the chunks of the API."""
        at_ms = (time.monotonic() - self._ticket.begun) * 1e3
        told: dict[str, Any] = {"object": "phasegate.phase", "at_ms": at_ms}
        if not isinstance(event, Waiting):
            return told | {"phase": event[0]}
        if event.taken:
            return told | {"phase": "loading" if event.loading else "work"}
        number = None
        if event.run_id is not None:
            number = await database_sync_to_async(_own_run_number)(event.run_id, self._project_id)
        held = {"run": number, "held": event.run_id is not None}
        return told | {"phase": "waiting", "depth": event.depth} | held

    async def _begin(self, waiting: str = "") -> None:
        if self._open:
            return
        self._open = True
        await self._exchange.open_stream(self._headers() | ({"x-phasegate-wait": waiting} if waiting else {}))

    def _chunks(self, event: Message) -> list[dict[str, Any]]:
        at = len(self._answer.text)
        self._take(event)
        match event:
            case ["queued", *_]:
                return []  # clients take the first chunk for the first token, so the role comes with it
            case ["text", _, _, piece, _, logprobs]:
                return [*self._first_chunk(), self._answer.piece_chunk(piece, logprobs, at)]
            case _:
                return [*self._first_chunk(), *self._answer.last_chunks(self._metrics())]

    def _first_chunk(self) -> list[dict[str, Any]]:
        if self._role_sent:
            return []
        self._role_sent = True
        return self._answer.first_chunk()

    # -- both -------------------------------------------------------------------------------------------

    def _take(self, event: Message) -> None:
        match event:
            case ["queued", _, _, prompt_tokens]:
                self._answer.prompt_tokens = prompt_tokens
            case ["text", _, _, piece, tokens, logprobs]:
                self._last_s = time.monotonic() - self._ticket.begun
                self._first_s = self._first_s or self._last_s
                self._answer.add(piece, tokens, logprobs)
            case ["end", _, _, facts]:
                self._answer.end(facts)

    def _headers(self) -> Headers:
        """Requests that stood in front of this one when it came."""
        return {"x-phasegate-queue-depth": str(self._ticket.depth)}

    def _metrics(self) -> dict[str, Any] | None:
        """The split of this answer's time; None where it was not asked for.

        `waited_ms`, `ttft_ms` and `e2e_ms` are by this process's clock, from the arrival of the request; the
        phases are by the engine's own.
        """
        if not self._order.metrics:
            return None
        ticket = self._ticket
        waited_s = None if ticket.taken_at is None else ticket.taken_at - ticket.begun
        own = {"waited_ms": waited_s, "ttft_ms": self._first_s, "e2e_ms": self._last_s}
        return {name: None if s is None else s * 1e3 for name, s in own.items()} | self._answer.facts[
            "metrics"
        ]

    async def _waiting_text(self, waiting: Waiting) -> str:
        """Why the answer has not begun; a run of another project is not named."""
        if waiting.taken:
            return "loading the model" if waiting.loading else "at work"
        if waiting.run_id is None:
            return f"waiting: {waiting.depth} requests in front"
        number = await database_sync_to_async(_own_run_number)(waiting.run_id, self._project_id)
        run = "a run of another project" if number is None else f"run {number}"
        return f"waiting for {run}, {waiting.depth} requests in front"


def _own_run_number(run_id: int, project_id: int) -> int | None:
    return Run.objects.filter(pk=run_id, project_id=project_id).values_list("number", flat=True).first()
