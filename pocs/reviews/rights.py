"""What the routes of the reviews ask for."""

from collections.abc import Callable
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from pocs.common.access import Right, Table
from pocs.common.actors import Actor
from pocs.common.errors import NotPermitted
from pocs.people import policies
from pocs.people.access import PERSON, SIGNED_IN, behind, needs, person_needs, reads, rule
from pocs.projects.models import Project
from pocs.reviews import selectors
from pocs.reviews.choices import Slot
from pocs.reviews.models import Decision, Package, Waiver
from pocs.reviews.services.decisions import closing_require, revoking_require
from pocs.reviews.services.follow_through import finishing_require
from pocs.reviews.services.objections import answering_require, ruling_require, taking_back_require
from pocs.reviews.services.observation import reading_require
from pocs.reviews.services.policy import policy_require
from pocs.reviews.services.signoffs import withdrawing_require

PROJECT, PACKAGE = behind(Project), behind(Package, "project")
READS = reads()
CONCLUDES = person_needs("conclusion.edit", PROJECT)
FREEZES, ASKS_AGAIN = person_needs("package.freeze", PROJECT), person_needs("package.freeze", PACKAGE)
GRANTS, REQUESTS = (
    person_needs("waiver.grant", behind(Waiver, "project")),
    person_needs("waiver.request", PROJECT),
)
PROPOSES = person_needs("decision.propose", PROJECT)
CONFIRMS = person_needs("decision.confirm", behind(Decision, "project"))
FOLLOWS, OBSERVES = person_needs("followthrough.edit", PROJECT), person_needs("observation.edit", PROJECT)


def _one(
    name: str, get: Callable[[Actor, int], Any], require: Callable[..., object], text: Any, what: str
) -> Right:
    """A right that the service asks of one row (`what`: its name there)."""
    return rule(name, text, lambda actor, pk, **more: require(actor=actor, **{what: get(actor, pk)}))


def _ask_signing(actor: Actor, pk: int, slot: str = "") -> None:
    """Whoever may sign this slot, or any of them where the route names none."""
    package = selectors.package_get(actor, pk)
    for one in Slot.values:
        capability = f"signoff.{one}"
        if slot in ("", one) and (
            policies.allowed(actor, capability, package.project)
            or policies.principals_for(actor, capability, package.project)
        ):
            return
    raise NotPermitted(_("Your role on this project does not allow this."))


def _ask_reading(actor: Actor, pk: int, kind: str) -> None:
    project = PROJECT(actor, {"pk": pk})
    reading_require(actor=actor, observation=selectors.observation_row(project, kind))


def _ask_finishing(actor: Actor, pk: int, kind: str) -> None:
    project = PROJECT(actor, {"pk": pk})
    finishing_require(actor=actor, task=selectors.task_get(actor, project, kind))


def _ask_schedule(actor: Actor, pk: int) -> None:
    project = PROJECT(actor, {"pk": pk})
    for capability in ("observation.edit", "run.execute"):
        policies.require(actor, capability, project)


SIGNS = rule(
    "sign",
    gettext_lazy("the signer of the slot, and today's deputy; nobody who contributed; no token"),
    _ask_signing,
)
WITHDRAWS = _one(
    "withdraw-signature", selectors.signoff_get, withdrawing_require,
    gettext_lazy("who gave the signature, and for whom it was given"), "signoff",
)  # fmt: skip
OBJECTS = person_needs("objection.raise", PACKAGE)
ANSWERS = _one(
    "answer-objection", selectors.objection_get, answering_require,
    gettext_lazy("technical leads and authors of the line, but not who raised the objection"), "objection",
)  # fmt: skip
RULES = _one(
    "objection.rule", selectors.objection_get, ruling_require,
    gettext_lazy("reviewers and decision makers without a part in the line or the dispute"), "objection",
)  # fmt: skip
TAKES_BACK = _one(
    "withdraw-objection", selectors.objection_get, taking_back_require,
    gettext_lazy("who raised the objection"), "objection",
)  # fmt: skip
REVOKES = _one(
    "revoke-decision", selectors.decision_get, revoking_require,
    gettext_lazy("decision makers; a proposal, also who proposed it"), "decision",
)  # fmt: skip
CLOSES = _one(
    "close-condition", selectors.condition_get, closing_require,
    gettext_lazy("decision makers and the condition's owner"), "condition",
)  # fmt: skip
FINISHES = rule("finish-task", gettext_lazy("as followthrough.edit, and the task's owner"), _ask_finishing)
READS_IN = rule("read-in", gettext_lazy("as observation.read_in, and the named observer"), _ask_reading)
SCHEDULES = rule(
    "schedule", gettext_lazy("who has both observation.edit and run.execute; no token"), _ask_schedule
)
SETS_POLICY = rule(
    "administrator",
    gettext_lazy("administrators of the organisation"),
    lambda actor, **more: policy_require(actor=actor),
)

