"""A large run through the site's own way of recording it: how long it takes to state and to show.

`python -P -m benchmarks.records --requests 100000` makes a database of its own in a temporary folder
(SQLite), executes one run against a target that only makes up stamps, and times its end, its pages and its
exports. The process is the worker: its peak of resident memory is the worker's. Status 1 when a target is
missed.
"""

import argparse
import asyncio
import logging
import os
import resource
import statistics
import sys
import tempfile
import time
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks import tables

SUMMARY_S, PAGE_MS, WORKER_MIB = 10.0, 300.0, 1024.0
TOKENS = 64
VISITS = 7
HEAD = ("measured", "took", "target", "met")


class MadeUp:
    """A target that answers after `pause_s` with stamps as of 200 ms and then a token every 20 ms."""

    process_id = 1

    def __init__(self, pause_s: float) -> None:
        self.pause_s = pause_s
        self.last_ended_s = 0.0

    async def open(self) -> Any:
        from inference.targets.base import TargetInfo

        return TargetInfo("http", "made up", {"server": "none"}, 4096)

    async def run(self, request: Any, trace: Any) -> None:
        await asyncio.sleep(self.pause_s)
        now = time.monotonic_ns()
        shift = (trace.index * 7919) % 3_000_000
        trace.sent_ns = now - 1_460_000_000 - shift
        trace.scheduled_ns = trace.dispatched_ns = trace.ready_ns = trace.sent_ns
        first = trace.sent_ns + 200_000_000 + shift
        trace.role_ns = trace.sent_ns + 4_000_000
        trace.reads = [(first + i * 20_000_000 + (i * shift) % 900_000, 1) for i in range(TOKENS)]
        trace.first_visible_ns = trace.first_answer_ns = first
        trace.input_tokens, trace.output_tokens, trace.output_tokens_source = 64, TOKENS, "usage"
        trace.text, trace.finish_reason, trace.ended, trace.status = (
            "word " * TOKENS,
            "length",
            "orderly",
            200,
        )
        trace.closed_ns = now
        self.last_ended_s = time.time()

    async def telemetry(self) -> dict[str, Any]:
        return {"running": 64, "waiting": 0}

    def tokenize(self, text: str) -> None:
        return None

    async def close(self) -> None:
        """Nothing is held."""


def main() -> int:
    """Run, judge, print a table in Markdown."""
    options = _options()
    with tempfile.TemporaryDirectory(prefix="phasegate-records-") as folder:
        os.environ |= {"PHASEGATE_VAR": folder, "DJANGO_SETTINGS_MODULE": "phasegate.settings.embedded"}
        (Path(folder) / "media").mkdir()
        rows = _measure(options, Path(folder))
    print(tables.text(HEAD, rows, markdown=True))
    return 1 if any(row[3] == "NO" for row in rows) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--pause", type=float, default=0.05, help="seconds that each request really takes")
    return parser.parse_args()


def _measure(options: argparse.Namespace, folder: Path) -> list[tuple[str, str, str, str]]:
    import django

    django.setup()
    logging.disable(logging.WARNING)  # there is no broker here to publish events to
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    import_module("phasegate.urls")  # pages are part of it: what is wrong with them shows before the run
    run, person = _prepared(options)
    at_start_mib = _peak_mib()
    target = MadeUp(options.pause)
    began = time.monotonic()
    _execute(run, target)
    took_s = time.monotonic() - began
    peak_mib = _peak_mib()
    run.refresh_from_db()
    if run.state != "complete":
        raise SystemExit(f"the run ended {run.state}: {run.error}")
    if sum(run.summary["requests"].values()) != options.requests or run.requests.count() != options.requests:
        raise SystemExit("requests are missing")
    summary_s = run.finished_at.timestamp() - target.last_ended_s
    segments = sum(path.stat().st_size for path in (folder / "media").rglob("*.pgrec")) / 2**20
    database = sum(path.stat().st_size for path in folder.glob("*.sqlite3*")) / 2**20
    rows = [
        _row("summary after the last request", summary_s, "s", SUMMARY_S),
        _row("peak of the worker's memory", peak_mib, "MiB", WORKER_MIB),
        _row("of it before the run", at_start_mib, "MiB", None),
        _row("the run as a whole, other definitions included", took_s, "s", None),
        _row("requests a second", options.requests / took_s, "", None),
        _row("segments of raw records", segments, "MiB", None),
        _row("database", database, "MiB", None),
    ]
    print(tables.text(HEAD, rows, markdown=True), file=sys.stderr)  # kept if a page should fail
    return rows + _visits(run, person)


def _prepared(options: argparse.Namespace) -> tuple[Any, Any]:
    """A queued run of one scenario with so many requests, and somebody who may see it."""
    from pocs.runs.models import Run
    from tests.factories import make_cast, make_scenario_version, make_target

    cast = make_cast()
    version = make_scenario_version(
        cast.project,
        "large",
        requests=options.requests,
        concurrency=options.concurrency,
        input_tokens=64,
        output_tokens=TOKENS,
        distinct_prompts=1000,
        warmup_requests=0,  # made-up stamps lie in the past, and would overlap it
    )
    target = make_target(cast.project, name="made-up")
    run = Run.objects.create(
        project=cast.project, number=1, scenario_version=version, target=target, requested_by=cast.lead
    )
    return run, cast.lead


def _execute(run: Any, target: MadeUp) -> None:
    from pocs.runs import execution

    @contextmanager
    def measurable(_target: Any, **_named: Any) -> Any:
        yield target

    execution.measurable = measurable  # type: ignore[assignment]
    execution.run_execute(run.pk, worker="benchmark")


def _visits(run: Any, person: Any) -> list[tuple[str, str, str, str]]:
    """Pages and exports of the run as the server makes them."""
    from django.conf import settings
    from django.test import Client

    settings.ALLOWED_HOSTS = ["*"]
    settings.STORAGES["staticfiles"] = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    client = Client()
    client.force_login(person)
    client.get(f"/runs/{run.pk}/")  # templates are compiled once
    rows = []
    pages = (
        ("run page", "", PAGE_MS),
        ("list of requests", "requests/", PAGE_MS),
        ("one request", "requests/777/", None),
    )
    for name, path, most in pages:
        took = []
        for _ in range(VISITS):
            began = time.perf_counter()
            response = client.get(f"/runs/{run.pk}/{path}")
            took.append((time.perf_counter() - began) * 1000)
            assert response.status_code == 200, (path, response.status_code)
        rows.append(_row(name, statistics.median(took), "ms", most))
    for form in ("csv", "jsonl", "parquet"):
        before, began = _peak_mib(), time.perf_counter()
        answer: Any = client.get(f"/runs/{run.pk}/export/{form}/")
        size = sum(len(part) for part in answer.streaming_content)
        name = f"export as {form} ({size / 2**20:.0f} MiB, memory +{_peak_mib() - before:.0f} MiB)"
        rows.append(_row(name, time.perf_counter() - began, "s", None))
    return rows


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _row(name: str, took: float, unit: str, most: float | None) -> tuple[str, str, str, str]:
    shown = f"{took:,.1f} {unit}".strip()
    if most is None:
        return name, shown, "–", "–"
    return name, shown, f"≤ {most:,.0f} {unit}", "yes" if took <= most else "NO"


if __name__ == "__main__":
    sys.exit(main())
