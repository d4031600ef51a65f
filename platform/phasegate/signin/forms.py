"""Forms of sign-in and preferences."""

import zoneinfo
from typing import Any

from django import forms
from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from phasegate.signin import throttle


class SignInForm(AuthenticationForm):
    """Name and password, throttled per name and address."""

    def clean(self) -> dict[str, Any]:
        username = self.cleaned_data.get("username") or ""
        address = self.request.META.get("REMOTE_ADDR", "") if self.request else ""
        if throttle.is_blocked(username, address):
            raise ValidationError(
                _("Too many wrong passwords. Wait five minutes and try again."), code="throttled"
            )
        try:
            cleaned = super().clean()
        except ValidationError:
            throttle.note_failure(username, address)
            raise
        throttle.forget(username, address)
        return cleaned


def _zone_names() -> list[tuple[str, str]]:
    """Area/City names and UTC; the historical aliases would only make the list longer."""
    areas = (
        "Africa",
        "America",
        "Antarctica",
        "Asia",
        "Atlantic",
        "Australia",
        "Europe",
        "Indian",
        "Pacific",
    )
    names = (name for name in zoneinfo.available_timezones() if name.split("/")[0] in areas)
    return [(name, name.replace("_", " ")) for name in ["UTC", *sorted(names)]]


class PreferencesForm(forms.Form):
    """Language and time zone of one person."""

    language = forms.ChoiceField(
        label=_("Language"), choices=[("", _("As the browser asks")), *settings.LANGUAGES], required=False
    )
    time_zone = forms.ChoiceField(label=_("Time zone"), choices=_zone_names)
