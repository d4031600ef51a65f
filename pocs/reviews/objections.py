"""Objections to a package: which are undecided, who may answer and decide them, and why another may not."""

from django.urls import reverse
from django.utils.translation import gettext as _

from pocs.common.errors import Missing
from pocs.people.models import User
from pocs.people.roles import CAPABILITIES, ProjectRole
from pocs.reviews.choices import UNDECIDED_OBJECTIONS, ObjectionState
from pocs.reviews.citations import line_in_words
from pocs.reviews.contributions import contributors
from pocs.reviews.models import Objection, Package


def undecided_missing(package: Package) -> list[Missing]:
    """What undecided objections keep open, as points of G9: nothing is approved or decided meanwhile."""
    url = reverse("reviews:package", args=[package.pk]) + "#objections"
    found = []
    for objection in package.objections.filter(state__in=UNDECIDED_OBJECTIONS).select_related(
        "raised_by", "revision__evidence"
    ):
        names = {"who": objection.raised_by, "rule": objection.rule, "line": line_in_words(objection)}
        if objection.state == ObjectionState.OPEN:
            text = _("an answer to the objection of %(who)s (%(rule)s, “%(line)s”)") % names
        elif any(not why for _user, why in deciders(objection)):
            text = _("a ruling on the objection of %(who)s (%(rule)s, “%(line)s”)") % names
        else:
            text = _(
                "someone without a conflict who rules on the objection of %(who)s (%(rule)s, “%(line)s”)"
            )
            text %= names
        found.append(Missing("G9", text, "objection.undecided", object=f"objection:{objection.pk}", url=url))
    return found


def answer_hindrance(objection: Objection, user: User) -> str:
    """In words why this person may not answer; empty for an author of the line or a technical lead."""
    if objection.raised_by_id == user.pk:
        return _("You raised this objection; someone else answers it.")
    project = objection.package.project
    if project.members.filter(user=user, role=ProjectRole.LEAD).exists():
        return ""
    revision = objection.revision
    wrote = revision is not None and revision.evidence.revisions.filter(contributions__user=user).exists()
    edits = project.members.filter(user=user, role=ProjectRole.CONTRIBUTOR).exists()
    if wrote or (revision is None and edits):
        return ""
    return _("Whoever wrote the line, or a technical lead, answers.")


def ruling_hindrance(objection: Objection, user: User, contributed: set[int]) -> str:
    """In words why this person may not rule: they must have had no part in the line or the dispute."""
    if not user.is_active:
        return _("deactivated")
    if user.pk == objection.raised_by_id:
        return _("raised the objection")
    if user.pk == objection.answered_by_id:
        return _("answered the objection")
    if user.pk in contributed:
        return _("contributed to what the package holds")
    if objection.revision is not None and objection.revision.reviewed_by_id == user.pk:
        return _("reviewed the evidence in question")
    return ""


def deciders(objection: Objection) -> list[tuple[User, str]]:
    """Those with a role that rules on objections, each with what hinders them."""
    project = objection.package.project
    contributed = contributors(project)
    rows = project.members.filter(role__in=CAPABILITIES["objection.rule"]).select_related("user")
    people = {row.user_id: row.user for row in rows.order_by("user__username")}
    return [(user, ruling_hindrance(objection, user, contributed)) for user in people.values()]
