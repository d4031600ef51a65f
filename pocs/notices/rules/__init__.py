"""Which audit entries concern whom: one rule per verb, each gives what is to be told.

A rule takes the entry and the object it names, as stored now, and returns a `Draft` or None. The
person who made the change is never told of it.
"""

from django.apps import apps

from pocs.common.models import AuditEntry
from pocs.notices.rules import evidence, projects, reviews
from pocs.notices.rules.drafts import Rule
from pocs.notices.telling import Telling
from pocs.projects.models import Project

RULES: dict[str, Rule] = {**evidence.RULES, **projects.RULES, **reviews.RULES}


def tellings_of(entry: AuditEntry) -> list[Telling]:
    """What the entry gives to tell; empty without a rule, and when its object is gone."""
    rule = RULES.get(entry.verb)
    if rule is None:
        return []
    obj = apps.get_model(entry.object_type)._default_manager.filter(pk=entry.object_id).first()
    if obj is None:
        return []
    found = rule(entry, obj)
    drafts = found if isinstance(found, list) else [found] if found else []
    project = Project.objects.filter(pk=entry.project_id).first() if entry.project_id else None
    author = entry.actor.get("user_id") if entry.actor.get("kind") == "user" else None
    return [
        Telling(
            kind=draft.kind,
            key=f"audit:{entry.organisation_id}:{entry.sequence}:{draft.kind}",
            text=draft.text,
            user_ids=frozenset(draft.user_ids) - {author},
            path=draft.path,
            project=project,
            detail=draft.detail,
            due_on=draft.due_on,
        )
        for draft in drafts
    ]