TABLE: Table = {
    "api-conclusion": {"GET": READS, "PATCH": CONCLUDES},
    "api-business-result": {"GET": READS, "PATCH": CONCLUDES},
    "api-packages": {"GET": READS, "POST": FREEZES},
    "api-package": {"GET": READS},
    "api-signoffs": {"GET": READS, "POST": SIGNS},
    "api-signoff-ask": {"POST": ASKS_AGAIN},
    "api-package-lines": {"GET": READS},
    "api-objections": {"GET": READS, "POST": OBJECTS},
    "api-objection": {"GET": READS},
    "api-objection-answer": {"POST": ANSWERS},
    "api-objection-rule": {"POST": RULES},
    "api-objection-withdraw": {"POST": TAKES_BACK},
    "api-review-policy": {"GET": PERSON, "PATCH": SETS_POLICY},
    "api-duties": {"GET": SIGNED_IN},
    "api-duties-hand-over": {"POST": PERSON},
    "api-bundle": {"GET": reads("project.export")},
    "api-observation-schedule": {"GET": READS, "PUT": SCHEDULES},
    "api-signoff-withdraw": {"POST": WITHDRAWS},
    "api-waivers": {"GET": READS, "POST": REQUESTS},
    "api-waiver": {"GET": READS},
    "api-waiver-grant": {"POST": GRANTS},
    "api-waiver-refuse": {"POST": GRANTS},
    "api-waiver-revoke": {"POST": GRANTS},
    "api-decision": {"GET": READS, "POST": PROPOSES},
    "api-decisions": {"GET": READS},
    "api-decision-confirm": {"POST": CONFIRMS},
    "api-decision-revoke": {"POST": REVOKES},
    "api-condition-close": {"POST": CLOSES},
    "api-tasks": {"GET": READS},
    "api-task": {"GET": READS, "PUT": FOLLOWS},
    "api-task-done": {"POST": FINISHES},
    "api-observations": {"GET": READS},
    "api-observation": {"GET": READS, "PUT": OBSERVES},
    "api-readings": {"GET": READS, "POST": READS_IN},
    "api-observation-close": {"POST": OBSERVES},
    "api-sheet": {"GET": READS},
    "api-audience": {"GET": READS},
    "inbox": {"GET": PERSON},
    "reviews:conclusion": {"GET": READS, "POST": CONCLUDES},
    "reviews:business_result": {"GET": READS, "POST": CONCLUDES},
    "reviews:packages": {"GET": READS, "POST": FREEZES},
    "reviews:package": {"GET": READS},
    "reviews:sign": {"POST": SIGNS},
    "reviews:ask_again": {"POST": ASKS_AGAIN},
    "reviews:objection_raise": {"POST": OBJECTS},
    "reviews:objection_answer": {"POST": ANSWERS},
    "reviews:objection_rule": {"POST": RULES},
    "reviews:objection_withdraw": {"POST": TAKES_BACK},
    "reviews:policy": {"GET": PERSON, "POST": SETS_POLICY},
    "reviews:hand_over": {"GET": PERSON, "POST": PERSON},
    "reviews:bundle": {"GET": reads("project.export")},
    "reviews:schedule": {"POST": SCHEDULES},
    "reviews:withdraw": {"POST": WITHDRAWS},
    "reviews:waivers": {"GET": READS, "POST": REQUESTS},
    "reviews:waiver_act": {"POST": GRANTS},
    "reviews:decision": {"GET": READS, "POST": PROPOSES},
    "reviews:decision_confirm": {"POST": CONFIRMS},
    "reviews:decision_revoke": {"POST": REVOKES},
    "reviews:condition_close": {"POST": CLOSES},
    "reviews:follow_through": {"GET": READS},
    "reviews:task_set": {"POST": FOLLOWS},
    "reviews:task_done": {"POST": FINISHES},
    "reviews:observation": {"GET": READS},
    "reviews:observer_set": {"POST": OBSERVES},
    "reviews:reading": {"POST": READS_IN},
    "reviews:observation_close": {"POST": OBSERVES},
    "reviews:advance": {"POST": needs("project.advance", PROJECT)},
    "reviews:sheet": {"GET": READS},
    "reviews:sheet_pdf": {"GET": READS},
    "reviews:audience": {"GET": READS},
}
