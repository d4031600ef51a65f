"""How target tests run requests: against a scripted server, through the load generator."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from inference.load.generator import LoadPlan, LoadResult, run_load
from inference.requests import GenerationRequest
from inference.targets.openai import OpenAITarget

from .fake_server import Choose, FakeServer, Script


def request(number: int = 1, **fields: Any) -> GenerationRequest:
    fields.setdefault("messages", ({"role": "user", "content": "hello"},))
    return GenerationRequest(id=f"q{number}", **fields)


Ask = Callable[..., Awaitable[LoadResult]]


@pytest.fixture
def ask() -> Ask:
    """`await ask(script or choose, requests=…, plan=…, server=…, **target options)`."""

    async def run(
        script: Script | Choose,
        *,
        requests: list[GenerationRequest] | None = None,
        plan: LoadPlan | None = None,
        servers: list[FakeServer] | None = None,
        **options: Any,
    ) -> LoadResult:
        choose: Choose = (lambda body, n: script) if isinstance(script, Script) else script
        async with FakeServer(choose) as server:
            if servers is not None:
                servers.append(server)
            target = OpenAITarget(server.url, "m", **options)
            await target.open()
            try:
                return await run_load(target, requests or [request()], plan or LoadPlan(concurrency=1))
            finally:
                await target.close()

    return run
