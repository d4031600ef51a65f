"""How an endpoint is asked, and where its server tells of itself."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from inference.errors import InputError
from inference.targets.http import Endpoint
from inference.targets.openai import PATHS
from inference.targets.server_pages import AUTO
from pocs.common.errors import FieldError, InvalidInput

#: of each setting the value that need not be stored
DEFAULTS: dict[str, Any] = {
    "endpoint": "chat",
    "streamed": True,
    "metrics_url": AUTO,
    "device_metrics_url": "",
}
OFF = "off"  # of `metrics_url`: the server's own figures are not read


def checked_endpoint_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that differ from their defaults; raises InvalidInput with the pointer of a wrong one."""
    checked: dict[str, Any] = {}
    for name, value in given.items():
        pointer = f"/endpoint_settings/{name}"
        if name not in DEFAULTS:
            raise _wrong(pointer, "unknown", _("An endpoint has no setting “%(name)s”.") % {"name": name})
        if value is None or value == "":
            continue
        if name == "endpoint" and value not in PATHS:
            raise _wrong(pointer, "choice", _("The endpoint is one of: %(all)s.") % {"all": ", ".join(PATHS)})
        if name == "streamed" and not isinstance(value, bool):
            raise _wrong(pointer, "type", _("Answers are either streamed or not."))
        if name.endswith("_url"):
            value = _checked_page(pointer, name, value)  # noqa: PLW2901
        if value != DEFAULTS[name]:
            checked[name] = value
    return checked


def _checked_page(pointer: str, name: str, value: object) -> str:
    if name == "metrics_url" and value in (OFF, AUTO):
        return str(value)
    try:
        Endpoint.parse(str(value))
    except InputError as error:
        text = _("“%(url)s” is no address of a metrics page such as http://host:8000/metrics.")
        raise _wrong(pointer, "url", text % {"url": value}) from error
    return str(value).strip()


def options_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The options of `OpenAITarget` that these settings mean."""
    found = DEFAULTS | dict(settings)
    metrics_url = found["metrics_url"]
    return {
        "endpoint": found["endpoint"],
        "streamed": found["streamed"],
        "server_metrics_url": None if metrics_url == OFF else metrics_url,
        "device_metrics_url": found["device_metrics_url"] or None,
    }


def _wrong(pointer: str, code: str, text: str) -> InvalidInput:
    return InvalidInput(text, [FieldError(pointer, code, text)])
