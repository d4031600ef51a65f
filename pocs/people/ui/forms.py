"""Forms of people and teams."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from pocs.common.actors import Actor
from pocs.people.roles import OrganisationRole
from pocs.people.selectors import active_people_of, teams_of


class PlaceForm(forms.Form):
    """Role in the organisation and team of one person."""

    role = forms.ChoiceField(label=_("role in the organisation"), choices=OrganisationRole.choices)
    team: forms.ModelChoiceField = forms.ModelChoiceField(
        label=_("team"), queryset=None, required=False, empty_label=_("No team")
    )

    def __init__(self, *args: Any, actor: Actor, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["team"].queryset = teams_of(actor)  # type: ignore[attr-defined]


class PersonForm(PlaceForm):
    username = forms.CharField(label=_("user name"), max_length=150)
    first_name = forms.CharField(label=_("first name"), max_length=150, required=False)
    last_name = forms.CharField(label=_("last name"), max_length=150, required=False)
    email = forms.EmailField(label=_("email"), required=False)
    field_order = ["username", "first_name", "last_name", "email", "role", "team"]


class TeamForm(forms.Form):
    name = forms.CharField(label=_("name"), max_length=120)
    contact = forms.CharField(label=_("contact or alert route"), max_length=200, required=False)


class DelegationForm(forms.Form):
    """Who signs for the reader, and on which days."""

    deputy: forms.ModelChoiceField = forms.ModelChoiceField(
        label=_("deputy"), queryset=None, empty_label=_("Choose a person")
    )
    starts_on = forms.DateField(label=_("from"), widget=forms.DateInput(attrs={"type": "date"}))
    ends_on = forms.DateField(
        label=_("until"),
        widget=forms.DateInput(attrs={"type": "date"}),
        help_text=_("The last day on which it holds."),
    )
    reason = forms.CharField(label=_("reason"), max_length=300)

    def __init__(self, *args: Any, actor: Actor, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        people = active_people_of(actor).exclude(pk=actor.user_id or 0)
        self.fields["deputy"].queryset = people  # type: ignore[attr-defined]
