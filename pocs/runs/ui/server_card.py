"""What the server told of a run, beside what the client measured: each figure with its source and n."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy

from pocs.common.errors import Text
from pocs.runs.endpoint_wording import bounds_text, source_name

NAMES: dict[str, Text] = {
    "ttft_ms": gettext_lazy("Time to first token (TTFT)"),
    "queue_wait_ms": gettext_lazy("Queue wait"),
    "prefill_ms": gettext_lazy("Prefill"),
    "decode_ms": gettext_lazy("Decode"),
    "itl_ms": gettext_lazy("Gap between reads (ITL)"),
    "e2e_ms": gettext_lazy("End to end"),
}
#: parts of the mean time to the first token, in the order in which they pass
PARTS: dict[str, Text] = {
    "outside_ms": gettext_lazy("network, front end and the client's reading"),
    "before_scheduler_ms": gettext_lazy("waiting for a running step to end (in no phase of the server)"),
    "rest_ms": gettext_lazy("not told: network, front end, waiting for a running step"),
    "queue_wait_ms": gettext_lazy("queue wait, as the server counts it"),
    "prefill_ms": gettext_lazy("prefill, as the server counts it"),
}
NOTES: dict[str, Text] = {
    "metrics_absent": gettext_lazy("The server's own figures could not be read: %(text)s."),
    "metrics_not_asked": gettext_lazy("The server's own figures were not asked for."),
    "dialect_without_metrics": gettext_lazy("%(title)s tells no figures of its own that are known here."),
    "scrapes_failed": gettext_lazy(
        "%(failed)s of %(scrapes)s readings of the metrics gave nothing: %(text)s."
    ),
    "slow_metrics": gettext_lazy(
        "The slowest reading of the metrics took %(slowest_ms).0f ms (%(size_bytes)s bytes)."
    ),
    "restarted": gettext_lazy(
        "The server's counters fell at %(at_ms).0f ms (%(family)s): it was started again. The window is "
        "split there; what it counted after its last reading before is not known."
    ),
    "unequal_counts": gettext_lazy(
        "The families count different requests (%(counts)s; the client: %(succeeded)s successes). Aborted "
        "and refused requests are in some of them only."
    ),
    "more_than_ours": gettext_lazy(
        "The server finished %(server)s requests in the window, this run sent %(client)s: somebody else "
        "used it."
    ),
    "gauges_stale": gettext_lazy(
        "Running requests and memory have stood still for %(stale_ms).0f ms beside an engine that makes no "
        "step: they prove nothing. Send one short request and look again."
    ),
    "prefix_below_block": gettext_lazy(
        "%(queries).0f prompt tokens were looked up in the cache and none was found. A block is "
        "%(block_tokens)s tokens long: a shared prefix below that can never be found."
    ),
}


@dataclass(frozen=True)
class SideRow:
    """One figure as both sides tell it; means, in ms."""

    label: str
    client_mean: float | None
    client_n: int
    client_source: str
    server_mean: float
    server_n: int | None
    bounds: str
    family: str
    difference: float | None


@dataclass(frozen=True)
class Part:
    """One part of the mean time to the first token."""

    label: str
    ms: float


@dataclass(frozen=True)
class ServerCard:
    """Everything of the card."""

    title: str
    found_from: str
    rows: tuple[SideRow, ...]
    parts: tuple[Part, ...]
    cache: Mapping[str, Any] | None
    counts: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]


def server_card(summary: Mapping[str, Any]) -> ServerCard | None:
    """The card of a run at an endpoint; None where no server was asked."""
    server = summary.get("server")
    if not server:
        return None
    dialect = server.get("dialect") or {}
    return ServerCard(
        title=" ".join(filter(None, (dialect.get("title"), dialect.get("version")))),
        found_from="; ".join(dialect.get("found_from") or ()),
        rows=tuple(_row(row, server) for row in server.get("beside_client") or ()),
        parts=_parts(server.get("before_first_token")),
        cache=server.get("cache_hit_rate"),
        counts=_counts(server.get("counts") or {}),
        notes=tuple(filter(None, (_note(note) for note in server.get("notes") or ()))),
    )


def _row(row: Mapping[str, Any], server: Mapping[str, Any]) -> SideRow:
    client, theirs = row["client"], row["server"]
    return SideRow(
        label=str(NAMES.get(row["name"], row["name"])),
        client_mean=client["mean"],
        client_n=client["n"],
        client_source=source_name(client["source"]) if client["n"] else "",
        server_mean=theirs["mean"],
        server_n=theirs["n"],
        bounds=bounds_text(server["times"].get(row["name"]) or {}),
        family=theirs["family"],
        difference=row["difference_ms"],
    )


def _parts(found: Mapping[str, Any] | None) -> tuple[Part, ...]:
    if not found:
        return ()
    split = found.get("before_scheduler_ms") is not None
    order = ["outside_ms", "before_scheduler_ms"] if split else ["rest_ms"]
    names = [*order, "queue_wait_ms", "prefill_ms"]
    return tuple(Part(str(PARTS[name]), found[name]) for name in names if found.get(name) is not None)


def _counts(counts: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    rows = []
    for told in counts.values():
        if told.get("value"):
            by = ", ".join(f"{name} {n}" for name, n in (told.get("by") or {}).items())
            rows.append((told["family"], f"{told['value']:.0f}" + (f" ({by})" if by else "")))
    return tuple(rows)


def _note(note: Mapping[str, Any]) -> str:
    text = NOTES.get(note["code"])
    if text is None:
        return str(note.get("text") or "")
    return str(text) % note["figures"]
