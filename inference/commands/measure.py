"""`measure`: send requests to a target and write what was measured."""

import argparse
import asyncio
import math
import shutil
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from inference.commands import workload
from inference.commands.shell import (
    INTERRUPTED,
    INVALID,
    MEASURED,
    Commands,
    Parser,
    Progress,
    api_key,
    complain,
    figures_line,
    run_until_signal,
    unless,
)
from inference.criteria import METRICS, PERCENTILES, normalised
from inference.errors import InputError
from inference.load.division import check_divisible
from inference.load.generator import LoadPlan, run_load
from inference.load.processes import GeneratorProcesses
from inference.load.session import measure, prepare_folder, write_session
from inference.requests import GenerationRequest
from inference.targets.base import Target, TargetInfo
from inference.targets.embedded import EngineTarget
from inference.targets.openai import OpenAITarget
from inference.workload.arrivals import SELF_TIMED_FORMS, parse_shape
from inference.workload.building import build_requests
from inference.workload.reading import Workload
from inference.workload.requests_file import read_requests
from inference.workload.tokenizer import load_tokenize

DTYPES = ("auto", "bfloat16", "float32", "int8", "int4")
ENGINE_OPTIONS = ("device", "dtype", "max_batch", "kv_blocks", "threads", "no_prefix_cache", "speculate")
ENDPOINT_OPTIONS = ("model", "api_key_env", "endpoint", "server_metrics", "tokenizer", "retry_throttled")


def add(commands: Commands) -> None:
    """Add the command and its options."""
    _options(commands.add_parser("measure", help="send requests to a target and write what was measured"))


def _options(parser: Parser) -> None:
    parser.set_defaults(command=_measure)
    parser.add_argument("--target", required=True, help="engine:PATH or http://host:port/v1")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--requests", metavar="FILE.jsonl")
    source.add_argument(
        "--workload", type=Path, metavar="FILE", help="a request set or trace of any known format"
    )
    parser.add_argument("--out", required=True, type=Path, metavar="DIR")
    parser.add_argument("--concurrency", type=int, help="closed loop; with --rate: the client's slots")
    parser.add_argument("--rate", type=float, help="open loop: requests a second")
    parser.add_argument(
        "--arrival", help="constant, poisson, gamma:SHAPE; or without --rate " + SELF_TIMED_FORMS
    )
    parser.add_argument("--warmup", type=int, default=0, help="extra requests before the window")
    parser.add_argument("--timeout", type=float, help="seconds for one request")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--processes", type=int, default=1, metavar="N", help="generators that send one load together"
    )
    parser.add_argument("--limit", action="append", default=[], metavar="METRIC:PERCENTILE:MAX")
    parser.add_argument("--quiet", action="store_true")
    workload.add_reading(parser)
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
    http.add_argument("--endpoint", choices=("chat", "completions", "ollama"))
    http.add_argument("--server-metrics", metavar="URL|auto")
    http.add_argument("--tokenizer", type=Path, metavar="DIR", help="counts tokens where no usage is sent")
    http.add_argument("--retry-throttled", type=int, metavar="N", help="repeat a 429 or 503 up to N times")


