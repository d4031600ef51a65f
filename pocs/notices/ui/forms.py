"""Forms of notices: preferences and webhooks."""

from collections.abc import Iterable
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from pocs.notices.choices import Channel
from pocs.notices.kinds import KINDS
from pocs.notices.selectors import KindChoice


class PreferencesForm(forms.Form):
    """The channel of each kind (`channel:<kind>`), and the digest."""

    digest_on = forms.BooleanField(
        label=_("send me the daily digest"),
        required=False,
        help_text=_("Everything that waits for you, and what came for the digest. No message on empty days."),
    )
    digest_hour = forms.TypedChoiceField(
        label=_("from what hour"),
        coerce=int,
        choices=[(hour, f"{hour:02d}:00") for hour in range(24)],
        help_text=_("In your time zone."),
    )
    version = forms.IntegerField(widget=forms.HiddenInput)

    def __init__(self, *args: Any, kinds: Iterable[KindChoice], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.kinds = list(kinds)
        for kind in self.kinds:
            self.fields[self._name(kind.key)] = forms.ChoiceField(
                label=str(kind.label), choices=Channel.choices, initial=kind.channel, widget=forms.RadioSelect
            )
        self.pointer_fields = {"/digest_hour": "digest_hour"}

    def _name(self, kind: str) -> str:
        return f"channel:{kind}"

    @property
    def rows(self) -> list[tuple[KindChoice, forms.BoundField]]:
        return [(kind, self[self._name(kind.key)]) for kind in self.kinds]

    def channels(self) -> dict[str, str]:
        """The chosen channel of every kind; call after validation."""
        return {kind.key: self.cleaned_data[self._name(kind.key)] for kind in self.kinds}


class WebhookForm(forms.Form):
    name = forms.CharField(label=_("name"), max_length=80)
    url = forms.CharField(
        label=_("address"),
        max_length=500,
        widget=forms.URLInput(attrs={"placeholder": "https://"}),
        help_text=_("A public https address. Redirects are not followed."),
    )
    kinds = forms.MultipleChoiceField(
        label=_("kinds"),
        choices=[(kind.key, kind.label) for kind in KINDS.values()],
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=_("None chosen: every kind."),
    )


class NewWebhookForm(WebhookForm):
    for_organisation = forms.BooleanField(
        label=_("for the organisation"),
        required=False,
        help_text=_(
            "Told of everything of these kinds, without names and texts: kind, project number and page."
        ),
    )

    def __init__(self, *args: Any, is_admin: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not is_admin:
            del self.fields["for_organisation"]


class EditWebhookForm(WebhookForm):
    active = forms.BooleanField(label=_("active"), required=False)
    version = forms.IntegerField(widget=forms.HiddenInput)
