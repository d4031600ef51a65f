"""Everything that changes evidence.

`Evidence.version` orders all of it: every change takes the evidence's row, compares the version
that the editor saw where a form was filled, and adds one.
"""

from pocs.evidence.services.attachments import attachment_add, attachment_remove
from pocs.evidence.services.reviewing import (
    revision_return,
    revision_review,
    revision_submit,
    revision_verify,
    revisions_freeze,
)
from pocs.evidence.services.writing import configuration_from_run, evidence_create, revision_edit

__all__ = [
    "attachment_add",
    "attachment_remove",
    "configuration_from_run",
    "evidence_create",
    "revision_edit",
    "revision_return",
    "revision_review",
    "revision_submit",
    "revision_verify",
    "revisions_freeze",
]
