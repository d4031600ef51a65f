"""Services of objections: raised by anyone of the project, answered by the owner, decided by a third."""

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from pocs.common import audit
from pocs.common.actors import Actor
from pocs.common.errors import Conflict, FieldError, InvalidInput, NotPermitted, Text
from pocs.common.notices import Notice, send
from pocs.common.phrases import said
from pocs.people import policies
from pocs.people.models import User
from pocs.reviews.choices import STANDING_STATES, UNDECIDED_OBJECTIONS, DecisionState, ObjectionState
from pocs.reviews.citations import citations_of, rules
from pocs.reviews.contributions import contributors
from pocs.reviews.models import Objection, Package
from pocs.reviews.objections import answer_hindrance, deciders, ruling_hindrance
from pocs.reviews.people import leads_of
from pocs.reviews.services.support import require_person, require_text, tell
from pocs.reviews.staleness import package_mark_stale

#: undecided objections of one person on one package: more would only keep it from being signed
UNDECIDED_MAX = 5


@transaction.atomic
def objection_raise(*, actor: Actor, package: Package, key: str, rule: str, statement: str) -> Objection:
    """Object to a line of a package (`key` of `citations_of`) by a rule, which is a gate's code.

    Until it is decided the package is not approved and no decision on it is confirmed. Raises
    Conflict once the package stands no longer or its decision is confirmed.
    """
    user_id = require_person(actor)
    policies.require(actor, "objection.raise", package.project)
    package = Package.objects.select_for_update().select_related("project").get(pk=package.pk)
    _require_contestable(package)
    statement = require_text("/statement", statement, _("Say what is wrong with the line."))
    citation = citations_of(package).get(key)
    if citation is None:
        detail = _("The package holds no such line.")
        raise InvalidInput(detail, [FieldError("/key", "unknown", detail)])
    if rule not in dict(rules()):
        detail = _("There is no such rule.")
        raise InvalidInput(detail, [FieldError("/rule", "unknown", detail)])
    own = package.objections.filter(raised_by_id=user_id, state__in=UNDECIDED_OBJECTIONS)
    if own.count() >= UNDECIDED_MAX:
        raise Conflict(_("You have %(count)d undecided objections here already.") % {"count": UNDECIDED_MAX})
    if own.filter(key=key, rule=rule).exists():
        raise Conflict(_("You have objected to this line by this rule already."))
    row = Objection.objects.create(
        package=package,
        revision=citation.revision,
        key=key,
        line=f"{citation.part} · {citation.label}"[:800],
        quote=citation.text,
        rule=rule,
        statement=statement,
        raised_by_id=user_id,
    )
    _record(actor, row, "objection.raised", None)
    owners = set(leads_of(package.project))
    if citation.revision is not None:
        owners.add(citation.revision.created_by_id)
    _notify(
        row,
        "objection.raised",
        gettext_lazy("An objection to package %(number)d waits for an answer"),
        owners,
    )
    return row


@transaction.atomic
def objection_answer(*, actor: Actor, objection: Objection, answer: str) -> Objection:
    """Answer an objection, by an author of the line or a technical lead; another answer replaces it."""
    user_id = answering_require(actor=actor, objection=objection)
    answer = require_text("/answer", answer, _("Say what you answer."))
    row = _locked(objection)
    before = str(row.state)
    row.state, row.answer = ObjectionState.ANSWERED, answer
    row.answered_by_id, row.answered_at = user_id, timezone.now()
    _save(row)
    _record(actor, row, "objection.answered", before)
    able = [user.pk for user, why in deciders(row) if not why]
    _notify(
        row, "objection.answered", gettext_lazy("An objection to package %(number)d waits for a ruling"), able
    )
    return row


def answering_require(*, actor: Actor, objection: Objection) -> int:
    """The id of the person who may answer; NotPermitted with the reason for another."""
    user_id = require_person(actor)
    policies.require(actor, "project.view", objection.package.project)
    hindrance = answer_hindrance(objection, User.objects.get(pk=user_id))
    if hindrance:
        raise NotPermitted(hindrance)
    return user_id


