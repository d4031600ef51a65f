"""The review method of each type, executed as a query: the rows a reviewer judges, and what they lack.

E1 versions and change history are kept · E2 can be queried by tenant or application · E3 can be
traced to a team · E4 has a conclusion and an owner. A revision passes when its method returns rows
and nothing is missing in them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from pocs.common.errors import Text
from pocs.evidence.choices import REVIEW_METHOD, EvidenceType, ResponsibilityKind
from pocs.evidence.difference import Change, changes_between
from pocs.evidence.models import EvidenceRevision
from pocs.evidence.runtime import populations, presences
from pocs.evidence.validation import missing_fields, run_refusal
from pocs.people.models import Team, User
from pocs.runs.models import Run

DISTRIBUTION = ("n", "p50", "p95")


@dataclass(frozen=True)
class ReviewRows:
    """What the review method returned: `rows` of plain values, `missing` what keeps it from passing.

    `notes` are remarks for the reviewer that decide nothing.
    """

    type: EvidenceType
    method: Text
    rows: list[dict[str, Any]]
    missing: list[str]
    notes: list[str] = field(default_factory=list)

    @property
    def passes(self) -> bool:
        return bool(self.rows) and not self.missing


def review_rows(revision: EvidenceRevision) -> ReviewRows:
    """Execute the review method of the revision's type."""
    kind = EvidenceType(revision.evidence.type)
    rows = _ROWS[kind](revision)
    notes = _configuration_notes(revision) if kind == EvidenceType.CONFIGURATION else []
    return ReviewRows(kind, REVIEW_METHOD[kind], rows, review_missing(revision), notes)


def review_missing(revision: EvidenceRevision) -> list[str]:
    """What keeps the revision from passing its review method; without computing any percentile.

    A method that would return no row is among it: what the rows are made of is then missing.
    """
    runs = list(revision.runs.all())
    kind = EvidenceType(revision.evidence.type)
    found = [str(lack.detail) for lack in missing_fields(type=kind, body=revision.body, runs=runs)]
    found += [run_refusal(run) for run in runs if not run.counts_as_evidence]
    return found + _MISSING[kind](revision)


def _configuration_rows(revision: EvidenceRevision) -> list[dict[str, Any]]:
    """One row per revision up to this one, newest first: who, when, versions, and what it changed."""
    history = list(
        revision.evidence.revisions.filter(number__lte=revision.number)
        .select_related("evidence", "created_by", "token")
        .prefetch_related("runs", "attachments")
        .order_by("number")
    )
    rows = []
    for older, newer in zip([None, *history], history, strict=False):
        changes: list[Change] = changes_between(older, newer) if older else []
        rows.append(
            {
                "revision": newer.number,
                "state": str(newer.state),
                "by": str(newer.created_by),
                "at": newer.created_at,
                "configuration_digest": newer.body.get("configuration_digest") or None,
                "versions": newer.body.get("versions") or {},
                "change_note": newer.body.get("change_note") or "",
                "changes": [change.as_json() for change in changes],
            }
        )
    return rows[::-1]


def _configuration_notes(revision: EvidenceRevision) -> list[str]:
    """Runs behind the runtime evidence that were made with another configuration than this one."""
    stated = revision.body.get("configuration_digest")
    if not stated:
        return []
    others = (
        Run.objects.filter(
            evidence_revisions__evidence__project=revision.evidence.project_id,
            evidence_revisions__evidence__type=EvidenceType.RUNTIME,
        )
        .exclude(configuration_digest=stated)
        .distinct()
        .order_by("number")
    )
    numbers = [str(run) for run in others]
    if not numbers:
        return []
    return [
        _("Runs behind the runtime evidence were made with another configuration: %(runs)s.")
        % {"runs": ", ".join(numbers)}
    ]


def _nothing_more(revision: EvidenceRevision) -> list[str]:
    """Types whose fields say everything."""
    return []


def _runtime_rows(revision: EvidenceRevision) -> list[dict[str, Any]]:
    """One row per tenant and application over the attached runs, first token and generation apart."""
    return [
        {
            "tenant": group.tenant,
            "application": group.application,
            "runs": list(group.runs),
            "source": group.source,
            "attempted": group.attempted,
            "succeeded": group.succeeded,
            "errors": group.errors,
            "error_rate": group.error_rate,
            "ttft_ms": _short(group.ttft_ms),
            "tpot_ms": _short(group.tpot_ms),
            "queue_wait_ms": _short(group.queue_wait_ms),
        }
        for group in populations(revision.runs.all())
    ]


def _short(distribution: dict[str, Any]) -> dict[str, Any]:
    return {name: distribution.get(name) for name in DISTRIBUTION}


