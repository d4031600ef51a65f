"""The audit chain: one append-only, hash-linked list per organisation, written with the change.

Every service calls `record` inside the transaction of the change it describes; `verify` recomputes
the chain and compares it with the signed checkpoints that lie outside the database.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC
from typing import Any

from django.apps import apps
from django.db import models, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from pocs.common.actors import Actor
from pocs.common.canonical import digest
from pocs.common.checkpoints import Checkpoint, read_checkpoints, write_checkpoint
from pocs.common.errors import Text
from pocs.common.models import AuditEntry, AuditHead

GENESIS = "0" * 64
_verb_names: dict[str, Text] = {}
_labels: dict[str, Callable[[str], str]] = {}
#: model label -> the path from its rows to their organisation's number
_watched: dict[str, str] = {}


def name_verbs(names: Mapping[str, Text]) -> None:
    """Say what the history calls these verbs (`{"run.completed": _("completed the run")}`)."""
    _verb_names.update(names)


def named_verbs() -> dict[str, Text]:
    """Every verb that somebody named, with its words."""
    return dict(_verb_names)


def verb_name(verb: str) -> str:
    """The verb in words; one that nobody named stands as it is."""
    return str(_verb_names.get(verb, verb))


def name_objects(object_type: str, label: Callable[[str], str]) -> None:
    """Say how the stored name of such objects reads in the reader's language ("P1 security")."""
    _labels[object_type] = label


def object_name(entry: AuditEntry) -> str | None:
    """The object's name in the reader's language; None where nobody said how it reads."""
    label = _labels.get(entry.object_type)
    return None if label is None else label(entry.object_label)


def watch(object_type: str, organisation: str) -> None:
    """Have `verify` look at every row of this model, also those that the chain does not know.

    `organisation` is the path to the number of its organisation, such as `package__project__organisation_id`.
    A row without an entry must be in its initial state.
    """
    _watched[object_type] = organisation


def entry_payload(entry: AuditEntry) -> dict[str, Any]:
    """The fields that `entry.hash` covers, in the form they are hashed."""
    return {
        "organisation": entry.organisation_id,
        "sequence": entry.sequence,
        "at": entry.at.astimezone(UTC).isoformat(),
        "actor": entry.actor,
        "verb": entry.verb,
        "object_type": entry.object_type,
        "object_id": entry.object_id,
        "object_label": entry.object_label,
        "project": entry.project_id,
        "before": entry.before,
        "after": entry.after,
        "previous": entry.previous_hash,
    }


def record(
    *,
    actor: Actor,
    verb: str,
    obj: models.Model,
    project_id: int | None = None,
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
) -> AuditEntry:
    """Append one entry (`verb` such as `run.completed`) to the chain of the actor's organisation.

    Must run inside the transaction of the change; raises TransactionManagementError outside one.
    """
    connection = transaction.get_connection()
    if not connection.in_atomic_block:
        raise transaction.TransactionManagementError("an audit entry belongs into its change's transaction")
    AuditHead.objects.get_or_create(organisation_id=actor.organisation_id)
    head = AuditHead.objects.select_for_update().get(organisation_id=actor.organisation_id)
    who = {key: value for key, value in asdict(actor).items() if value not in (None, ())}
    who.pop("token_scopes", None)
    entry = AuditEntry(
        organisation_id=actor.organisation_id,
        sequence=head.length + 1,
        at=timezone.now(),
        actor=who,
        verb=verb,
        object_type=obj._meta.label_lower,
        object_id=str(obj.pk),
        object_label=str(obj)[:300],
        project_id=project_id,
        before=before,
        after=after,
        previous_hash=head.hash,
    )
    entry.hash = digest(entry_payload(entry))
    entry.save(force_insert=True)
    head.length, head.hash = entry.sequence, entry.hash
    head.save(update_fields=["length", "hash"])
    transaction.on_commit(lambda: _checkpoint_after(entry), robust=True)
    return entry


