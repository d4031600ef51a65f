"""Finds out by itself which server answers: a few small GETs beside the API, and what was found from what."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

from inference.targets.dialects import DIALECTS, recognise
from inference.targets.dialects.base import Answer, Dialect, Evidence
from inference.targets.http import ConnectionFailed, ConnectionPool, fetch
from inference.telemetry.prometheus import family_names

PROBE_TIMEOUT_S = 2.0
NO_ANSWER = Answer(0, {}, b"")


async def detect(
    root: ConnectionPool,
    models: Answer,
    headers: Sequence[tuple[str, str]] = (),
    *,
    metrics: str | None = None,
) -> tuple[Dialect, dict[str, Any]]:
    """The dialect and its label. `models` is the answer of the model list, `metrics` a page that was read.

    Where the model list gives the server away, only that server's own pages are asked. Nothing that
    fails here is an error: the endpoint is then simply generic.
    """
    families = family_names(metrics) if metrics else frozenset()
    first, label = recognise(Evidence(models, {}, families))
    asked = first.probes if label["name"] != "generic" else _all_probes(DIALECTS)
    probes = dict(
        zip(asked, await asyncio.gather(*(_ask(root, path, headers) for path in asked)), strict=True)
    )
    return recognise(Evidence(models, probes, families))


def _all_probes(dialects: Iterable[Dialect]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(path for dialect in dialects for path in dialect.probes))


async def _ask(root: ConnectionPool, path: str, headers: Sequence[tuple[str, str]]) -> Answer:
    try:
        found = await fetch(root, path, headers, timeout_s=PROBE_TIMEOUT_S)
    except (ConnectionFailed, TimeoutError):
        return NO_ANSWER
    return Answer(found.status, found.headers, found.body)
