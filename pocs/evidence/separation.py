"""Separation of duties: who had a hand in evidence, and why that keeps them from reviewing it."""

from django.utils.translation import gettext as _

from pocs.common.actors import Actor
from pocs.common.errors import NotPermitted
from pocs.evidence.models import Contribution, Evidence
from pocs.people import policies


def person_behind(actor: Actor) -> int:
    """The person who answers for what the actor writes: itself, or the sponsor of a token."""
    if actor.user_id is None:
        raise NotPermitted(_("Evidence is written by a person or by a token with its sponsor."))
    return actor.user_id


def review_refusal(actor: Actor, evidence: Evidence) -> str:
    """Why this actor may not review this evidence; empty when it may.

    A token never reviews, and nobody reviews what they, or a token they stand for, contributed to.
    """
    if not actor.is_person:
        return _("Only a person reviews evidence; a token cannot.")
    if not policies.allowed(actor, "evidence.review", evidence.project):
        return _("Your role on this project does not include reviewing evidence.")
    contribution = (
        Contribution.objects.filter(revision__evidence=evidence, user_id=person_behind(actor))
        .select_related("revision", "token")
        .first()
    )
    if contribution is None:
        return ""
    facts = {"kind": contribution.get_kind_display(), "number": contribution.revision.number}
    if contribution.token is None:
        return _("You %(kind)s revision %(number)d of this evidence, so someone else reviews it.") % facts
    facts["token"] = contribution.token.name
    return (
        _(
            "The token “%(token)s”, which you sponsor, %(kind)s revision %(number)d of this evidence, "
            "so someone else reviews it."
        )
        % facts
    )
