"""Measure the engine beside its peers and the limits of the machine, in one run.

    python -P benchmarks/engine.py --dtype bfloat16,float32 --threads 2 \\
        --peer vllm=/path/to/venv/bin/python --peer llama.cpp=/path/to/venv/bin/python

Each peer runs in its own environment and process (`benchmarks/peers/`), is loaded once, and gets the same
token ids. Product and peer are measured in turn, so that other work on the machine falls on both alike; a
row has the medians and ranges of all repetitions, tokens by the wall and processor seconds beside them.
"""

import argparse
import datetime
import json
import os
import platform
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks import arguments as asked
from benchmarks import (
    gguf_files,
    limits,
    machine,
    overhead,
    pairs,
    queueing,
    switches,
    tables,
    timing,
    workloads,
)
from benchmarks.peers.protocol import Absent, Job, Setup
from benchmarks.worker import ROOT, Worker

LOGS = ROOT / "var" / "benchmarks" / "logs"
PARTS: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "overhead": overhead.run,
    "queue": queueing.run,
    "timing": timing.run,
    "switches": switches.run,
}


def say(line: str = "") -> None:
    print(line, flush=True)


def start(module: str, python: str, setup: Setup, name: str, limit_s: float) -> Worker:
    log = LOGS / f"{name}-{setup.dtype}.log"
    return Worker(module, python, setup, log, limit_s)


def start_peer(peer: asked.PeerArguments, arguments: argparse.Namespace, dtype: str) -> Worker:
    """The peer with the model loaded; raises Absent with the reason."""
    model = arguments.model
    if peer.name == "llama.cpp":
        folder = arguments.gguf or ROOT / "var" / "benchmarks"
        packed = gguf_files.source(ROOT / "var" / "downloads", folder)
        if packed is None:
            raise Absent("there is no GGUF file of the default model: var/downloads has no wheel")
        model = gguf_files.convert(packed, dtype, folder)
    setup = Setup(model=str(model), dtype=dtype, threads=arguments.threads, options=peer.options)
    return start(peer.module, peer.python, setup, peer.name, arguments.limit_s)


class Report:
    """What was found; written after every piece, so that a long run that is ended loses nothing."""

    def __init__(self, path: Path | None, facts: dict[str, Any]) -> None:
        self.found: dict[str, Any] = {**facts, "pairs": [], "poisson": [], "absent": []}
        self.rows: list[tuple[str, ...]] = []
        self.poisson_rows: list[tuple[str, ...]] = []
        self._path = path

    def save(self) -> None:
        if self._path is not None:
            self._path.write_text(json.dumps(self.found, indent=2) + "\n", encoding="utf-8")

    def tell(self, *, markdown: bool) -> None:
        if self.rows:
            say()
            say(tables.text(tables.PAIR_HEAD, self.rows, markdown=markdown))
        if self.poisson_rows:
            say(
                f"\nPoisson arrivals at {workloads.POISSON_SHARE:.0%} of the slower side's capacity on mixed:"
            )
            say(tables.text(tables.POISSON_HEAD, self.poisson_rows, markdown=markdown))


