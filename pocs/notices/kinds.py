"""The kinds of notices that a person may choose about, and how each reaches them unless they do."""

from dataclasses import dataclass

from django.utils.translation import gettext_lazy as _

from pocs.common.errors import Text
from pocs.notices.choices import Channel


@dataclass(frozen=True)
class Kind:
    """One kind: its stable key, what a person reads, and the channel of those who chose none."""

    key: str
    label: Text
    channel: Channel = Channel.NOW


KINDS: dict[str, Kind] = {
    kind.key: kind
    for kind in (
        Kind("review.requested", _("I am asked for a review")),
        Kind("review.waiting", _("Evidence waits for any reviewer"), Channel.DIGEST),
        Kind("evidence.returned", _("Evidence of mine was returned")),
        Kind("evidence.reviewed", _("Evidence of mine was reviewed"), Channel.DIGEST),
        Kind("comment", _("Someone comments on evidence of mine or in a discussion I am in")),
        Kind("signature.requested", _("A signature of mine is asked for")),
        Kind("signature.expired", _("Signatures ended because their time was over")),
        Kind("package.settled", _("A package was approved or rejected")),
        Kind("package.stale", _("A package I signed or lead became stale")),
        Kind("objection", _("An objection was raised, answered or decided")),
        Kind("waiver.requested", _("A waiver waits for me")),
        Kind("waiver.decided", _("A waiver I asked for was granted, refused or revoked")),
        Kind("waiver.expiring", _("A waiver expires soon")),
        Kind("waiver.expired", _("A waiver has expired")),
        Kind("decision.proposed", _("A decision waits for my confirmation")),
        Kind("decision.settled", _("A decision was confirmed or taken back"), Channel.DIGEST),
        Kind("duty.assigned", _("A task, condition or observation became mine")),
        Kind("duty.overdue", _("Something is overdue")),
        Kind("run.ended_badly", _("A run of mine failed or does not count"), Channel.DIGEST),
        Kind("role.given", _("I was given a role on a project")),
        Kind("webhook.disabled", _("A webhook of mine was switched off after failures")),
        Kind("other", _("Anything else")),
    )
}


def kind_of(key: str) -> Kind:
    """The kind of a notice: itself, the one that its first part names (`objection.raised`), or “other”."""
    return KINDS.get(key) or KINDS.get(key.partition(".")[0]) or KINDS["other"]
