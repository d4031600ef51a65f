"""In which language a sheet is asked for."""

from django.conf import settings
from django.utils import translation
from django.utils.translation import gettext as _

from pocs.common.errors import FieldError, InvalidInput


def sheet_language(asked: str | None) -> str:
    """A language of the site: the one asked for, else the reader's; InvalidInput for an unknown one."""
    known = [code for code, _name in settings.LANGUAGES]
    if asked is None:
        current = translation.get_language() or settings.LANGUAGE_CODE
        return current if current in known else settings.LANGUAGE_CODE
    if asked not in known:
        detail = _("There is no language “%(code)s”; there are: %(known)s.") % {
            "code": asked,
            "known": ", ".join(known),
        }
        raise InvalidInput(detail, [FieldError("/lang", "unknown", detail)])
    return asked