class Run:
    """All pairs of one precision."""

    def __init__(
        self, arguments: argparse.Namespace, dtype: str, peaks: machine.Peaks, report: Report
    ) -> None:
        self.arguments, self.dtype, self.peaks = arguments, dtype, peaks
        self._report = report
        self._capacity: dict[str, float] = {}  # tokens a second on `mixed`, of the slower side
        self._shape = limits.shape_of(arguments.model)

    def all(self) -> None:
        options = dict(self.arguments.engine)
        setup = Setup(
            model=str(self.arguments.model),
            dtype=options.pop("dtype", self.dtype),
            threads=self.arguments.threads,
            options=options,
        )
        product = start("product", sys.executable, setup, "product", self.arguments.limit_s)
        say(f"PhaseGate {self.dtype}: {json.dumps(product.facts['engine'])}")
        try:
            for peer in asked.peers(self.arguments):
                self._beside(product, peer)
        finally:
            product.close()

    def _beside(self, product: Worker, peer: asked.PeerArguments) -> None:
        dtype = peer.dtype or self.dtype
        try:
            other = start_peer(peer, self.arguments, dtype)
        except Absent as error:
            self._leave_out(peer.name, "everything", error)
            return
        facts = other.facts
        say(f"{facts['name']} {facts['version']} {dtype}: loaded in {facts['load_s']:.0f} s")
        try:
            for name in workloads.NAMES:
                if name in self.arguments.only:
                    self._pair(product, other, peer.name, dtype, name)
            if workloads.POISSON in self.arguments.only:
                self._poisson(product, other, peer.name, dtype)
        finally:
            other.close()

    def _pair(self, product: Worker, other: Worker, peer: str, dtype: str, name: str) -> None:
        work = workloads.build(name, self.arguments.scale)
        pair = pairs.Pair(name, work.text, peer, self.dtype, dtype, work.counted)
        try:
            pairs.measure(pair, product, other, work.job, self.arguments.repetitions)
        except Absent as error:
            self._leave_out(peer, name, error)
            return
        limit = limits.limit(self._shape, work.job, self.dtype, self.peaks)
        if name == "mixed":
            self._capacity[peer] = min(pair.product_rate.median, pair.other_rate.median)
        self._report.found["pairs"].append(pair.as_json() | {"limit": asdict(limit)})
        self._report.rows.append(tables.pair_row(pair, limit))
        self._report.save()
        say(f"  {name}: {tables.spread(pair.product_rate)} against {tables.spread(pair.other_rate)} tokens/s")

    def _poisson(self, product: Worker, other: Worker, peer: str, peer_dtype: str) -> None:
        """At 70 % of what the slower of both can do on `mixed`."""
        mixed = workloads.build("mixed", self.arguments.scale)
        try:
            other.run(Job(prompts=[mixed.job.prompts[0][:16]], out=2, arrivals_s=[0.0]))  # can it at all?
            capacity = self._capacity.get(peer) or min(
                mixed.counted / one.run(mixed.job).result.wall_s for one in (product, other)
            )
            job, rate = workloads.poisson(mixed, capacity, self.arguments.poisson_requests)
            runs: dict[str, list[Any]] = {"PhaseGate": [], peer: []}
            for _ in range(self.arguments.repetitions):
                runs["PhaseGate"].append(product.run(job))
                runs[peer].append(other.run(job))
        except Absent as error:
            self._leave_out(peer, workloads.POISSON, error)
            return
        for side, measured in runs.items():
            figures = pairs.latencies(measured)
            loads = f"{min(m.load for m in measured):.1f}–{max(m.load for m in measured):.1f}"
            dtype = peer_dtype if side == peer else self.dtype
            row = {"side": side, "peer": peer, "dtype": dtype, "requests_per_s": rate, **figures}
            self._report.found["poisson"].append(row)
            cells = ["–" if value is None else tables.number(value) for value in (rate, *figures.values())]
            self._report.poisson_rows.append((f"{side} {dtype}", *cells, loads))
            say(f"  poisson, {side}: {figures}")
        self._report.save()

    def _leave_out(self, peer: str, what: str, error: Absent) -> None:
        say(f"  {peer}, {what}: left out, {error}")
        left = {"peer": peer, "what": what, "dtype": self.dtype, "reason": str(error)}
        self._report.found["absent"].append(left)


def compare(arguments: argparse.Namespace, report: Report) -> None:
    """Product, peers and limits, for each precision asked for."""
    peaks = machine.measure(arguments.threads)
    say(describe(peaks))
    for name in asked.absent(arguments):
        say(f"{name}: left out, no --peer {name}=PYTHON was given")
    report.found["peaks"] = asdict(peaks)
    with suppress(KeyboardInterrupt):  # what is measured so far is still told
        for dtype in arguments.dtype:
            Run(arguments, dtype, peaks, report).all()
    report.tell(markdown=arguments.markdown)


def describe(peaks: machine.Peaks) -> str:
    int8 = f", {peaks.int8_ops / 1e9:.0f} in 8 bits" if peaks.int8_ops else ""
    return (
        f"At most {peaks.fma_flops / 1e9:.0f} GFLOP/s in float32 and "
        f"{peaks.bfloat16_flops / 1e9:.0f} in bfloat16{int8}; "
        f"{peaks.read_bytes / 1e9:.1f} GB/s from memory ({peaks.source})."
    )


def surroundings(arguments: argparse.Namespace) -> dict[str, Any]:
    """What must be known to judge the figures later."""
    return {
        "measured_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "processor": processor(),
        "cores": len(os.sched_getaffinity(0)),
        "threads": arguments.threads,
        "scale": arguments.scale,
        "repetitions": arguments.repetitions,
        "model": arguments.model.name,
        "python": platform.python_version(),
    }


def processor() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def stop(*_: object) -> None:
    """Ended from outside, it still tells what it has measured."""
    raise KeyboardInterrupt


def main() -> None:
    signal.signal(signal.SIGTERM, stop)
    parser = asked.parser()
    arguments = parser.parse_args()
    asked.check(arguments, parser)
    before = os.getloadavg()[0]
    chosen = [name for name in asked.PARTS if getattr(arguments, name)]
    facts = surroundings(arguments)
    report = Report(arguments.json, facts)
    say(f"{facts['processor']}, {facts['cores']} cores, {arguments.threads} threads, load {before:.1f}")
    if chosen:
        for name in chosen:
            report.found[name] = PARTS[name](arguments)
            report.save()
    else:
        compare(arguments, report)
    report.found["load"] = [before, os.getloadavg()[0]]
    report.save()
    say(f"\nLoad of the machine: {before:.1f} before, {report.found['load'][1]:.1f} after.")


if __name__ == "__main__":
    main()
