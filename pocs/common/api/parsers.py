"""The JSON of request bodies: read strictly, and refused by pointer where it holds what cannot be stored."""

from collections.abc import Iterator, Mapping
from typing import IO, Any

from django.utils.translation import gettext as _
from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser

from pocs.common.errors import FieldError, InvalidInput
from pocs.common.storing import NO_TEXT, storable_text

#: whole numbers above have no column and no exact float
_LARGEST = 2**63 - 1
MAX_ERRORS = 50


class StorableJSONParser(JSONParser):
    """JSON whose texts and numbers the database can hold; deep nesting is malformed, not a failure."""

    def parse(self, stream: IO[Any], media_type: Any = None, parser_context: Any = None) -> Any:
        try:
            body = super().parse(stream, media_type, parser_context)
            found = [error for error, _place in zip(_faults(body, ""), range(MAX_ERRORS), strict=False)]
        except (RecursionError, LookupError) as error:  # nested too deeply, or a charset nobody knows
            raise ParseError(_("The body cannot be read as JSON.")) from error
        if found:
            raise InvalidInput(_("The body holds values that cannot be stored."), found)
        return body


def _faults(value: Any, pointer: str) -> Iterator[FieldError]:
    if isinstance(value, str) and NO_TEXT.search(value):
        text = _("This text holds a character that cannot be stored.")
        yield FieldError(storable_text(pointer), "characters", text)
    elif isinstance(value, int) and not -_LARGEST <= value <= _LARGEST:
        yield FieldError(storable_text(pointer), "too_large", _("This number is too large."))
    elif isinstance(value, Mapping):
        for key, item in value.items():
            place = f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}"
            if NO_TEXT.search(key):
                text = _("This name holds a character that cannot be stored.")
                yield FieldError(storable_text(place), "characters", text)
            yield from _faults(item, place)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _faults(item, f"{pointer}/{index}")
