"""Measure the way of a live event from a worker's transaction to the page, with many viewers.

    PHASEGATE_VAR=… scripts/bench_live.py --url http://127.0.0.1:8000 --viewers 20 --events 300 --rate 10

Needs a running embedded site (`make run`). A process of its own writes events to the demo project's
stream as a worker does; each viewer is a WebSocket of its own. The time of an event runs from just
before it is written to its arrival in the viewer's socket, on one machine and so on one clock.
"""

import argparse
import asyncio
import http.cookiejar
import json
import sys
import time
import urllib.parse
import urllib.request
import uuid
from pathlib import Path
from statistics import quantiles

from websockets.asyncio.client import connect

ROOT = Path(__file__).resolve().parent.parent

#: the worker: a Django process that writes events and nothing else
WORKER = """
import os, sys, time
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "phasegate.settings.embedded")
import django
django.setup()
from pocs.common import events
stream, mark, count, rate = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
begin = time.time() + 0.5
for i in range(count):
    time.sleep(max(0.0, begin + i / rate - time.time()))
    events.emit(stream, "bench", {"mark": mark, "i": i, "sent": time.time(), "filler": "x" * 400})
time.sleep(2)
"""


def sign_in(url: str, username: str, password: str) -> str:
    """Cookie header of a signed-in session."""
    jar = http.cookiejar.CookieJar()
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
    opener.open(f"{url}/sign-in/").read()
    token = next(cookie.value for cookie in jar if "csrf" in cookie.name) or ""
    form = {"username": username, "password": password, "csrfmiddlewaretoken": token}
    request = urllib.request.Request(
        f"{url}/sign-in/", data=urllib.parse.urlencode(form).encode(), headers={"Referer": f"{url}/sign-in/"}
    )
    opener.open(request).read()
    return "; ".join(f"{cookie.name}={cookie.value}" for cookie in jar)


async def view(
    *, url: str, stream: str, cookie: str, mark: str, count: int, connected: asyncio.Barrier
) -> list[tuple[int, float]]:
    """(index, milliseconds) of each event of this measurement in the order in which it arrived."""
    address = url.replace("http", "ws", 1) + f"/ws/streams/{stream}/?after=0"
    seen: list[tuple[int, float]] = []
    async with connect(address, additional_headers={"Cookie": cookie}, origin=url) as socket:  # type: ignore[arg-type]
        await connected.wait()
        while len(seen) < count:
            data = json.loads(await asyncio.wait_for(socket.recv(), 60))["data"]
            if data.get("mark") == mark:
                seen.append((data["i"], (time.time() - data["sent"]) * 1000))
    return seen


async def measure(arguments: argparse.Namespace, demo: dict[str, object]) -> dict[str, object]:
    account = demo["accounts"]["lead"]  # type: ignore[index]
    cookie = sign_in(arguments.url, account["username"], account["password"])
    stream = f"project:{demo['project']}"
    mark = uuid.uuid4().hex
    connected = asyncio.Barrier(arguments.viewers + 1)
    viewers = [
        asyncio.create_task(
            view(
                url=arguments.url,
                stream=stream,
                cookie=cookie,
                mark=mark,
                count=arguments.events,
                connected=connected,
            )
        )
        for _ in range(arguments.viewers)
    ]
    await connected.wait()
    await asyncio.sleep(1)
    command = [sys.executable, "-P", "-c", WORKER, stream, mark, str(arguments.events), str(arguments.rate)]
    worker = await asyncio.create_subprocess_exec(*command, cwd=ROOT)
    rows = await asyncio.gather(*viewers)
    await worker.wait()
    times = sorted(ms for row in rows for _, ms in row)
    cuts = quantiles(times, n=100)
    return {
        "viewers": arguments.viewers,
        "events": arguments.events,
        "rate_per_s": arguments.rate,
        "n": len(times),
        "p50_ms": round(cuts[49], 1),
        "p95_ms": round(cuts[94], 1),
        "p99_ms": round(cuts[98], 1),
        "max_ms": round(times[-1], 1),
        "in_order_without_gap": all([i for i, _ in row] == list(range(arguments.events)) for row in rows),
    }


def main() -> int:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--accounts", type=Path, default=ROOT / "var" / "demo-accounts.json")
    parser.add_argument("--viewers", type=int, default=20)
    parser.add_argument("--events", type=int, default=300)
    parser.add_argument("--rate", type=float, default=10.0, help="events a second")
    arguments = parser.parse_args()
    print(json.dumps(asyncio.run(measure(arguments, json.loads(arguments.accounts.read_text())))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
