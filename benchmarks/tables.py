"""Figures as tables: aligned for a terminal, or Markdown for a page."""

from collections.abc import Sequence

from benchmarks.limits import Limit
from benchmarks.pairs import Pair, Spread

PAIR_HEAD = (
    "work",
    "type",
    "PhaseGate tokens/s",
    "peer",
    "peer tokens/s",
    "ratio",
    "CPU s",
    "ratio by CPU",
    "limit tokens/s",
    "reached",
    "load",
)
POISSON_HEAD = ("side", "requests/s", "TTFT p50 ms", "TTFT p99 ms", "TPOT p50 ms", "TPOT p99 ms", "load")


def number(value: float) -> str:
    """Three figures, never an exponent."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def spread(value: Spread) -> str:
    """The median, and the range where there is one."""
    if value.least == value.most:
        return number(value.median)
    return f"{number(value.median)} ({number(value.least)}–{number(value.most)})"


def pair_row(pair: Pair, limit: Limit) -> tuple[str, ...]:
    dtype = pair.dtype if pair.dtype == pair.peer_dtype else f"{pair.dtype}, peer {pair.peer_dtype}"
    own, other = pair.cpu_s
    low, high = pair.load
    best = pair.counted / limit.seconds
    return (
        f"{pair.workload}: {pair.text}",
        dtype,
        spread(pair.product_rate),
        pair.peer,
        spread(pair.other_rate),
        spread(pair.ratio),
        f"{number(own)} / {number(other)}",
        spread(pair.cpu_ratio),
        f"{number(best)} ({limit.bound})",
        f"{pair.product_rate.median / best:.0%}",
        f"{low:.1f}–{high:.1f}",
    )


def text(head: Sequence[str], rows: Sequence[Sequence[str]], *, markdown: bool) -> str:
    """One table; every row has as many cells as the head."""
    if markdown:
        lines = ["| " + " | ".join(cells) + " |" for cells in (head, *rows)]
        return "\n".join([lines[0], "|" + "---|" * len(head), *lines[1:]])
    widths = [max(len(cells[at]) for cells in (head, *rows)) for at in range(len(head))]
    padded = [
        "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()
        for cells in (head, *rows)
    ]
    return "\n".join([padded[0], "  ".join("-" * width for width in widths), *padded[1:]])
