"""One audience's view of a project: its questions, each with what answers it, or plainly without."""

from dataclasses import dataclass

from pocs.projects.models import Project
from pocs.reviews.audiences import governed, measured
from pocs.reviews.audiences.material import Answering, Line, Material
from pocs.reviews.audiences.questions import VIEWS, Audience, asked
from pocs.reviews.models import Package

ANSWERS: dict[str, Answering] = measured.ANSWERS | governed.ANSWERS
#: answers in the words of one audience, where the common one speaks the field's language
IN_PLAIN_WORDS: dict[tuple[Audience, str], Answering] = {
    (Audience.BUSINESS, "Q1"): measured.users_wait,
    (Audience.PROCUREMENT, "Q3"): measured.what_it_costs,
}
#: where an open question is answered: the page on which its answer is written, given or measured
PLACES: dict[str, str] = {
    "Q1": "runs:matrix",
    "Q2": "runs:matrix",
    "Q3": "runs:experiments",
    "Q4": "runs:matrix",
    "Q5": "runs:experiments",
    "Q6": "reviews:conclusion",
    "Q7": "reviews:conclusion",
    "Q8": "reviews:conclusion",
    "Q9": "reviews:conclusion",
    "Q10": "reviews:observation",
    "Q11": "projects:affected",
    "Q12": "projects:readiness",
    "Q13": "reviews:business_result",
    "Q14": "runs:answers",
    "Q15": "reviews:packages",
    "Q16": "reviews:packages",
    "Q17": "reviews:packages",
    "Q18": "reviews:decision",
    "Q19": "reviews:follow_through",
    "Q20": "reviews:observation",
    "Q21": "projects:edit",
    "Q22": "evidence:list",
    "Q23": "projects:edit",
    "Q24": "projects:edit",
    "Q25": "projects:edit",
    "Q26": "evidence:list",
    "Q27": "reviews:business_result",
    "Q28": "projects:edit",
}


@dataclass(frozen=True)
class Answer:
    """One question with the lines that answer it; none means that it is not answered.

    `place` is the page on which an open question is answered.
    """

    code: str
    question: str
    lines: list[Line]
    place: str

    @property
    def answered(self) -> bool:
        return bool(self.lines)


@dataclass(frozen=True)
class AudienceView:
    """What one audience asks of one project, in the current language."""

    audience: Audience
    purpose: str
    package: Package | None
    answers: list[Answer]

    @property
    def open(self) -> list[Answer]:
        """The questions that nothing answers yet."""
        return [answer for answer in self.answers if not answer.answered]


def audience_view(project: Project, audience: Audience) -> AudienceView:
    """The questions of `audience`, answered from the newest package and from what followed it."""
    material = Material(project)
    view = VIEWS[audience]
    answers = [_answer(material, audience, code) for code in view.questions]
    return AudienceView(audience, str(view.purpose), material.package, answers)


def _answer(material: Material, audience: Audience, code: str) -> Answer:
    answering = IN_PLAIN_WORDS.get((audience, code), ANSWERS[code])
    return Answer(code, asked(audience, code), answering(material), material.url(PLACES[code]))