def _checkpoint_after(entry: AuditEntry) -> None:
    """Sign the head that this commit left; earlier entries of the same transaction are covered by it."""
    later = AuditHead.objects.filter(organisation_id=entry.organisation_id, length__gt=entry.sequence)
    if not later.exists():
        write_checkpoint(entry.organisation_id, entry.sequence, entry.hash)


def checkpoint_now(organisation_id: int) -> bool:
    """Write a checkpoint of the chain as it stands; False when there is none or it cannot be written."""
    head = AuditHead.objects.filter(organisation_id=organisation_id).first()
    return head is not None and write_checkpoint(organisation_id, head.length, head.hash)


@dataclass(frozen=True)
class Problem:
    """One finding of the verification: a stable `code`, the entry it concerns, and a sentence."""

    code: str
    sequence: int | None
    text: str


@dataclass
class _Walk:
    """What one pass over the chain collects."""

    length: int = 0
    head: str = GENESIS
    hashes: dict[int, str] = field(default_factory=dict)
    states: dict[tuple[str, str], tuple[str, int]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


def verify(organisation_id: int) -> list[Problem]:
    """Recompute the organisation's chain; empty when nothing was changed, cut, or done past it.

    Three comparisons: each entry with its own hash and predecessor, the chain with the signed
    checkpoints outside the database, and the last audited state of each object with its state now.
    """
    # read first what must not be ahead of the chain: no lock is taken, others may write meanwhile
    checkpoints = read_checkpoints(organisation_id)
    head = AuditHead.objects.filter(organisation_id=organisation_id).first() or AuditHead(
        organisation_id=organisation_id
    )
    walk = _walk_chain(organisation_id, {head.length} | {point.length for point in checkpoints})
    return (
        walk.problems
        + _head_problems(walk, head)
        + _state_problems(walk)
        + _unaudited_problems(organisation_id, walk)
        + _checkpoint_problems(walk, checkpoints)
    )


def _head_problems(walk: _Walk, head: AuditHead) -> list[Problem]:
    if walk.hashes.get(head.length, GENESIS) == head.hash and head.length <= walk.length:
        if head.length == walk.length:
            return []
        # the chain is longer than the head that was read before it: has it grown since?
        now = AuditHead.objects.filter(organisation_id=head.organisation_id).first()
        if now is not None and now.length >= walk.length:
            return []
    text = _("The chain ends at entry %(found)s, its head says %(said)s.")
    return [Problem("head", walk.length, text % {"found": walk.length, "said": head.length})]


def _walk_chain(organisation_id: int, wanted: set[int]) -> _Walk:
    walk = _Walk()
    for entry in AuditEntry.objects.filter(organisation_id=organisation_id).order_by("sequence").iterator():
        if entry.sequence != walk.length + 1:
            text = _("Entry %(from)s to %(to)s are missing.") % {
                "from": walk.length + 1,
                "to": entry.sequence - 1,
            }
            walk.problems.append(Problem("gap", entry.sequence, text))
        elif entry.previous_hash != walk.head:
            text = _("Entry %(number)s does not follow the one before it.") % {"number": entry.sequence}
            walk.problems.append(Problem("link", entry.sequence, text))
        if digest(entry_payload(entry)) != entry.hash:
            text = _("Entry %(number)s was changed after it was written.") % {"number": entry.sequence}
            walk.problems.append(Problem("hash", entry.sequence, text))
        walk.length, walk.head = entry.sequence, entry.hash
        if entry.sequence in wanted:
            walk.hashes[entry.sequence] = entry.hash
        if entry.after and "state" in entry.after:
            walk.states[entry.object_type, entry.object_id] = (entry.after["state"], entry.sequence)
    return walk


def _checkpoint_problems(walk: _Walk, checkpoints: list[Checkpoint]) -> list[Problem]:
    """What the signed checkpoints say against the chain.

    A line that names the chain's own hash says nothing against it, signed or not; so only the others
    and the newest are asked for their signatures, and a long file takes no longer than the chain.
    """
    on_chain = [point for point in checkpoints if walk.hashes.get(point.length or -1) == point.head]
    newest = max(on_chain, key=lambda point: point.length, default=None)
    against = [point for point in checkpoints if walk.hashes.get(point.length or -1) != point.head]
    asked = [*against, *([newest] if newest else [])]
    problems = []
    if forged := sum(not point.genuine for point in asked):
        text = _("%(count)s lines of the checkpoint file are not signed by this installation.")
        problems.append(Problem("checkpoint_signature", None, text % {"count": forged}))
    genuine = [point for point in against if point.genuine]
    longest = max((point.length for point in genuine), default=0)
    if longest > walk.length:
        text = _(
            "A signed checkpoint covers %(said)s entries, the chain has %(found)s: the newest were removed."
        )
        problems.append(Problem("cut", walk.length, text % {"said": longest, "found": walk.length}))
    changed = min((point.length for point in genuine if point.length <= walk.length), default=None)
    if changed is not None:
        text = _("Entry %(number)s is not the one that a signed checkpoint names.") % {"number": changed}
        problems.append(Problem("checkpoint", changed, text))
    return problems


def _state_problems(walk: _Walk) -> list[Problem]:
    """Objects whose state was changed past the chain, or that vanished without an entry."""
    by_model: dict[str, dict[str, tuple[str, int]]] = {}
    for (label, key), audited in walk.states.items():
        by_model.setdefault(label, {})[key] = audited
    problems = []
    for label, audited_rows in by_model.items():
        model = apps.get_model(label)
        if not any(column.name == "state" for column in model._meta.get_fields()):
            continue
        stored: dict[str, str] = {}
        keys = list(audited_rows)
        for start in range(0, len(keys), 500):
            rows = model._default_manager.filter(pk__in=keys[start : start + 500]).values_list("pk", "state")
            stored |= {str(key): state for key, state in rows}
        for key, (state, sequence) in audited_rows.items():
            if stored.get(key) != state and not _moved_since(model, key, sequence):
                text = _(
                    "%(object)s is “%(now)s”, but the last audited state is “%(said)s” (entry %(number)s)."
                )
                names = {
                    "object": f"{label} {key}",
                    "now": stored.get(key),
                    "said": state,
                    "number": sequence,
                }
                problems.append(Problem("state", sequence, text % names))
    return problems


def _unaudited_problems(organisation_id: int, walk: _Walk) -> list[Problem]:
    """Rows of watched models that are past their initial state although no entry says how."""
    problems = []
    for label, path in _watched.items():
        model = apps.get_model(label)
        initial = model._meta.get_field("state").get_default()
        rows = model._default_manager.filter(**{path: organisation_id}).exclude(state=initial)
        for key, state in rows.values_list("pk", "state"):
            if (label, str(key)) in walk.states or _has_entry(label, str(key)):
                continue
            text = _("%(object)s is “%(now)s”, and no entry of the audit says how it came to be.")
            names = {"object": f"{label} {key}", "now": state}
            problems.append(Problem("unaudited", None, text % names))
    return problems


def _has_entry(label: str, key: str) -> bool:
    """Whether an entry written after the walk explains the row."""
    rows = AuditEntry.objects.filter(object_type=label, object_id=key, after__has_key="state")
    return rows.exists()


def _moved_since(model: type[models.Model], key: str, sequence: int) -> bool:
    """Whether an entry written after the walk explains the difference."""
    later = AuditEntry.objects.filter(
        object_type=model._meta.label_lower, object_id=key, sequence__gt=sequence, after__has_key="state"
    ).last()
    now = model._default_manager.filter(pk=key).values_list("state", flat=True).first()
    return later is not None and later.after is not None and later.after["state"] == now
