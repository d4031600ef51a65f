"""The definitions of vLLM's bench client, guidellm, aiperf and evalscope over the columns of one run.

Read from the tools' own source (`Definition.source`); nothing of it is copied. Where a tool looks at
something that is not recorded here, the nearest stamp is taken and a reason says so.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from inference.rescoring import spread
from inference.rescoring.columns import ABSENT, Columns

SCHEMA = "phasegate-rescored/1"
OWN = "phasegate"

_NS_PER_MS = 1e6
_NS_PER_S = 1e9

Scored = dict[str, Any]


@dataclass(frozen=True)
class Definition:
    """One tool: the version that was read, where, and how it scores."""

    version: str
    source: str
    score: Callable[[Columns], Scored]


def rescore(columns: Columns, tool: str) -> Scored:
    """`{tool, version, source, requests, window_s, <metric>: figures, …, reasons}` by one tool's definitions.

    Latencies are `{n, mean, p50, p90, p95, p99, max}` in ms, rates are per second. `reasons` are
    `{"metric", "code"}`: what makes the tool's figures other than ours, as far as this run shows it.
    """
    definition = TOOLS[tool]
    scored = definition.score(columns)
    return {"tool": tool, "version": definition.version, "source": definition.source} | scored


def rescore_all(columns: Columns) -> dict[str, Any]:
    """Every tool's figures, ours first (schema `phasegate-rescored/1`)."""
    return {"schema": SCHEMA, "tools": {tool: rescore(columns, tool) for tool in TOOLS}}


def _own(columns: Columns) -> Scored:
    taken = columns.success
    start = np.where(columns.scheduled != ABSENT, columns.scheduled, columns.sent)
    if not columns.open_loop:
        start = columns.sent
    later = columns.output_tokens - columns.in_first_read
    several = taken & columns.streamed & (later > 0) & (columns.last > columns.first)
    return _scored(
        columns,
        taken,
        begun=columns.sent,
        ended=columns.last,
        over=np.ones_like(taken),
        ttft_ms=spread.linear(_ms(start, columns.first, taken & columns.streamed)),
        tpot_ms=spread.linear(_ms(columns.first, columns.last, several) / later[several]),
        itl_ms=columns.gaps(taken & columns.streamed).linear(),
        e2e_ms=spread.linear(_ms(start, columns.last, taken)),
        reasons=[],
    )


def _vllm_bench(columns: Columns) -> Scored:
    """TTFT ends at the first chunk with choices; TPOT is the rest ÷ (n − 1); gaps begin with that chunk."""
    taken = columns.no_error
    begins = np.where(columns.role != ABSENT, columns.role, columns.first)
    several = taken & (columns.output_tokens > 1)
    with_role = taken & (columns.role != ABSENT)
    after_role = (columns.first - columns.role)[with_role & (columns.first != ABSENT)]
    reasons = [*_start_reasons(columns), *_population_reasons(columns, taken)]
    if with_role.any():
        reasons += [_why(metric, "role_chunk_counts") for metric in ("ttft_ms", "tpot_ms", "itl_ms")]
    reasons += _first_read_reasons(columns, taken)
    reasons += [_why("e2e_ms", "finish_chunk_not_kept"), _why("output_tokens_per_second", "whole_load")]
    return _scored(
        columns,
        taken,
        begun=columns.scheduled if columns.open_loop else columns.sent,
        ended=columns.ended,
        over=np.ones_like(taken),
        ttft_ms=spread.linear(_ms(columns.sent, begins, taken)),
        tpot_ms=spread.linear(_ms(begins, columns.last, several) / (columns.output_tokens[several] - 1)),
        itl_ms=columns.gaps(taken & columns.streamed, after_role if len(after_role) else None).linear(),
        e2e_ms=spread.linear(_ms(columns.sent, columns.last, taken)),
        reasons=reasons,
    )


def _guidellm(columns: Columns) -> Scored:
    """TPOT counts from the start; ITL is one mean a request; both are weighted by tokens, nearest rank."""
    taken = columns.success
    tokens = columns.output_tokens
    some, several = taken & (tokens > 0), taken & columns.streamed & (tokens > 1)
    per_token = _ms(columns.sent, columns.last, some) / tokens[some]
    between = _ms(columns.first, columns.last, several) / (tokens[several] - 1)
    reasons = [*_start_reasons(columns), _why("tpot_ms", "includes_ttft"), _why("itl_ms", "mean_of_request")]
    reasons += [_why(metric, "weighted_by_tokens") for metric in ("tpot_ms", "itl_ms")]
    reasons += [_why(metric, "nearest_rank") for metric in ("ttft_ms", "e2e_ms")]
    return _scored(
        columns,
        taken,
        begun=columns.sent,
        ended=columns.ended,
        over=taken,
        ttft_ms=spread.weighted(_ms(columns.sent, columns.first, taken & columns.streamed)),
        tpot_ms=spread.weighted(per_token, tokens[some]),
        itl_ms=spread.weighted(between, tokens[several] - 1),
        e2e_ms=spread.weighted(_ms(columns.sent, columns.ended, taken)),
        reasons=[*reasons, _why("e2e_ms", "to_the_stream_end")],
    )


