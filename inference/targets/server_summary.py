"""What a server told of a run's window, put beside what the client measured, each with source and n.

Nothing is averaged over the two: where they differ, the difference is placed. Codes with figures, free of
any language; a sentence for each is in `NOTES`.
"""

from collections.abc import Mapping
from typing import Any

CLIENT, PER_REQUEST, AGGREGATE = "client", "server per request", "server aggregate"
ENGINE = "engine"
#: figures that both sides can tell of a request
COMPARED = ("ttft_ms", "queue_wait_ms", "prefill_ms", "decode_ms", "itl_ms", "e2e_ms")
#: a page that takes longer is stated: reading it costs the server, and its values are older
SLOW_SCRAPE_MS = 500.0
_NS_PER_MS = 1_000_000

NOTES: dict[str, str] = {
    "metrics_absent": "the server's metrics could not be read: {text}",
    "metrics_not_asked": "the server's metrics were not asked for",
    "dialect_without_metrics": "{title} tells nothing on /metrics that is known here",
    "scrapes_failed": "{failed} of {scrapes} readings of the metrics gave nothing: {text}",
    "slow_metrics": "the slowest reading of the metrics took {slowest_ms:.0f} ms ({size_bytes} bytes)",
    "restarted": "the server's counters fell at {at_ms:.0f} ms ({family}): it was started again; the window"
    " is split there, and what it counted after its last reading before is not known",
    "unequal_counts": "the server's families count different requests ({counts}), the client {succeeded}"
    " successes: aborted and refused requests are in some of them only",
    "more_than_ours": "the server finished {server} requests in the window, this run sent {client}: others"
    " used it",
    "gauges_stale": "the gauges have stood still for {stale_ms:.0f} ms beside an engine that makes no step:"
    " they prove nothing until the next request",
    "prefix_below_block": "prompts were looked up in the cache ({queries:.0f} tokens) and none was found; a"
    " block is {block_tokens} tokens long",
}


def with_server(summary: dict[str, Any], observation: Mapping[str, Any] | None) -> dict[str, Any]:
    """The summary with `server` and `sources`; `cache_hit_rate` is the server's where no answer told it.

    `observation` is what `server_observation()` of a target gives; None leaves only the sources.
    """
    server = None if observation is None else _server(summary, observation)
    out = summary | {"server": server}
    rate = (server or {}).get("cache_hit_rate") or {}
    if out.get("cache_hit_rate") is None and rate.get("value") is not None:
        out["cache_hit_rate"] = rate["value"]
    return out | {"sources": _sources(summary, server)}


def _server(summary: Mapping[str, Any], observation: Mapping[str, Any]) -> dict[str, Any]:
    window = observation.get("window")
    server: dict[str, Any] = {
        "dialect": dict(observation.get("dialect") or {}),
        "metrics_url": observation.get("url"),
        "window_ms": None,
        "scrapes": 0,
        "times": {},
        "counts": {},
        "cache_hit_rate": None,
        "gauges": {},
        "beside_client": [],
        "before_first_token": None,
        "resets": [],
    }
    if window is None:
        return server | {"notes": [_why_absent(observation)]}
    from_ns = window["from_ns"]
    resets = [
        {"at_ms": (one["at_ns"] - from_ns) / _NS_PER_MS, "family": one["family"]} for one in window["resets"]
    ]
    counts = window["counts"]
    server |= {
        "window_ms": (window["to_ns"] - from_ns) / _NS_PER_MS,
        "scrapes": window["scrapes"],
        "failed_scrapes": window["failed"],
        "slowest_scrape_ms": window["slowest_ms"],
        "largest_page_bytes": window["largest_bytes"],
        "times": window["times"],
        "counts": counts,
        "cache_hit_rate": _cache_hit_rate(window),
        "gauges": window["gauges"],
        "gauges_stale_ms": window["stale_ms"],
        "constants": window["constants"],
        "resets": resets,
        "populations": _populations(window),
    }
    server["beside_client"] = _beside_client(summary, server["times"])
    server["before_first_token"] = _before_first_token(summary, server["times"])
    return server | {"notes": _notes(summary, server, observation)}


def _why_absent(observation: Mapping[str, Any]) -> dict[str, Any]:
    title = (observation.get("dialect") or {}).get("title") or ""
    problems = observation.get("problems") or []
    if observation.get("problem"):
        return _note("metrics_absent", text=observation["problem"])
    if problems:
        return _note("metrics_absent", text=problems[0]["text"])
    if not observation.get("url"):
        return _note("metrics_not_asked")
    return _note("dialect_without_metrics", title=title)


def _cache_hit_rate(window: Mapping[str, Any]) -> dict[str, Any] | None:
    """In tokens and of the window; None where nothing was looked up."""
    counts = window["counts"]
    asked = (counts.get("prefix_cache_queries") or {}).get("value")
    hits = counts.get("prefix_cache_hits") or {}
    if not asked or hits.get("value") is None:
        return None
    return {
        "value": hits["value"] / asked,
        "hit_tokens": hits["value"],
        "asked_tokens": asked,
        "family": hits["family"],
        "source": AGGREGATE,
    }


def _populations(window: Mapping[str, Any]) -> dict[str, int]:
    """How many requests each family that counts requests has counted."""
    found: dict[str, int] = {}
    for key in window["populations"]:
        told = window["times"].get(key) or window["counts"].get(key.removesuffix("_total")) or {}
        n = told.get("n", told.get("value"))
        if n is not None:
            found[told["family"]] = round(n)
    return found