def _measure(options: argparse.Namespace) -> int:
    source = _source(options)
    if options.arrival is not None and options.rate is None and not parse_shape(options.arrival).self_timed:
        raise InputError(f"--arrival {options.arrival} needs --rate")
    if (options.retry_throttled or 0) < 0:
        raise InputError(f"--retry-throttled must be 0 or more, not {options.retry_throttled}")
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
    check_divisible(options.processes, concurrency=options.concurrency, conversations=None)
    if options.processes > 1 and isinstance(target, EngineTarget):
        raise InputError("--processes is for http targets only: an engine has one client")
    prepare_folder(options.out)
    send = run_load if options.processes == 1 else _processes(options).send

    async def run(stop: asyncio.Event) -> int:
        progress = None if options.quiet else Progress()
        if progress:
            progress.say(f"opening {options.target} …")
        try:
            info = await unless(stop, target.open())
            requests, facts = await asyncio.to_thread(_requests, options, source, target, info)
            session = await measure(
                target,
                info,
                requests,
                replace(plan, workload=facts),
                limits=limits,
                stop=stop,
                on_tick=progress.tick if progress else None,
                send=send,
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
            return complain("; ".join(session.summary["validity"]["reasons"]), INVALID)
        return MEASURED

    return run_until_signal(run)


def _source(options: argparse.Namespace) -> Workload | list[GenerationRequest]:
    """What is to be sent, read before anything is loaded or reached."""
    if options.workload is not None:
        return workload.read(options, options.workload)
    for name in workload.READING_OPTIONS:
        if getattr(options, name):
            raise InputError(f"--{name.replace('_', '-')} is for --workload only")
    return read_requests(options.requests)


def _requests(
    options: argparse.Namespace,
    source: Workload | list[GenerationRequest],
    target: Target,
    info: TargetInfo,
) -> tuple[list[GenerationRequest], dict[str, Any]]:
    """The requests for this target and, of a workload, what became of its rows."""
    if not isinstance(source, Workload):
        return source, {}
    rules = workload.rules(options, seed=options.seed, context_tokens=info.max_model_tokens)
    known = target.tokenize("x") is not None
    return build_requests(source, rules, target.tokenize if known else None)


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
            api_key=api_key(options.api_key_env),
            endpoint=options.endpoint or "chat",
            tokenize=load_tokenize(options.tokenizer) if options.tokenizer else None,
            throttle_retries=options.retry_throttled or 0,
            server_metrics_url=options.server_metrics,
        )
    raise InputError(f"target {options.target!r} must be engine:PATH or http://host:port/v1")


def _processes(options: argparse.Namespace) -> GeneratorProcesses:
    """Several generators: each opens the endpoint for itself and leaves its records in the output."""
    opening = {
        "base_url": options.target,
        "model": options.model,
        "api_key": api_key(options.api_key_env),
        "endpoint": options.endpoint or "chat",
        "tokenizer": str(options.tokenizer) if options.tokenizer else None,
        "throttle_retries": options.retry_throttled or 0,
    }
    folder = options.out / "generators"
    shutil.rmtree(folder, ignore_errors=True)  # of an earlier measurement in the same folder
    return GeneratorProcesses(options.processes, opening, folder)


def _engine(options: argparse.Namespace, path: str) -> EngineTarget:
    names = ("device", "dtype", "max_batch", "kv_blocks", "threads", "speculate")
    given = {name: getattr(options, name) for name in names}
    settings: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    return EngineTarget(path, prefix_cache=not options.no_prefix_cache, **settings)


def _refuse(options: argparse.Namespace, names: tuple[str, ...], kind: str) -> None:
    for name in names:
        if getattr(options, name):
            raise InputError(f"--{name.replace('_', '-')} is for {kind} only")


def _limit(text: str) -> dict[str, Any]:
    """A limit from `METRIC:PERCENTILE:BOUND`, e.g. `ttft_ms:p95:800`, or `error_rate::0.01` for a whole run.

    Times need a percentile, the figures of a whole run have none.
    """
    metric, _, rest = text.partition(":")
    percentile, _, bound = rest.partition(":")
    try:
        value = float(bound)
    except ValueError:
        value = -1.0
    known = METRICS.get(metric)
    wanted: Collection[str] = PERCENTILES if known is None or known.per_request else ("",)
    if metric and known is None and rest:
        raise InputError(f"no metric is named {metric!r}; there are {', '.join(METRICS)}")
    if not metric or percentile not in wanted or not 0 <= value < math.inf:
        raise InputError(f"--limit must look like ttft_ms:p95:800 or error_rate::0.01, not {text!r}")
    return normalised({"metric": metric, "percentile": percentile or None, "bound": value})


def _report(summary: dict[str, Any]) -> None:
    outcomes = ", ".join(f"{name} {n}" for name, n in summary["requests"].items() if n)
    print(f"requests: {outcomes or 'none'}; latencies from {summary['latency_from']}")
    for name in ("ttft_ms", "tpot_ms", "queue_wait_ms", "prefill_ms", "decode_ms", "e2e_ms"):
        print(figures_line(name, summary[name]))
    rate = summary["output_tokens_per_second"]
    print(f"output tokens/s: {'not observed' if rate is None else format(rate, '.1f')}")
    for reason in summary["validity"]["reasons"]:
        print(f"not valid: {reason}")
    for lack in summary["validity"]["lacks"]:
        print(f"lacks: {lack}")
