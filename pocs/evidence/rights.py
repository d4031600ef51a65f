"""What the routes of evidence ask for."""

from typing import Any

from django.utils.translation import gettext_lazy as _

from pocs.common.access import Table
from pocs.common.actors import Actor
from pocs.evidence.models import Attachment, Evidence, EvidenceRevision, Thread
from pocs.evidence.selectors import review_request_get, revision_get, thread_get
from pocs.evidence.services.discussing import discussing_require, resolving_require
from pocs.evidence.services.requesting import asking_require, withdrawing_require
from pocs.evidence.services.reviewing import reviewing_require
from pocs.people.access import behind, needs, reads, rule
from pocs.projects.models import Project

PROJECT, EVIDENCE = behind(Project), behind(Evidence, "project")
REVISION = behind(EvidenceRevision, "evidence__project")
ATTACHMENT = behind(Attachment, "revision__evidence__project")
READS = reads()
READS_EVIDENCE = rule(
    "reads-evidence", _("whoever reads the project, and tokens that may write its evidence")
)
WRITES = needs("evidence.edit", REVISION)


def _on_revision(ask: Any) -> Any:
    return lambda actor, pk, **more: ask(actor=actor, revision=revision_get(actor, pk))


def _on_thread(ask: Any) -> Any:
    return lambda actor, pk, **more: ask(actor=actor, thread=thread_get(actor, pk))


def _discussing(actor: Actor, pk: int, **more: Any) -> None:
    discussing_require(actor=actor, project=REVISION(actor, {"pk": pk}))


def _discussing_thread(actor: Actor, pk: int, **more: Any) -> None:
    discussing_require(actor=actor, project=behind(Thread, "evidence__project")(actor, {"pk": pk}))


def _moving_thread(actor: Actor, pk: int, to: str = "", **more: Any) -> None:
    thread = thread_get(actor, pk)
    if to == "resolve":
        resolving_require(actor=actor, thread=thread)
    else:
        discussing_require(actor=actor, project=thread.evidence.project)


REVIEWS = rule(
    "evidence.review",
    _("reviewers and technical leads who contributed to no revision of the evidence; no token"),
    _on_revision(reviewing_require),
)
DISCUSSES_TEXT = _("whoever has a role on the project; no auditor, no token")
DISCUSSES = rule("discuss", DISCUSSES_TEXT, _discussing)
DISCUSSES_THREAD = rule("discuss", DISCUSSES_TEXT, _discussing_thread)
RESOLVES = rule(
    "resolve",
    _("whoever opened the discussion, and whoever writes or reviews evidence"),
    _on_thread(resolving_require),
)
MOVES_THREAD = rule("move-thread", _("as to resolve it; to open it again, as to discuss"), _moving_thread)
ASKS = rule(
    "ask-review", _("whoever writes or reviews evidence, tokens for it too"), _on_revision(asking_require)
)
WITHDRAWS = rule(
    "withdraw-request",
    _("whoever asked, or was asked"),
    lambda actor, pk, **more: withdrawing_require(actor=actor, request=review_request_get(actor, pk)),
)

TABLE: Table = {
    "api-project-evidence": {"GET": READS_EVIDENCE, "POST": needs("evidence.edit", PROJECT)},
    "api-evidence": {"GET": READS_EVIDENCE},
    "api-evidence-revisions": {"GET": READS_EVIDENCE, "POST": needs("evidence.edit", EVIDENCE)},
    "api-evidence-revision": {"GET": READS_EVIDENCE},
    "api-revision": {"GET": READS_EVIDENCE},
    "api-revision-rows": {"GET": READS_EVIDENCE},
    "api-revision-submit": {"POST": WRITES},
    "api-revision-review": {"POST": REVIEWS},
    "api-revision-return": {"POST": REVIEWS},
    "api-configurations": {"GET": READS},
    "api-readiness-evidence": {"GET": READS, "PUT": needs("project.edit", PROJECT)},
    "api-revision-requests": {"GET": READS_EVIDENCE},
    "api-revision-difference": {"GET": READS_EVIDENCE},
    "api-revision-lines": {"GET": READS_EVIDENCE},
    "api-revision-threads": {"GET": READS_EVIDENCE, "POST": DISCUSSES},
    "api-thread": {"GET": READS_EVIDENCE},
    "api-thread-comments": {"POST": DISCUSSES_THREAD},
    "api-thread-resolve": {"POST": RESOLVES},
    "api-thread-reopen": {"POST": DISCUSSES_THREAD},
    "api-review-requests": {"GET": READS_EVIDENCE, "POST": ASKS},
    "api-review-request-withdraw": {"POST": WITHDRAWS},
    "api-revision-attachments": {"GET": READS_EVIDENCE, "POST": WRITES},
    "api-revision-attachment": {"GET": READS_EVIDENCE, "DELETE": needs("evidence.edit", ATTACHMENT)},
    "api-revision-attachment-content": {"GET": READS_EVIDENCE},
    "api-attachment": {"GET": READS_EVIDENCE, "DELETE": needs("evidence.edit", ATTACHMENT)},
    "api-attachment-content": {"GET": READS_EVIDENCE},
    "evidence:list": {"GET": READS},
    "evidence:create_from_run": {"GET": reads("evidence.edit"), "POST": needs("evidence.edit", PROJECT)},
    "evidence:create": {"GET": reads("evidence.edit"), "POST": needs("evidence.edit", PROJECT)},
    "evidence:configurations": {"GET": READS},
    "evidence:readiness": {"GET": reads("project.edit"), "POST": needs("project.edit", PROJECT)},
    "evidence:detail": {"GET": READS},
    "evidence:edit": {"GET": reads("evidence.edit"), "POST": needs("evidence.edit", EVIDENCE)},
    "evidence:difference": {"GET": READS},
    "evidence:submit": {"POST": WRITES},
    "evidence:review": {"POST": REVIEWS},
    "evidence:return": {"POST": REVIEWS},
    "evidence:requests": {"GET": READS},
    "evidence:thread_open": {"GET": READS, "POST": DISCUSSES},
    "evidence:review_request": {"POST": ASKS},
    "evidence:review_request_withdraw": {"POST": WITHDRAWS},
    "evidence:thread_comment": {"POST": DISCUSSES_THREAD},
    "evidence:thread_state": {"POST": MOVES_THREAD},
    "evidence:attach": {"POST": WRITES},
    "evidence:revision_download": {"GET": READS},
    "evidence:download": {"GET": READS},
    "evidence:remove": {"POST": needs("evidence.edit", ATTACHMENT)},
}
