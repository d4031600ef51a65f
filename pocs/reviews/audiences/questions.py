"""What decision-makers ask (Q1–Q28), who asks it, and in which words."""

from dataclasses import dataclass

from django.db import models
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from pocs.common.errors import NotFound, Text


class Audience(models.TextChoices):
    TECHNICAL_LEAD = "technical-lead", _("Technical lead")
    PLATFORM_TEAM = "platform-team", _("Platform team")
    PROCUREMENT = "procurement", _("Procurement and project lead")
    BUSINESS = "business", _("Business")


@dataclass(frozen=True)
class View:
    """One audience's view: what it is for, and its questions in the order in which they are asked."""

    purpose: Text
    questions: tuple[str, ...]


#: code -> the question in the words of the checklist
QUESTIONS: dict[str, Text] = {
    "Q1": _("Where is it slow?"),
    "Q2": _("Prefill, queue or something else?"),
    "Q3": _("Why did it get slower or dearer?"),
    "Q4": _("Which action fits which goal?"),
    "Q5": _("Did an optimisation bring new harm?"),
    "Q6": _("Are caches released in time?"),
    "Q7": _("Does batching hurt the tail?"),
    "Q8": _("Can a model switch be rolled back?"),
    "Q9": _("Do the logs locate the error?"),
    "Q10": _("Can it run in the long term?"),
    "Q11": _("Who and which data are affected?"),
    "Q12": _("Is the platform ready?"),
    "Q13": _("Does the business accept the result and the pace of expansion?"),
    "Q14": _("Does the output satisfy the scenario?"),
    "Q15": _("Are resources and scheduling stable?"),
    "Q16": _("Are permission, log and audit traces kept?"),
    "Q17": _("Do the three parties agree?"),
    "Q18": _("Who confirmed?"),
    "Q19": _("Are budget, procurement and launch unblocked?"),
    "Q20": _("Who observes capacity, cost and stability?"),
    "Q21": _("What are the boundaries of what is built?"),
    "Q22": _("Which material verifies it?"),
    "Q23": _("Supplier, budget and delivery responsibility?"),
    "Q24": _("Where does it apply?"),
    "Q25": _("Where not?"),
    "Q26": _("Which logs, metrics, configuration and owners verify it?"),
    "Q27": _("Did experience, efficiency or cost improve?"),
    "Q28": _("Where are the responsibility boundary and the budget basis?"),
}

#: the same question as an audience without the field's vocabulary asks it
IN_PLAIN_WORDS: dict[tuple[str, str], Text] = {
    (Audience.BUSINESS, "Q1"): _("How long do our users wait?"),
    (Audience.BUSINESS, "Q5"): _("Do the answers stay as good as before?"),
    (Audience.BUSINESS, "Q14"): _("Are the answers good enough for our work?"),
    (Audience.PROCUREMENT, "Q3"): _("What would it cost, and why more or less than before?"),
    (Audience.PROCUREMENT, "Q10"): _("Will it still hold in a year?"),
    (Audience.PROCUREMENT, "Q22"): _("Which signed material does this rest on?"),
}

VIEWS: dict[Audience, View] = {
    Audience.TECHNICAL_LEAD: View(
        _("Where the time goes, what changes it, what that spoils, and what proves it."),
        ("Q1", "Q2", "Q3", "Q4", "Q5", "Q6", "Q7", "Q8", "Q9", "Q10", "Q21", "Q22", "Q26"),
    ),
    Audience.PLATFORM_TEAM: View(
        _("Whether it can be operated: readiness, release, rollback, logs, stability and who watches it."),
        ("Q12", "Q15", "Q16", "Q2", "Q6", "Q7", "Q8", "Q9", "Q10", "Q20", "Q26"),
    ),
    Audience.PROCUREMENT: View(
        _("What is agreed, what is still open, who delivers and pays, and who answers for it."),
        ("Q17", "Q18", "Q19", "Q23", "Q28", "Q3", "Q10", "Q11", "Q12", "Q20", "Q21", "Q22", "Q24", "Q25"),
    ),
    Audience.BUSINESS: View(
        _("What users get, for which work it is meant and for which not, and what happens next."),
        ("Q24", "Q25", "Q27", "Q1", "Q14", "Q5", "Q13", "Q11", "Q18"),
    ),
}


def asked(audience: str, code: str) -> str:
    """The question as this audience asks it."""
    return str(IN_PLAIN_WORDS.get((audience, code), QUESTIONS[code]))


def audience_named(name: str) -> Audience:
    """The audience of this name; NotFound for any other."""
    if name not in Audience.values:
        raise NotFound(gettext("There is no such audience."))
    return Audience(name)