def _beside_client(summary: Mapping[str, Any], times: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Both figures of what both sides tell, with source and n each, and the difference of the means."""
    rows = []
    for name in COMPARED:
        ours, theirs = summary.get(name) or {}, times.get(name) or {}
        if theirs.get("mean") is None:
            continue
        mine = ours.get("mean") if ours.get("n") else None
        rows.append(
            {
                "name": name,
                "client": {"mean": mine, "n": ours.get("n") or 0, "source": _source_of(summary, name)},
                "server": {key: theirs.get(key) for key in ("mean", "n", "family", "source")},
                "difference_ms": None if mine is None else mine - theirs["mean"],
            }
        )
    return rows


def _before_first_token(summary: Mapping[str, Any], times: Mapping[str, Any]) -> dict[str, Any] | None:
    """The mean time to the first token, in the parts that are told; the rest is a part of its own (ms).

    `outside_ms`: network, front end and the client's reading (client − server). `before_scheduler_ms`:
    waiting for a running step to end, in no phase of the server (its TTFT − queue − prefill).
    """
    client = summary.get("ttft_ms") or {}
    told = {name: (times.get(f"{name}_ms") or {}).get("mean") for name in ("ttft", "queue_wait", "prefill")}
    if not client.get("n") or (told["queue_wait"] is None and told["prefill"] is None):
        return None
    phases = (told["queue_wait"] or 0.0) + (told["prefill"] or 0.0)
    out = {
        "client_ttft_ms": client["mean"],
        "n_client": client["n"],
        "n_server": (times.get("prefill_ms") or times.get("queue_wait_ms") or {}).get("n"),
        "queue_wait_ms": told["queue_wait"],
        "prefill_ms": told["prefill"],
        "rest_ms": client["mean"] - phases,
        "outside_ms": None,
        "before_scheduler_ms": None,
    }
    if told["ttft"] is not None:
        out["outside_ms"] = client["mean"] - told["ttft"]
        out["before_scheduler_ms"] = told["ttft"] - phases
    return out


def _notes(
    summary: Mapping[str, Any], server: Mapping[str, Any], observation: Mapping[str, Any]
) -> list[dict[str, Any]]:
    found = [_note("restarted", **reset) for reset in server["resets"]]
    if server["failed_scrapes"]:
        text = (observation.get("problems") or [{"text": ""}])[0]["text"]
        whole = server["scrapes"] + server["failed_scrapes"]
        found.append(_note("scrapes_failed", failed=server["failed_scrapes"], scrapes=whole, text=text))
    if server["slowest_scrape_ms"] > SLOW_SCRAPE_MS:
        size = server["largest_page_bytes"]
        found.append(_note("slow_metrics", slowest_ms=server["slowest_scrape_ms"], size_bytes=size))
    counts = server["populations"]
    if len(set(counts.values())) > 1:
        text = ", ".join(f"{family} {n}" for family, n in counts.items())
        found.append(_note("unequal_counts", counts=text, succeeded=summary.get("succeeded")))
    finished = (server["counts"].get("finished_requests") or {}).get("value")
    attempted = (summary.get("attempted") or 0) + (summary.get("excluded_requests") or 0)
    if finished is not None and finished > attempted:
        found.append(_note("more_than_ours", server=round(finished), client=attempted))
    if server["gauges_stale_ms"] is not None:
        found.append(_note("gauges_stale", stale_ms=server["gauges_stale_ms"]))
    rate, block = server["cache_hit_rate"], server["constants"].get("kv_block_tokens")
    if rate and rate["value"] == 0 and block:
        found.append(_note("prefix_below_block", queries=rate["asked_tokens"], block_tokens=block))
    return found


def _sources(summary: Mapping[str, Any], server: Mapping[str, Any] | None) -> dict[str, str | None]:
    """Who says each figure of the summary; None where nobody does."""
    sources = {name: _source_of(summary, name) if _told(summary, name) else None for name in _SUMMARY_TIMES}
    for name in ("queue_wait_ms", "prefill_ms"):
        if sources[name] is None and ((server or {}).get("times", {}).get(name) or {}).get("n"):
            sources[name] = AGGREGATE
    at_engine = _at_engine(summary)
    told_by_requests = summary.get("cache_hit_rate") is not None
    from_server = ((server or {}).get("cache_hit_rate") or {}).get("value") is not None
    rate = (ENGINE if at_engine else PER_REQUEST) if told_by_requests else AGGREGATE if from_server else None
    memory = summary.get("memory") or {}
    by_server = "kv_usage_peak" in memory or "kv_used_peak_bytes" in memory
    of_memory = ENGINE if at_engine else AGGREGATE if by_server else None
    return sources | {"cache_hit_rate": rate, "memory": of_memory}


_SUMMARY_TIMES = ("ttft_ms", "tpot_ms", "itl_ms", "e2e_ms", "decode_ms", "queue_wait_ms", "prefill_ms")


def _told(summary: Mapping[str, Any], name: str) -> bool:
    return bool((summary.get(name) or {}).get("n"))


def _source_of(summary: Mapping[str, Any], name: str) -> str:
    """Phases of an endpoint come with its answers, everything else from the client's own stamps."""
    if _at_engine(summary):
        return ENGINE
    return PER_REQUEST if name in ("queue_wait_ms", "prefill_ms") else CLIENT


def _at_engine(summary: Mapping[str, Any]) -> bool:
    return (summary.get("target") or {}).get("kind") == "engine"


def _note(code: str, **figures: Any) -> dict[str, Any]:
    return {"code": code, "figures": figures, "text": NOTES[code].format(**figures)}
