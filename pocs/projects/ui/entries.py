"""Audit entries in a form for readers: who, what, and what became of which field."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.exceptions import FieldDoesNotExist
from django.db.models import Field
from django.utils.translation import get_language, gettext_lazy, override
from django.utils.translation import gettext as _

from pocs.common.audit import object_name, verb_name
from pocs.common.errors import Text
from pocs.common.models import AuditEntry
from pocs.common.phrases import read_said
from pocs.people.models import Team, User

LONGEST_VALUE = 300
#: fields of entries that hold the number of a person or a team
REFERENCES: dict[str, type[User] | type[Team]] = {
    "user": User,
    "sponsor": User,
    "lead": User,
    "team": Team,
    "team_id": Team,
}
#: names of fields that models leave to their code, or that only entries have
FIELD_NAMES: dict[str, Text] = {
    "answer": gettext_lazy("answer"),
    "ruling": gettext_lazy("ruling"),
    "rule": gettext_lazy("rule"),
    "line": gettext_lazy("line"),
    "quote": gettext_lazy("what it says"),
    "statement": gettext_lazy("statement"),
    "told": gettext_lazy("told"),
    "level": gettext_lazy("level"),
    "deputy": gettext_lazy("deputy"),
    "principal": gettext_lazy("principal"),
    "starts_on": gettext_lazy("from"),
    "ends_on": gettext_lazy("until"),
    "on_behalf_of": gettext_lazy("for"),
    "conditions": gettext_lazy("conditions"),
    "active": gettext_lazy("active"),
    "allowed_addresses": gettext_lazy("allowed addresses"),
    "at": gettext_lazy("at"),
    "baseline": gettext_lazy("baseline"),
    "comment": gettext_lazy("comment"),
    "commit": gettext_lazy("commit"),
    "confirmed_by": gettext_lazy("confirmed by"),
    "contact": gettext_lazy("contact"),
    "credential": gettext_lazy("credential stored"),
    "digest": gettext_lazy("digest"),
    "due_on": gettext_lazy("due on"),
    "engine_settings": gettext_lazy("engine settings"),
    "error": gettext_lazy("error"),
    "evidence": gettext_lazy("evidence"),
    "expires_at": gettext_lazy("expires at"),
    "guard": gettext_lazy("gate"),
    "kind": gettext_lazy("kind"),
    "lead": gettext_lazy("lead"),
    "meaning": gettext_lazy("meaning"),
    "next_reading_on": gettext_lazy("next reading on"),
    "next_step": gettext_lazy("next step"),
    "note": gettext_lazy("note"),
    "number": gettext_lazy("number"),
    "observer": gettext_lazy("observer"),
    "outcome": gettext_lazy("outcome"),
    "owner": gettext_lazy("owner"),
    "package": gettext_lazy("package"),
    "person": gettext_lazy("person"),
    "prefix": gettext_lazy("prefix"),
    "rationale": gettext_lazy("rationale"),
    "reason": gettext_lazy("reason"),
    "revision": gettext_lazy("revision"),
    "role": gettext_lazy("role"),
    "run": gettext_lazy("run"),
    "scenario": gettext_lazy("scenario"),
    "scenarios": gettext_lazy("scenarios"),
    "scope": gettext_lazy("scope"),
    "scopes": gettext_lazy("scopes"),
    "slot": gettext_lazy("slot"),
    "spec": gettext_lazy("definition"),
    "sponsor": gettext_lazy("sponsor"),
    "state": gettext_lazy("state"),
    "target": gettext_lazy("target"),
    "team_id": gettext_lazy("team"),
    "type": gettext_lazy("type"),
    "unit": gettext_lazy("unit"),
    "user": gettext_lazy("person"),
    "validity": gettext_lazy("validity"),
    "value": gettext_lazy("value"),
}


@dataclass(frozen=True)
class Change:
    """One field before and after; None where the entry has no such side."""

    field: str
    before: str | None
    after: str | None


@dataclass(frozen=True)
class ReadableEntry:
    sequence: int
    at: datetime
    who: str
    what: str
    object: str
    changes: list[Change]
    hash: str


def readable(entries: list[AuditEntry]) -> list[ReadableEntry]:
    """The entries for a page, in the order given."""
    return [
        ReadableEntry(
            sequence=entry.sequence,
            at=entry.at,
            who=_who(entry.actor),
            what=verb_name(entry.verb),
            object=_label(entry),
            changes=_changes(entry),
            hash=entry.hash,
        )
        for entry in entries
    ]


def _who(actor: dict[str, Any]) -> str:
    if actor.get("kind") == "token":
        return _("CI token %(label)s") % {"label": actor.get("label", "")}
    if actor.get("kind") == "system":
        return _("the system")
    return str(actor.get("label", ""))


def _changes(entry: AuditEntry) -> list[Change]:
    before, after = entry.before or {}, entry.after or {}
    names = [name for name in dict.fromkeys([*before, *after]) if name not in _hidden(before | after)]
    return [
        Change(_field_name(entry.object_type, name), _value(entry, before, name), _value(entry, after, name))
        for name in names
        if before.get(name) != after.get(name)
    ]


def _hidden(fields: dict[str, Any]) -> set[str]:
    """What a reader need not see: numbers beside the names that they stand for."""
    return {"object", "said"} | ({"user"} if "person" in fields else set())


def _field(object_type: str, name: str) -> "Field[Any, Any] | None":
    try:
        found = apps.get_model(object_type)._meta.get_field(name)
    except (LookupError, ValueError, FieldDoesNotExist):  # of an app that is gone, or no field at all
        return None
    return found if isinstance(found, Field) else None


def _field_name(object_type: str, name: str) -> str:
    if name in FIELD_NAMES:
        return str(FIELD_NAMES[name])
    field = _field(object_type, name)
    return name.replace("_", " ") if field is None else str(field.verbose_name)


def _value(entry: AuditEntry, side: dict[str, Any], name: str) -> str | None:
    value = side.get(name)
    if name == "reason" and isinstance(side.get("said"), dict):
        value = read_said(side["said"])
    if value is None or value == "":
        return None
    if name in REFERENCES and isinstance(value, int) and not isinstance(value, bool):
        return _referred(entry.organisation_id, name, value)
    field = _field(entry.object_type, name)
    choices = dict(field.flatchoices) if field is not None else {}
    if isinstance(value, bool):
        text = _("yes") if value else _("no")
    elif isinstance(value, list):
        text = ", ".join(map(str, value))
    elif isinstance(value, dict):
        text = json.dumps(value, ensure_ascii=False)
    else:
        text = str(choices.get(value, value))
    return text if len(text) <= LONGEST_VALUE else text[:LONGEST_VALUE] + "…"


def _referred(organisation_id: int, name: str, pk: int) -> str:
    """Whom or what a stored number names; the number itself for somebody who is gone."""
    found = REFERENCES[name].objects.filter(pk=pk, organisation_id=organisation_id).first()
    return str(found) if found else f"#{pk}"


def _label(entry: AuditEntry) -> str:
    """The object's name; what it says in words of a choice ("Reviewer") reads in the reader's language.

    An entry keeps the name as it was written, in the language of whoever made the change.
    """
    named = object_name(entry)
    if named is not None:
        return named
    words = _words(entry.object_type, get_language() or settings.LANGUAGE_CODE)
    return " · ".join(words.get(part, part) for part in entry.object_label.split(" · "))


@lru_cache(maxsize=200)
def _words(object_type: str, language: str) -> dict[str, str]:
    """Labels of the model's choices in every language, each with the one in `language`."""
    words = {}
    for label in _choice_labels(object_type):
        with override(language):
            here = str(label)
        for code, _name in settings.LANGUAGES:
            with override(code):
                words[str(label)] = here
    return words


def _choice_labels(object_type: str) -> Iterator[Any]:
    try:
        fields = apps.get_model(object_type)._meta.get_fields()
    except (LookupError, ValueError):
        return
    for field in fields:
        if isinstance(field, Field):
            yield from (label for _key, label in field.flatchoices or ())
