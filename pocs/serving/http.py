"""The live API over HTTP: `/v1/models`, `/v1/chat/completions`, `/v1/completions`, and the playground.

An ASGI application of its own, beside the site's: an answer that streams for minutes, or waits behind a run,
costs a coroutine here, and would cost a thread behind the site's middlewares.
"""

import asyncio
import json
import logging
import re
from typing import Any

from channels.db import database_sync_to_async
from django.conf import settings
from django.http.request import split_domain_port, validate_host

from pocs.common.middleware import sane_request_id
from pocs.serving.access import Caller, caller_of
from pocs.serving.conversation import Conversation
from pocs.serving.errors import ApiError
from pocs.serving.exchange import Exchange, Gone, Receive, Send
from pocs.serving.limits import limits
from pocs.serving.line import Line
from pocs.serving.orders import Kind, parse
from pocs.serving.visitors import visitor_of

logger = logging.getLogger(__name__)

PREFIX = "/v1/"
#: where the playground asks, with the session of a signed-in person instead of a token
PLAYGROUND = re.compile(r"/projects/(\d{1,18})/playground/answer/")
KINDS: dict[str, Kind] = {"/v1/chat/completions": "chat", "/v1/completions": "text"}


class LiveApi:
    """Answers `/v1/…`; everything else goes on to `otherwise`."""

    def __init__(self, *, url: str, otherwise: Any = None) -> None:
        self._url, self._otherwise = url, otherwise
        self._lines: dict[asyncio.AbstractEventLoop, Line] = {}

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        asked_by_page = PLAYGROUND.fullmatch(scope["path"])
        if self._otherwise is not None and not (asked_by_page or scope["path"].startswith(PREFIX)):
            await self._otherwise(scope, receive, send)
            return
        given = dict(scope["headers"]).get(b"x-request-id", b"").decode("latin-1")
        exchange = Exchange(scope, receive, send, sane_request_id(given))
        try:
            if asked_by_page:
                await self._answer_page(exchange, scope, int(asked_by_page[1]))
            else:
                await self._answer(exchange)
        except Gone:
            return
        except ApiError as error:
            await exchange.refuse(error)
        except Exception as error:  # without the request itself: it holds what no log may show
            logger.exception("live request %s failed", exchange.request_id)
            text = f"The request failed on our side ({type(error).__name__}); the log has more."
            await exchange.refuse(ApiError(500, text, type="server_error"))

    async def _answer(self, exchange: Exchange) -> None:
        _check_host(exchange)
        caller = await database_sync_to_async(caller_of)(
            exchange.headers.get("authorization", ""), exchange.address
        )
        kind = KINDS.get(exchange.path)
        if kind is not None:
            _check_method(exchange, "POST")
            raw = _decoded(await exchange.body(limits().body_bytes))
            await exchange.while_there(self._converse(exchange, caller, kind, raw))
            return
        await self._models(exchange, caller)

    async def _answer_page(self, exchange: Exchange, scope: dict[str, Any], project_id: int) -> None:
        """One streamed chat of the playground: the same line and limits, its phases told as they happen."""
        _check_host(exchange)
        _check_method(exchange, "POST")
        caller = await database_sync_to_async(visitor_of)(scope, project_id)
        raw = _decoded(await exchange.body(limits().body_bytes))
        await exchange.while_there(self._converse(exchange, caller, "chat", raw, phases=True))

    async def _models(self, exchange: Exchange, caller: Caller) -> None:
        name = exchange.path.removeprefix("/v1/models").removeprefix("/").removesuffix("/")
        if not exchange.path.startswith("/v1/models"):
            text = f"Unknown request URL: {exchange.method} {exchange.path[:80]}."
            raise ApiError(404, text, code="unknown_url")
        _check_method(exchange, "GET")
        if name:
            await exchange.answer(caller.model(name).body(caller.owner))
        else:
            models = [model.body(caller.owner) for model in caller.models.values()]
            await exchange.answer({"object": "list", "data": models})

    async def _converse(
        self, exchange: Exchange, caller: Caller, kind: Kind, raw: Any, *, phases: bool = False
    ) -> None:
        order = parse(kind, raw)
        model = caller.model(order.model)
        fields = {"fields": order.fields}
        place = self._line().place(
            fields,
            target_id=model.target_id,
            engine=model.engine,
            asker=caller.asker,
            limits=limits(),
        )
        async with place as ticket:
            talk = Conversation(exchange, order, model.id, ticket, caller.project_id, phases=phases)
            await talk.carry_on()

    def _line(self) -> Line:
        """This loop's line to the engine workers."""
        loop = asyncio.get_running_loop()
        if loop not in self._lines:
            self._lines[loop] = Line(self._url)
        return self._lines[loop]

    async def close(self) -> None:
        """Give up this loop's connections."""
        line = self._lines.pop(asyncio.get_running_loop(), None)
        if line is not None:
            await line.close()


def _check_host(exchange: Exchange) -> None:
    """As the site's middlewares: known hosts only, and HTTPS where the site insists on it."""
    domain, _ = split_domain_port(exchange.headers.get("host", ""))
    if not validate_host(domain, settings.ALLOWED_HOSTS):
        raise ApiError(400, "The request names a host that this site does not serve.", code="unknown_host")
    if settings.SECURE_SSL_REDIRECT and not _is_secure(exchange):
        raise ApiError(403, "Send a token over HTTPS only.", code="https_required")


def _is_secure(exchange: Exchange) -> bool:
    proxy = settings.SECURE_PROXY_SSL_HEADER
    if proxy is None:
        return exchange.scheme == "https"
    name = proxy[0].removeprefix("HTTP_").replace("_", "-").lower()
    return exchange.headers.get(name, "").split(",")[0].strip() == proxy[1]


def _check_method(exchange: Exchange, wanted: str) -> None:
    if exchange.method != wanted:
        text = f"Not allowed to {exchange.method} on {exchange.path[:80]}; use {wanted}."
        raise ApiError(405, text, code="method_not_supported")


def _decoded(body: bytes) -> Any:
    try:
        return json.loads(body, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        text = f"We could not parse the JSON body of your request: {str(error)[:120]}."
        raise ApiError(400, text, code="invalid_json") from error


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")
