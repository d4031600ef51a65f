"""The pages a server keeps beside its API: `/metrics` of the engine, and of its accelerators."""

import asyncio
import ssl
import time
from collections.abc import Sequence
from typing import Any

from inference.targets.dialects import GENERIC, Dialect
from inference.targets.http import ConnectionFailed, ConnectionPool, Endpoint, Fetched, fetch
from inference.targets.server_metrics import Scrape, ServerWindow, read
from inference.telemetry.dcgm import NAMES, device_sample
from inference.telemetry.prometheus import parse

SCRAPE_TIMEOUT_S = 2.0
MAX_PAGE_BYTES = 8 * 1024 * 1024
#: after the load, scrapes are repeated until the counters stand still, so often and so far apart
SETTLE_SCRAPES, SETTLE_EVERY_S = 5, 0.2
AUTO = "auto"


class PageUnreadable(Exception):
    """A page that gave nothing; the sentence says why."""


class MetricsPage:
    """One page in the text format; `headers` go to the endpoint's own origin only."""

    def __init__(
        self, address: Endpoint, context: ssl.SSLContext | None, headers: Sequence[tuple[str, str]]
    ) -> None:
        self.url = address.url
        self._pool = ConnectionPool(address, context)
        self._headers = headers

    async def text(self) -> tuple[str, Fetched]:
        """The page; raises PageUnreadable with one sentence."""
        try:
            found = await fetch(
                self._pool, "", self._headers, timeout_s=SCRAPE_TIMEOUT_S, max_bytes=MAX_PAGE_BYTES
            )
        except TimeoutError as fault:
            raise PageUnreadable(f"{self.url} did not answer within {SCRAPE_TIMEOUT_S:g} s") from fault
        except ConnectionFailed as fault:
            raise PageUnreadable(f"{self.url}: {fault}") from fault
        if found.status != 200:
            raise PageUnreadable(f"{self.url} answered HTTP {found.status}")
        text = found.body.decode("utf-8", errors="replace")
        kind = found.headers.get("content-type", "").lower()
        if "html" in kind or text.lstrip()[:1] == "<":
            raise PageUnreadable(f"{self.url} answered HTML, not metrics")
        if "json" in kind or text.lstrip()[:1] == "{":
            raise PageUnreadable(f"{self.url} answered JSON, not metrics")
        return text, found

    def close(self) -> None:
        self._pool.close()


class ServerPages:
    """Reads the engine's metrics through its dialect along a run, and the accelerators' beside them."""

    def __init__(self, engine: MetricsPage | None, devices: MetricsPage | None = None) -> None:
        self._engine, self._devices = engine, devices
        self.dialect = GENERIC
        self.window = ServerWindow(GENERIC)
        self.problem = ""  # why the first reading gave nothing
        self._reading = asyncio.Lock()

    @property
    def url(self) -> str | None:
        return self._engine.url if self._engine else None

    async def first(self) -> str | None:
        """The page at the start, for detection; None with `problem` set where it can't be read."""
        if self._engine is None:
            return None
        try:
            text, _ = await self._engine.text()
        except PageUnreadable as fault:
            self.problem = str(fault)
            return None
        return text

    def speak(self, dialect: Dialect) -> None:
        """Read the metrics as this server means them from now on."""
        self.dialect, self.window = dialect, ServerWindow(dialect)

    async def sample(self) -> dict[str, Any]:
        """The keys of a telemetry sample; empty where nothing could be read."""
        async with self._reading:
            found = await self._scrape(whole=False)
        return found | await self._device_sample()

    async def begin(self) -> None:
        """The measured window starts now: what the counters say here is its base."""
        async with self._reading:
            self.window.begin()
            await self._scrape(whole=True)

    async def end(self) -> dict[str, Any]:
        """Read until the counters stand still, then what the window holds.

        A server books a request's last step some moments after the client has read its last token.
        """
        async with self._reading:
            before: Scrape | None = None
            for _ in range(SETTLE_SCRAPES if self.readable else 1):
                await self._scrape(whole=True)
                now = self.window.last
                if before is not None and now is not None and now.growths == before.growths:
                    break
                before = now
                await asyncio.sleep(SETTLE_EVERY_S)
        return {
            "url": self.url,
            "problem": self.problem or None,
            "window": self.window.observed(),
            "problems": [{"text": text, "n": n} for text, n in self.window.problems.items()],
        }

    @property
    def readable(self) -> bool:
        """Whether there is a page and a dialect that knows families on it."""
        return self._engine is not None and bool(self.dialect.prefixes)

    async def _scrape(self, *, whole: bool) -> dict[str, Any]:
        if self._engine is None or not self.readable:
            return {}
        at_ns = time.monotonic_ns()
        try:
            text, found = await self._engine.text()
        except PageUnreadable as fault:
            self.window.failed_once(str(fault))
            return {}
        scrape = read(text, self.dialect, at_ns=at_ns, whole=whole)
        if not scrape.families:
            self.window.failed_once(f"{self._engine.url} has none of the families of {self.dialect.title}")
            return {}
        return self.window.add(scrape, took_ms=found.took_ms, size_bytes=len(found.body))

    async def _device_sample(self) -> dict[str, Any]:
        if self._devices is None:
            return {}
        try:
            text, _ = await self._devices.text()
        except PageUnreadable as fault:
            self.window.failed_once(str(fault))
            return {}
        return device_sample(parse(text, NAMES))

    def close(self) -> None:
        for page in (self._engine, self._devices):
            if page is not None:
                page.close()


def server_pages(
    address: Endpoint,
    context: ssl.SSLContext | None,
    headers: Sequence[tuple[str, str]],
    *,
    metrics_url: str | None,
    devices_url: str | None,
) -> ServerPages:
    """The pages of the endpoint at `address`; `auto` is `/metrics` beside its API. Raises InputError."""

    def page(url: str | None) -> MetricsPage | None:
        if not url:
            return None
        at = Endpoint.parse(address.root.url + "/metrics" if url == AUTO else url)
        return MetricsPage(at, context, headers if at.origin == address.origin else ())

    return ServerPages(page(metrics_url), page(devices_url))
