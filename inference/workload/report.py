"""What a workload is, for a person to look at: lengths, arrivals, sharing, what was skipped and taken out."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from inference.stats import figures
from inference.workload.building import texts_of
from inference.workload.prompts import Tokenize, counter
from inference.workload.reading import Item, Workload

LINES_SHOWN = 20
SAMPLES_SHOWN = 3
SAMPLE_CHARACTERS = 400
BINS = 12


def report(workload: Workload, tokenize: Tokenize | None = None) -> dict[str, Any]:
    """`format` `encoding` `n` `kind` `conversations` `skipped` `notes` `redactions` `input_tokens`
    `output_tokens` (each with `source`: `file`, `tokenizer` or `estimate`, figures and a histogram)
    `arrivals` `prefixes` `samples`; what the file does not say is null.
    """
    items = workload.items
    return {
        "format": workload.format,
        "encoding": workload.encoding,
        "kind": "trace" if workload.is_trace else "requests",
        "n": len(items),
        "conversations": _conversations(items),
        "input_tokens": _input(items, tokenize),
        "output_tokens": _output(items, tokenize),
        "arrivals": _arrivals(items),
        "prefixes": _prefixes(workload),
        "skipped": _skipped(workload),
        "redactions": dict(workload.redactions),
        "notes": list(workload.notes),
        "samples": [text[:SAMPLE_CHARACTERS] for item in items[:SAMPLES_SHOWN] for text in _last_text(item)],
    }


def _figures(values: Sequence[float], source: str) -> dict[str, Any] | None:
    if not values:
        return None
    return {"source": source, "min": min(values), **figures(values), "histogram": histogram(values)}


def histogram(values: Sequence[float]) -> list[dict[str, float]]:
    """Up to BINS bins of equal width: `{from, to, n}`, the upper end open except for the last."""
    low, high = min(values), max(values)
    width = max((high - low) / BINS, 1.0)
    counts = Counter(min(BINS - 1, int((value - low) / width)) for value in values)
    return [
        {"from": low + i * width, "to": low + (i + 1) * width, "n": counts[i]} for i in range(max(counts) + 1)
    ]


def _input(items: Sequence[Item], tokenize: Tokenize | None) -> dict[str, Any] | None:
    given = [item.input_tokens for item in items if item.input_tokens is not None]
    if len(given) == len(items):
        return _figures(given, "file")
    count = counter(tokenize)
    values = [sum(count(text) for text in texts_of(item.request)) for item in items if item.request]
    return _figures(values, "tokenizer" if tokenize else "estimate")


def _output(items: Sequence[Item], tokenize: Tokenize | None) -> dict[str, Any] | None:
    """Of the lengths that the file states, else of its reference answers."""
    given = [item.output_tokens for item in items if item.output_tokens is not None]
    if given:
        return _figures(given, "file")
    count = counter(tokenize)
    values = [count(item.reference) for item in items if item.reference]
    return _figures(values, "tokenizer" if tokenize else "estimate")


def _conversations(items: Sequence[Item]) -> dict[str, Any] | None:
    """How many there are and how long: null where no request follows another."""
    if not any(item.follows for item in items):
        return None
    turns: dict[str, int] = {}
    for item in items:
        turns[item.id] = turns.pop(item.follows or "", 0) + 1
    think_s = [item.think_s for item in items if item.follows]
    return {
        "n": len(turns),
        "turns": figures(turns.values()),
        "think_s": figures(think_s) if any(think_s) else None,
    }


def _arrivals(items: Sequence[Item]) -> dict[str, Any] | None:
    times = sorted(item.arrival_s for item in items if item.arrival_s is not None)
    if not times:
        return None
    lasts_s = times[-1] - times[0]
    return {
        "n": len(times),
        "lasts_s": lasts_s,
        "per_second": (len(times) - 1) / lasts_s if lasts_s else None,
        "most_in_a_second": max(Counter(int(at) for at in times).values()),
        "at_once": sum(a == b for a, b in pairwise(times)),
        "gap_s": figures([b - a for a, b in pairwise(times)]) if len(times) > 1 else None,
    }


def _prefixes(workload: Workload) -> dict[str, Any] | None:
    """What a prefix cache without limits could serve: tokens of leading blocks that came before."""
    size = workload.block_tokens
    with_ids = [item for item in workload.items if item.hash_ids]
    if not size or not with_ids:
        return None
    seen: set[int] = set()
    shared_tokens = asked = sharing = 0
    for item in with_ids:
        tokens, same = item.input_tokens or 0, 0
        for block in item.hash_ids:
            if block not in seen:
                break
            same += 1
        seen.update(item.hash_ids)
        shared_tokens += min(tokens, same * size)
        asked += tokens
        sharing += same > 0
    return {
        "block_tokens": size,
        "blocks": sum(len(item.hash_ids) for item in with_ids),
        "distinct_blocks": len(seen),
        "requests_sharing": sharing,
        "shared_tokens_share": shared_tokens / asked if asked else None,
    }


def _skipped(workload: Workload) -> list[dict[str, Any]]:
    """By reason: how many lines, and the first of them."""
    lines: dict[str, list[int]] = {}
    for skipped in workload.skipped:
        lines.setdefault(skipped.why, []).append(skipped.line)
    return [{"why": why, "n": len(found), "lines": found[:LINES_SHOWN]} for why, found in lines.items()]


def _last_text(item: Item) -> Iterable[str]:
    return texts_of(item.request)[-1:]