def _runtime_missing(revision: EvidenceRevision) -> list[str]:
    groups = presences(revision.runs.all())
    if not groups:
        return [_("The attached runs hold no request that could be queried.")] if revision.runs.all() else []
    found = []
    for group in groups:
        if not group.tenant and not group.application:
            found.append(
                _("%(n)d requests carry neither tenant nor application, so they cannot be queried by one.")
                % {"n": group.attempted}
            )
        if group.succeeded and not group.first_tokens:
            found.append(
                _("No first token was observed for %(who)s (M1).")
                % {"who": group_name(group.tenant, group.application)}
            )
    if not any(group.output_times for group in groups):
        found.append(_("No request shows the time per output token (M2)."))
    for name, label in (("tenant", _("tenant")), ("application", _("application"))):
        seen = {getattr(group, name) for group in groups}
        found += [
            _("The evidence says that it covers the %(kind)s “%(name)s”, but no request carries it.")
            % {"kind": label, "name": stated}
            for stated in revision.body.get(f"{name}s") or []
            if stated not in seen
        ]
    return found


def group_name(tenant: str, application: str) -> str:
    """Tenant and application in one phrase."""
    return " / ".join(part for part in (tenant, application) if part) or "—"


def _responsibility_rows(revision: EvidenceRevision) -> list[dict[str, Any]]:
    """The team behind each approval, ownership, alert and handler; `team` is null where there is none."""
    rows = revision.body.get("rows") or []
    organisation_id = revision.evidence.project.organisation_id
    teams = Team.objects.filter(organisation_id=organisation_id).in_bulk(
        [r["team"] for r in rows if r["team"]]
    )
    people = User.objects.filter(organisation_id=organisation_id).in_bulk(
        [row["person"] for row in rows if row["person"]]
    )
    labels = dict(ResponsibilityKind.choices)
    return [
        {
            "kind": row["kind"],
            "label": str(labels.get(row["kind"], row["kind"])),
            "subject": row["subject"],
            "team": teams[row["team"]].name if row["team"] in teams else None,
            "contact": teams[row["team"]].contact if row["team"] in teams else None,
            "person": str(people[row["person"]]) if row["person"] in people else None,
            "alert_route": row["alert_route"] or None,
            "on_call": row["on_call"] or None,
        }
        for row in rows
    ]


def _responsibility_missing(revision: EvidenceRevision) -> list[str]:
    """Rows whose team no longer exists; rows that name none are missing fields."""
    rows = revision.body.get("rows") or []
    wanted = {row["team"] for row in rows if row["team"]}
    organisation_id = revision.evidence.project.organisation_id
    known = set(
        Team.objects.filter(organisation_id=organisation_id, pk__in=wanted).values_list("pk", flat=True)
    )
    return [
        _("“%(subject)s” leads to a team that does not exist any more.") % {"subject": row["subject"]}
        for row in rows
        if row["team"] and row["team"] not in known
    ]


def _retrospective_rows(revision: EvidenceRevision) -> list[dict[str, Any]]:
    body = revision.body
    owner = User.objects.filter(pk=body.get("owner")).first() if body.get("owner") else None
    if not body.get("conclusion") and owner is None:
        return []
    return [
        {
            "conclusion": body.get("conclusion") or None,
            "owner": str(owner) if owner else None,
            "owner_team": str(owner.team) if owner and owner.team else None,
            "degradation": body.get("degradation") or None,
            "rollback_outcome": body.get("rollback_outcome") or None,
            "next_optimisation": body.get("next_optimisation") or None,
        }
    ]


def _retrospective_missing(revision: EvidenceRevision) -> list[str]:
    owner = User.objects.filter(pk=revision.body.get("owner"), is_active=False).first()
    if owner is None:
        return []
    return [_("The owner %(person)s is no longer active: name another one.") % {"person": owner}]


_ROWS: dict[EvidenceType, Callable[[EvidenceRevision], list[dict[str, Any]]]] = {
    EvidenceType.CONFIGURATION: _configuration_rows,
    EvidenceType.RUNTIME: _runtime_rows,
    EvidenceType.RESPONSIBILITY: _responsibility_rows,
    EvidenceType.RETROSPECTIVE: _retrospective_rows,
}
_MISSING: dict[EvidenceType, Callable[[EvidenceRevision], list[str]]] = {
    EvidenceType.CONFIGURATION: _nothing_more,
    EvidenceType.RUNTIME: _runtime_missing,
    EvidenceType.RESPONSIBILITY: _responsibility_missing,
    EvidenceType.RETROSPECTIVE: _retrospective_missing,
}
