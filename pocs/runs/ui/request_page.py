"""What the page of one request shows: its stamps in order, its intervals, and that they add up."""

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from pocs.runs.charts import phase_label
from pocs.runs.diagnosing import request_diagnosis
from pocs.runs.models import RequestRecord
from pocs.runs.raw_reads import DamagedRecords
from pocs.runs.ui import timeline
from pocs.runs.wording import request_sentences

NS_PER_MS = 1_000_000
#: parts that together are the interval above them
PARTS_OF = {
    "queue_wait": ("model_load",),
    "prefill": ("prefill_compute", "prefill_wait"),
    "decode": ("decode_compute", "decode_stall", "requeue_wait"),
}


@dataclass(frozen=True)
class Stamp:
    """One moment of the request, in ms after it was sent."""

    name: str
    at_ms: float
    since_previous_ms: float | None


@dataclass(frozen=True)
class Interval:
    """One interval with what it is made of; None was not observed."""

    key: str
    label: str
    ms: float | None
    css: str
    summed: bool
    parts: tuple[tuple[str, float | None], ...] = ()


def context(record: RequestRecord) -> dict[str, Any]:
    """Template context of the request's page."""
    intervals_ms = record.intervals_ms
    summed = [phase for phase in timeline.PHASES if phase != "release"]
    observed = [intervals_ms[phase] for phase in summed if intervals_ms.get(phase) is not None]
    total = sum(observed) if observed else None
    delay = intervals_ms.get("dispatch_delay") or 0.0
    return {
        "record": record,
        "stamps": stamps(record),
        "intervals": intervals(intervals_ms),
        "sum_ms": total,
        "sum_after_sent_ms": None if total is None else total - delay,
        "segments": timeline.drawn(intervals_ms, timeline.total_ms(intervals_ms)),
        "span_ms": timeline.total_ms(intervals_ms),
        "reads": reads(record),
        "diagnosis": request_sentences(request_diagnosis(record)),
    }


def stamps(record: RequestRecord) -> list[Stamp]:
    """The stamps that were observed, in the order of time, counted from `sent`."""
    labels = {
        "scheduled_ns": _("scheduled: the plan wanted it"),
        "dispatched_ns": _("dispatched: a client slot took it"),
        "sent_ns": _("sent: handed to the target"),
        "queued_ns": _("queued: the engine accepted it"),
        "admitted_ns": _("admitted: entered a batch"),
        "first_ns": _("first token"),
        "last_ns": _("last token"),
        "finished_ns": _("finished"),
        "aborted_ns": _("aborted: left on purpose"),
        "failed_ns": _("failed"),
        "closed_ns": _("stream closed"),
        "freed_ns": _("freed: its cache blocks are back"),
    }
    moments: list[tuple[int, int, str]] = []
    for order, (key, label) in enumerate(labels.items()):
        value = record.stamps.get(key)
        for moment in value if isinstance(value, list) else [value]:
            if moment is not None:
                moments.append((moment, order, label))
    moments.sort()
    if not moments:
        return []
    zero = record.stamps.get("sent_ns") or moments[0][0]
    found: list[Stamp] = []
    previous: int | None = None
    for moment, _order, label in moments:
        gap = None if previous is None else (moment - previous) / NS_PER_MS
        found.append(Stamp(label, (moment - zero) / NS_PER_MS, gap))
        previous = moment
    return found


def intervals(intervals_ms: dict[str, float | None]) -> list[Interval]:
    """Every interval in the order in which it passes, with its parts."""
    names = {
        "model_load": _("of which loading the model"),
        "prefill_compute": _("of which computing"),
        "prefill_wait": _("of which waiting between chunks"),
        "decode_compute": _("of which computing"),
        "decode_stall": _("of which stalled"),
        "requeue_wait": _("of which queued again after a preemption"),
    }
    return [
        Interval(
            key=phase,
            label=phase_label(phase),
            ms=intervals_ms.get(phase),
            css=f"phase-{css}",
            summed=phase != "release",
            parts=tuple(
                (names[part], intervals_ms.get(part))
                for part in PARTS_OF.get(phase, ())
                if intervals_ms.get(part) is not None
            ),
        )
        for phase, css in timeline.PHASES.items()
    ]


def reads(record: RequestRecord) -> dict[str, Any]:
    """The stream as it arrived: how many reads, and the gaps between them as ticks of a drawing."""
    try:
        moments = [moment for moment, _tokens in record.reads or []]
    except DamagedRecords as error:
        return {"count": 0, "ticks": [], "damaged": error.detail}
    if len(moments) < 2:
        return {"count": len(moments), "ticks": []}
    first, span = moments[0], moments[-1] - moments[0]
    units = timeline.DRAWN_UNITS
    return {
        "count": len(moments),
        "ticks": [round((moment - first) / span * units, 1) for moment in moments] if span else [],
        "span_ms": span / NS_PER_MS,
    }