def _aiperf(columns: Columns) -> Scored:
    """Its inter-token latency is a TPOT over n − 1; its inter-chunk latency are the pooled gaps."""
    taken = columns.success
    several = taken & columns.streamed & (columns.output_tokens > 1)
    reasons = [*_start_reasons(columns), *_first_read_reasons(columns, taken)]
    reasons += [_why("tpot_ms", "called_inter_token_latency"), _why("itl_ms", "called_inter_chunk_latency")]
    reasons.append(_why("output_tokens_per_second", "own_tokenizer"))
    return _scored(
        columns,
        taken,
        begun=columns.sent,
        ended=columns.last,
        over=taken,
        ttft_ms=spread.linear(_ms(columns.sent, columns.first, taken & columns.streamed)),
        tpot_ms=spread.linear(
            _ms(columns.first, columns.last, several) / (columns.output_tokens[several] - 1)
        ),
        itl_ms=columns.gaps(taken & columns.streamed).linear(),
        e2e_ms=spread.linear(_ms(columns.sent, columns.last, taken)),
        reasons=reasons,
    )


def _evalscope(columns: Columns) -> Scored:
    """Latency, and so TPOT, run to the stream's last chunk, usage included; percentiles are nearest rank."""
    taken = columns.no_error
    several = taken & columns.streamed & (columns.output_tokens > 1)
    reasons = [*_start_reasons(columns), *_population_reasons(columns, taken)]
    reasons += [_why(metric, "to_the_stream_end") for metric in ("tpot_ms", "e2e_ms")]
    reasons += _first_read_reasons(columns, taken)
    reasons += [_why(metric, "nearest_rank") for metric in ("ttft_ms", "tpot_ms", "itl_ms", "e2e_ms")]
    reasons.append(_why("output_tokens_per_second", "to_the_last_completion"))
    return _scored(
        columns,
        taken,
        begun=columns.sent,
        ended=columns.ended,
        over=np.ones_like(taken),
        ttft_ms=spread.nearest(_ms(columns.sent, columns.first, taken & columns.streamed)),
        tpot_ms=spread.nearest(
            _ms(columns.first, columns.ended, several) / (columns.output_tokens[several] - 1)
        ),
        itl_ms=columns.gaps(taken & columns.streamed).nearest(),
        e2e_ms=spread.nearest(_ms(columns.sent, columns.ended, taken)),
        reasons=reasons,
    )


TOOLS = {
    OWN: Definition("1", "docs/metrics.md", _own),
    "vllm-bench": Definition(
        "0.2x (main)", "vllm/benchmarks/serve.py, vllm/benchmarks/lib/endpoint_request_func.py", _vllm_bench
    ),
    "guidellm": Definition(
        "0.8.1", "guidellm/schemas/base/request_stats.py, guidellm/schemas/base/statistics.py", _guidellm
    ),
    "aiperf": Definition("0.13.0", "aiperf/metrics/types/", _aiperf),
    "evalscope": Definition(
        "1.14.1", "evalscope/perf/utils/benchmark_util.py, evalscope/perf/utils/db_util.py", _evalscope
    ),
}


def _scored(
    columns: Columns,
    taken: np.ndarray,
    *,
    begun: np.ndarray,
    ended: np.ndarray,
    over: np.ndarray,
    reasons: list[dict[str, str]],
    **latencies: dict[str, Any],
) -> Scored:
    """Latencies beside the rates: what counts ÷ (last `ended` − first `begun` of the requests in `over`)."""
    over = over.astype(bool)
    window_s = _window_s(begun[over], ended[over])
    known = taken & (columns.output_tokens != ABSENT)
    tokens = int(columns.output_tokens[known].sum())
    if columns.excluded:
        reasons = [_why("requests", "overlapping_warmup_stays"), *reasons]
    return {
        "requests": int(taken.sum()),
        "output_tokens": tokens,
        "window_s": window_s,
        **latencies,
        "output_tokens_per_second": tokens / window_s if window_s else None,
        "requests_per_second": float(taken.sum()) / window_s if window_s else None,
        "reasons": reasons,
    }


def _window_s(begun: np.ndarray, ended: np.ndarray) -> float | None:
    begun, ended = begun[begun != ABSENT], ended[ended != ABSENT]
    if not len(begun) or not len(ended) or ended.max() <= begun.min():
        return None
    return float(ended.max() - begun.min()) / _NS_PER_S


def _ms(start: np.ndarray, end: np.ndarray, of: np.ndarray) -> np.ndarray:
    """`end − start` of the chosen requests, NaN where either was not observed."""
    length = (end[of] - start[of]) / _NS_PER_MS
    length[(end[of] == ABSENT) | (start[of] == ABSENT)] = np.nan
    return length


def _why(metric: str, code: str) -> dict[str, str]:
    return {"metric": metric, "code": code}


def _start_reasons(columns: Columns) -> list[dict[str, str]]:
    """In open loop ours counts from `scheduled`, every other tool from when it sent."""
    return [_why(metric, "from_sent") for metric in ("ttft_ms", "e2e_ms")] if columns.open_loop else []


def _population_reasons(columns: Columns, taken: np.ndarray) -> list[dict[str, str]]:
    return [_why("requests", "unfinished_counts")] if (taken & ~columns.success).any() else []


def _first_read_reasons(columns: Columns, taken: np.ndarray) -> list[dict[str, str]]:
    several = (columns.in_first_read[taken] > 1).any()
    return [_why("tpot_ms", "one_token_first")] if several else []
