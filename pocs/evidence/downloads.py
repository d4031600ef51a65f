"""How a stored file leaves the site: checked, as a download, never as a page of ours."""

from django.http import FileResponse

from pocs.evidence.content import check_file
from pocs.evidence.models import Attachment


def download(attachment: Attachment) -> FileResponse:
    """The file's bytes; raises ContentMismatch when they are not those that were uploaded."""
    check_file(attachment)
    response = FileResponse(
        attachment.file.open("rb"),
        as_attachment=True,
        filename=attachment.name,
        content_type=attachment.content_type,
    )
    response["X-Content-Type-Options"] = "nosniff"
    response["Content-Security-Policy"] = "sandbox; default-src 'none'"
    response["Cache-Control"] = "private, no-store"
    return response
