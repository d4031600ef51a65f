"""The measuring core on the command line: measure, simulate, calibrate, conformance."""

import argparse
import asyncio
import math
import os
import signal
import sys
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, NoReturn

from inference.errors import InferenceError, InputError, RequestRejected, TargetUnavailable
from inference.load.calibration import calibrate
from inference.load.generator import LoadPlan, LoadState
from inference.load.session import measure, prepare_folder, write_json, write_session
from inference.load.simulator import SimulatedTimes, serve
from inference.stats import PERCENTILES
from inference.targets.base import Target
from inference.targets.embedded import EngineTarget
from inference.targets.openai import OpenAITarget
from inference.targets.openai_conformance import conformance
from inference.workload.arrivals import gap_shape
from inference.workload.requests_file import read_requests
from inference.workload.tokenizer import load_tokenize

MEASURED, BAD_INPUT, NO_TARGET, INVALID, INTERRUPTED = 0, 2, 3, 4, 130
BROKEN = 1  # our own fault

DTYPES = ("auto", "bfloat16", "float32", "int8", "int4")
ENGINE_OPTIONS = ("device", "dtype", "max_batch", "kv_blocks", "threads", "no_prefix_cache", "speculate")
ENDPOINT_OPTIONS = ("model", "api_key_env", "endpoint", "server_metrics", "tokenizer", "retry_throttled")


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, and where to read more."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message} (see {self.prog} --help)")


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit code (0 measured, 2 input, 3 target, 4 invalid, 130 interrupted)."""
    try:
        options = _parser().parse_args(arguments)
        code: int = options.command(options)
        return code
    except (InputError, RequestRejected) as fault:
        return _complain(fault, BAD_INPUT)
    except TargetUnavailable as fault:
        return _complain(fault, NO_TARGET)
    except KeyboardInterrupt:
        return _complain("interrupted before anything was measured", INTERRUPTED)
    except (InferenceError, OSError) as fault:
        return _complain(fault, BAD_INPUT)
    except Exception as fault:
        return _complain(f"internal error: {type(fault).__name__}: {fault}", BROKEN)


def _complain(what: object, code: int) -> int:
    print(f"phasegate: {' '.join(str(what).split())}", file=sys.stderr)
    return code


# -- commands ------------------------------------------------------------------------------------------


def _measure(options: argparse.Namespace) -> int:
    requests = read_requests(options.requests)
    if options.arrival is not None:
        if options.rate is None:
            raise InputError("--arrival needs --rate")
        gap_shape(options.arrival)
    plan = LoadPlan(
        concurrency=options.concurrency,
        rate=options.rate,
        arrival=options.arrival or "constant",
        warmup=options.warmup,
        timeout_s=options.timeout,
        seed=options.seed,
    )
    limits = [_limit(text) for text in options.limit]
    target = _target(options)
    prepare_folder(options.out)

    async def run(stop: asyncio.Event) -> int:
        progress = None if options.quiet else _Progress()
        if progress:
            progress.say(f"opening {options.target} …")
        try:
            info = await _unless(stop, target.open())
            session = await measure(
                target,
                info,
                requests,
                plan,
                limits=limits,
                stop=stop,
                on_tick=progress.tick if progress else None,
            )
        finally:
            await target.close()
        write_session(session, options.out)
        if progress:
            progress.end()
            _report(session.summary)
        if session.result.interrupted:
            return INTERRUPTED
        if not session.summary["validity"]["valid"]:
            return _complain("; ".join(session.summary["validity"]["reasons"]), INVALID)
        return MEASURED

    return _run_until_signal(run)


def _simulate(options: argparse.Namespace) -> int:
    times = SimulatedTimes(
        ttft_ms=options.ttft_ms, itl_ms=options.itl_ms, output_tokens=options.output_tokens
    )

    def ready(port: int) -> None:
        print(f"simulating on http://127.0.0.1:{port}/v1", flush=True)

    async def run(stop: asyncio.Event) -> int:
        await serve(times, options.port, options.log, ready=ready, until=stop.wait)
        return MEASURED

    return _run_until_signal(run)


def _calibrate(options: argparse.Namespace) -> int:
    if options.concurrency < 1:
        raise InputError("--concurrency must be at least 1")
    if options.out:
        prepare_folder(options.out)

    async def run(stop: asyncio.Event) -> int:
        found = await _unless(stop, calibrate(options.concurrency))
        if options.out:
            write_json(options.out / "calibration.json", found)
        for name in ("read_error_ms", "first_read_error_ms", "gap_error_ms", "request_error_ms"):
            print(_figures_line(name, found[name]))
        for name in ("dispatch_delay_ms", "loop_lag_ms"):
            print(_figures_line(name, found["self_check"][name]))
        if not found["validity"]["valid"]:
            return _complain("; ".join(found["validity"]["reasons"]), INVALID)
        return MEASURED

    return _run_until_signal(run)


def _conformance(options: argparse.Namespace) -> int:
    if options.out:
        prepare_folder(options.out)

    async def run(stop: asyncio.Event) -> int:
        key = _api_key(options.api_key_env)
        found = await _unless(stop, conformance(options.target, options.model, api_key=key))
        if options.out:
            write_json(options.out / "conformance.json", found)
        for habit in found["habits"]:
            print(f"{habit['name']:28} {habit['seen']}   ({habit['why_it_matters']})")
        return MEASURED

    return _run_until_signal(run)


# -- targets -------------------------------------------------------------------------------------------


def _target(options: argparse.Namespace) -> Target:
    kind, _, rest = options.target.partition(":")
    if kind == "engine" and rest:
        _refuse(options, ENDPOINT_OPTIONS, "http targets")
        return _engine(options, rest)
    if kind in ("http", "https"):
        _refuse(options, ENGINE_OPTIONS, "engine targets")
        if not options.model:
            raise InputError("an http target needs --model NAME")
        return OpenAITarget(
            options.target,
            options.model,
            api_key=_api_key(options.api_key_env),
            endpoint=options.endpoint or "chat",
            tokenize=load_tokenize(options.tokenizer) if options.tokenizer else None,
            throttle_retries=options.retry_throttled or 0,
            server_metrics_url=options.server_metrics,
        )
    raise InputError(f"target {options.target!r} must be engine:PATH or http://host:port/v1")


def _engine(options: argparse.Namespace, path: str) -> EngineTarget:
    names = ("device", "dtype", "max_batch", "kv_blocks", "threads", "speculate")
    given = {name: getattr(options, name) for name in names}
    settings: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    return EngineTarget(path, prefix_cache=not options.no_prefix_cache, **settings)


def _refuse(options: argparse.Namespace, names: tuple[str, ...], kind: str) -> None:
    for name in names:
        if getattr(options, name):
            raise InputError(f"--{name.replace('_', '-')} is for {kind} only")


def _api_key(variable: str | None) -> str | None:
    if variable is None:
        return None
    key = os.environ.get(variable)
    if not key:
        raise InputError(f"environment variable {variable} (--api-key-env) is not set")
    return key


def _limit(text: str) -> dict[str, Any]:
    """A limit from `METRIC:PERCENTILE:MAX`, e.g. `ttft_ms:p95:800`."""
    metric, _, rest = text.partition(":")
    percentile, _, maximum = rest.partition(":")
    try:
        value = float(maximum)
    except ValueError:
        value = -1.0
    if not metric or percentile not in {*(f"p{p}" for p in PERCENTILES), "max"} or not 0 <= value < math.inf:
        raise InputError(f"--limit must look like ttft_ms:p95:800, not {text!r}")
    return {"metric": metric, "percentile": percentile, "max": value}


# -- running and reporting -----------------------------------------------------------------------------


def _run_until_signal(run: Any) -> int:
    """Run a command with an event that SIGINT and SIGTERM set; the second signal ends at once."""

    async def guarded() -> int:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()

        def asked(number: int) -> None:
            stop.set()
            loop.remove_signal_handler(number)  # from now on the default, for the impatient

        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, asked, number)
        return int(await run(stop))

    return asyncio.run(guarded())


async def _unless(stop: asyncio.Event, work: Coroutine[Any, Any, Any]) -> Any:
    """The result of `work`; KeyboardInterrupt when `stop` is set first."""
    task = asyncio.ensure_future(work)
    stopper = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({task, stopper}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise KeyboardInterrupt
        return task.result()
    finally:
        for waiting in (task, stopper):
            waiting.cancel()
        await asyncio.gather(task, stopper, return_exceptions=True)


class _Progress:
    """How far the load is, on standard error: one moving line on a terminal, else a line now and then."""

    CHANGED_EVERY_S, SAME_EVERY_S = 2.0, 20.0

    def __init__(self) -> None:
        self._moving = sys.stderr.isatty()
        self._said, self._said_s = "", 0.0

    def say(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def tick(self, state: LoadState) -> None:
        line = (
            f"{state.phase}: {state.done}/{state.total} done, {state.failed} failed, "
            f"{len(state.in_flight)} under way"
        )
        if self._moving:
            print(f"\r{line:70}", end="", file=sys.stderr, flush=True)
            return
        now_s = time.monotonic()
        if now_s - self._said_s >= (self.SAME_EVERY_S if line == self._said else self.CHANGED_EVERY_S):
            self._said, self._said_s = line, now_s
            self.say(line)

    def end(self) -> None:
        if self._moving:
            print(file=sys.stderr)


def _report(summary: dict[str, Any]) -> None:
    outcomes = ", ".join(f"{name} {n}" for name, n in summary["requests"].items() if n)
    print(f"requests: {outcomes or 'none'}; latencies from {summary['latency_from']}")
    for name in ("ttft_ms", "tpot_ms", "queue_wait_ms", "prefill_ms", "decode_ms", "e2e_ms"):
        print(_figures_line(name, summary[name]))
    rate = summary["output_tokens_per_second"]
    print(f"output tokens/s: {'not observed' if rate is None else format(rate, '.1f')}")
    for reason in summary["validity"]["reasons"]:
        print(f"not valid: {reason}")
    for lack in summary["validity"]["lacks"]:
        print(f"lacks: {lack}")


def _figures_line(name: str, figures: dict[str, Any]) -> str:
    if not figures["n"]:
        return f"{name:22} not observed"
    shown = "  ".join(f"{key} {figures[key]:.2f}" for key in ("p50", "p90", "p95", "p99", "max"))
    thin = "  (p99 thin)" if figures["thin"] else ""
    return f"{name:22} n {figures['n']}  {shown}{thin}"


def _parser() -> _Parser:
    parser = _Parser(prog="python -m inference", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=_Parser)
    _add_measure(commands.add_parser("measure", help="send requests to a target and write what was measured"))

    simulate = commands.add_parser("simulate", help="serve answers of known times: the ground truth")
    simulate.add_argument("--port", type=int, required=True, help="port on 127.0.0.1 (0: any free one)")
    simulate.add_argument("--ttft-ms", type=float, default=200)
    simulate.add_argument("--itl-ms", type=float, default=20)
    simulate.add_argument("--output-tokens", type=int, default=64)
    simulate.add_argument("--log", type=Path, help="JSON lines: when each byte was written")
    simulate.set_defaults(command=_simulate)

    calibration = commands.add_parser("calibrate", help="measure this client's own error")
    calibration.add_argument("--concurrency", type=int, required=True)
    calibration.add_argument("--out", type=Path)
    calibration.set_defaults(command=_calibrate)

    habits = commands.add_parser("conformance", help="which stream habits an endpoint has")
    habits.add_argument("--target", required=True)
    habits.add_argument("--model", required=True)
    habits.add_argument("--api-key-env", metavar="VAR")
    habits.add_argument("--out", type=Path)
    habits.set_defaults(command=_conformance)
    return parser


def _add_measure(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_measure)
    parser.add_argument("--target", required=True, help="engine:PATH or http://host:port/v1")
    parser.add_argument("--requests", required=True, metavar="FILE.jsonl")
    parser.add_argument("--out", required=True, type=Path, metavar="DIR")
    parser.add_argument("--concurrency", type=int, help="closed loop; with --rate: the client's slots")
    parser.add_argument("--rate", type=float, help="open loop: requests a second")
    parser.add_argument("--arrival", help="constant, poisson or gamma:SHAPE")
    parser.add_argument("--warmup", type=int, default=0, help="extra requests before the window")
    parser.add_argument("--timeout", type=float, help="seconds for one request")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", action="append", default=[], metavar="METRIC:PERCENTILE:MAX")
    parser.add_argument("--quiet", action="store_true")
    engine = parser.add_argument_group("engine targets")
    engine.add_argument(
        "--device", metavar="auto|cpu|cuda[:N]", help="where it computes (auto: a GPU if any)"
    )
    engine.add_argument("--dtype", choices=DTYPES)
    engine.add_argument("--max-batch", type=int)
    engine.add_argument("--kv-blocks", type=int)
    engine.add_argument("--threads", type=int)
    engine.add_argument("--no-prefix-cache", action="store_true")
    engine.add_argument(
        "--speculate", metavar="ngram|draft:PATH", help="guess tokens: prompt lookup, or a small draft model"
    )
    http = parser.add_argument_group("http targets")
    http.add_argument("--model")
    http.add_argument("--api-key-env", metavar="VAR")
    http.add_argument("--endpoint", choices=("chat", "completions"))
    http.add_argument("--server-metrics", metavar="URL|auto")
    http.add_argument("--tokenizer", type=Path, metavar="DIR", help="counts tokens where no usage is sent")
    http.add_argument("--retry-throttled", type=int, metavar="N", help="repeat a 429 or 503 up to N times")


if __name__ == "__main__":
    sys.exit(main())
