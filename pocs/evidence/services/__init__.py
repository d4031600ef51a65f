"""Everything that changes evidence.

`Evidence.version` orders all of it: every change takes the evidence's row, compares the version
that the editor saw where a form was filled, and adds one.
"""

from pocs.evidence.services.attachments import attachment_add, attachment_remove
from pocs.evidence.services.discussing import (
    thread_comment,
    thread_open,
    thread_reopen,
    thread_resolve,
)
from pocs.evidence.services.requesting import review_request, review_request_withdraw
from pocs.evidence.services.reviewing import (
    revision_return,
    revision_review,
    revision_submit,
    revision_verify,
    revisions_freeze,
)
from pocs.evidence.services.supporting import readiness_support_set
from pocs.evidence.services.writing import configuration_from_run, evidence_create, revision_edit

__all__ = [
    "attachment_add",
    "attachment_remove",
    "configuration_from_run",
    "evidence_create",
    "readiness_support_set",
    "review_request",
    "review_request_withdraw",
    "revision_edit",
    "revision_return",
    "revision_review",
    "revision_submit",
    "revision_verify",
    "revisions_freeze",
    "thread_comment",
    "thread_open",
    "thread_reopen",
    "thread_resolve",
]