@transaction.atomic
def objection_rule(*, actor: Actor, objection: Objection, upheld: bool, ruling: str) -> Objection:
    """Decide an answered objection, by a third without a part in it; upheld, it makes the package stale."""
    user_id = ruling_require(actor=actor, objection=objection)
    ruling = require_text("/ruling", ruling, _("Give the reasons for the ruling."))
    package = Package.objects.select_for_update().select_related("project").get(pk=objection.package_id)
    row = _locked(objection)
    if row.state != ObjectionState.ANSWERED:
        raise Conflict(_("The objection has not been answered yet."))
    row.state = ObjectionState.UPHELD if upheld else ObjectionState.DISMISSED
    row.ruling, row.ruled_by_id, row.ended_at = ruling, user_id, timezone.now()
    _save(row)
    _record(actor, row, f"objection.{row.state}", ObjectionState.ANSWERED)
    if upheld and package.state in STANDING_STATES:
        package_mark_stale(
            package=package, actor=actor, obj=row, what=gettext_lazy("an objection was upheld")
        )
    told = {row.raised_by_id, *leads_of(package.project)}
    _notify(row, "objection.ruled", gettext_lazy("An objection to package %(number)d was decided"), told)
    return row


def ruling_require(*, actor: Actor, objection: Objection) -> int:
    """The id of the person who may rule; NotPermitted with the reason for another."""
    user_id = require_person(actor)
    project = objection.package.project
    policies.require(actor, "objection.rule", project)
    hindrance = ruling_hindrance(objection, User.objects.get(pk=user_id), contributors(project))
    if hindrance:
        raise NotPermitted(_("You cannot rule on this objection: %(why)s.") % {"why": hindrance})
    return user_id


@transaction.atomic
def objection_withdraw(*, actor: Actor, objection: Objection) -> Objection:
    """Take one's own undecided objection back."""
    taking_back_require(actor=actor, objection=objection)
    row = _locked(objection)
    before = str(row.state)
    row.state, row.ended_at = ObjectionState.WITHDRAWN, timezone.now()
    _save(row)
    _record(actor, row, "objection.withdrawn", before)
    return row


def taking_back_require(*, actor: Actor, objection: Objection) -> None:
    """NotPermitted for anybody but who raised the objection."""
    user_id = require_person(actor)
    policies.require(actor, "project.view", objection.package.project)
    if objection.raised_by_id != user_id:
        raise NotPermitted(_("Only the person who raised an objection takes it back."))


def _require_contestable(package: Package) -> None:
    if package.state not in STANDING_STATES:
        detail = _("Package %(number)d is “%(state)s”; nobody objects to it any more.")
        raise Conflict(detail % {"number": package.number, "state": package.get_state_display()})
    if package.decisions.filter(state=DecisionState.CONFIRMED).exists():
        raise Conflict(_("The decision on this package is confirmed already."))


def _locked(objection: Objection) -> Objection:
    rows = Objection.objects.select_for_update(of=("self",)).select_related("package__project", "revision")
    row = rows.get(pk=objection.pk)
    if not row.undecided:
        raise Conflict(_("The objection is “%(state)s”.") % {"state": row.get_state_display()})
    return row


def _save(row: Objection) -> None:
    row.version += 1
    row.save()


def _record(actor: Actor, row: Objection, verb: str, before: str | None) -> None:
    project = row.package.project
    audit.record(
        actor=actor,
        verb=verb,
        obj=row,
        project_id=project.pk,
        before=None if before is None else {"state": before},
        after={
            "state": row.state,
            "package": row.package.number,
            "rule": row.rule,
            "line": row.line,
            "quote": row.quote,
            "statement": row.statement,
            "answer": row.answer,
            "ruling": row.ruling,
        },
    )
    tell(project, "objection", objection=row.pk, state=str(row.state))


def _notify(row: Objection, kind: str, text: Text, user_ids: set[int] | list[int]) -> None:
    package = row.package
    send(
        Notice(
            kind=kind,
            title=said(text, number=package.number),
            user_ids=sorted(user_ids),
            project_id=package.project_id,
            route="reviews:package",
            route_args=(package.pk,),
        )
    )
