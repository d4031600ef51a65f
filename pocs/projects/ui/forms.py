"""Forms of projects: they read what people type; what is allowed is the services' to say."""

from typing import Any

from django import forms
from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _

from pocs.common.actors import Actor
from pocs.people.models import User
from pocs.people.roles import SCOPES, ProjectRole
from pocs.people.selectors import active_people_of, teams_of
from pocs.projects.blueprints import BLUEPRINTS
from pocs.projects.choices import AffectedKind, OptimisationGoal
from pocs.projects.models import Project
from pocs.projects.services.projects import EDITABLE_FIELDS


class ProjectForm(forms.ModelForm):
    """The description of a project; `version` is the one the reader has seen."""

    version = forms.IntegerField(widget=forms.HiddenInput, required=False)

    class Meta:
        model = Project
        fields = list(EDITABLE_FIELDS)
        widgets = {
            name: forms.Textarea(attrs={"rows": 3})
            for name in (
                "goal",
                "where_applies",
                "where_not",
                "environment_note",
                "supplier",
                "budget_basis",
                "responsibility_boundary",
            )
        }
        help_texts = {
            "demo_environment_only": _("Gate G2 stays closed while this is so."),
            "environment_note": _("Which hardware, which data, which traffic."),
            "supplier": _("One a line: who supplies what, and who answers for its delivery."),
            "budget_basis": _("What the budget rests on: units, prices, period."),
            "responsibility_boundary": _("What supplier, platform and business each answer for."),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        goals = [("", _("No such goal")), *OptimisationGoal.choices]
        self.fields["optimisation_goal"].choices = goals  # type: ignore[attr-defined]

    def validate_unique(self) -> None:
        """The service says whether the name is free, in its own organisation only."""

    def values(self) -> dict[str, Any]:
        """What was typed, by field."""
        return {name: self.cleaned_data[name] for name in EDITABLE_FIELDS}


class NewProjectForm(ProjectForm):
    """A project from its beginning: empty or from a template."""

    template = forms.ChoiceField(
        label=_("template"),
        required=False,
        widget=forms.RadioSelect,
        help_text=_(
            "Fills in scenarios, readiness points and declarations as proposals; you can change all."
        ),
    )
    field_order = ["name", "template"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = [(key, f"{item.name}: {item.purpose}") for key, item in BLUEPRINTS.items()]
        self.fields["template"].choices = [("", _("none: begin empty")), *choices]  # type: ignore[attr-defined]
        self.fields["goal"].help_text = _("Empty: as the template says.")


class CloneForm(forms.Form):
    name = forms.CharField(label=_("name of the new project"), max_length=160)
    with_members = forms.BooleanField(
        label=_("take the members and their roles over"),
        required=False,
        help_text=_("You lead the new project in any case."),
    )


class MemberForm(forms.Form):
    user: forms.ModelChoiceField = forms.ModelChoiceField(
        label=_("person"), queryset=None, empty_label=_("Choose a person")
    )
    role = forms.ChoiceField(label=_("role"), choices=ProjectRole.choices)

    def __init__(self, *args: Any, actor: Actor, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["user"].queryset = active_people_of(actor)  # type: ignore[attr-defined]


class AffectedForm(forms.Form):
    kind = forms.ChoiceField(label=_("kind"), choices=AffectedKind.choices)
    name = forms.CharField(label=_("name"), max_length=200)
    owner = forms.CharField(label=_("owner"), max_length=200, required=False)
    note = forms.CharField(label=_("note"), max_length=500, required=False)


class AffectedEditForm(AffectedForm):
    version = forms.IntegerField(widget=forms.HiddenInput)


class ReadinessForm(forms.Form):
    """One readiness point; one such form per point stands on the page, told apart by its prefix."""

    ready = forms.BooleanField(label=_("ready"), required=False)
    basis = forms.CharField(
        label=_("what shows it"), widget=forms.Textarea(attrs={"rows": 2}), required=False
    )
    team: forms.ModelChoiceField = forms.ModelChoiceField(
        label=_("responsible team"), queryset=None, required=False, empty_label=_("No team")
    )
    version = forms.IntegerField(widget=forms.HiddenInput)

    def __init__(self, *args: Any, actor: Actor, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["team"].queryset = teams_of(actor)  # type: ignore[attr-defined]


class DeclarationForm(forms.Form):
    statement = forms.CharField(
        label=_("what is declared"), widget=forms.Textarea(attrs={"rows": 2}), required=False
    )
    source = forms.CharField(label=_("where it comes from"), max_length=300, required=False)
    version = forms.IntegerField(widget=forms.HiddenInput)


class CancelForm(forms.Form):
    reason = forms.CharField(label=_("reason"), widget=forms.Textarea(attrs={"rows": 3}))


class TokenForm(forms.Form):
    name = forms.CharField(label=_("name"), max_length=80)
    scopes = forms.MultipleChoiceField(
        label=_("scopes"),
        choices=[(scope, scope) for scope in SCOPES],
        widget=forms.CheckboxSelectMultiple,
        help_text=_("What the token may do on this project."),
    )
    expires_at = forms.DateTimeField(
        label=_("expires"),
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
        help_text=_("At most a year from now."),
    )
    sponsor: forms.ModelChoiceField = forms.ModelChoiceField(
        label=_("sponsor"),
        queryset=None,
        empty_label=_("You"),
        required=False,
        help_text=_(
            "Who answers for the token; empty: you. The sponsor cannot review or sign what it contributes."
        ),
    )
    allowed_addresses = forms.CharField(
        label=_("allowed addresses"),
        required=False,
        help_text=_("IP addresses or networks, separated by spaces. Empty: any address."),
    )

    def __init__(self, *args: Any, sponsors: QuerySet[User], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["sponsor"].queryset = sponsors  # type: ignore[attr-defined]

    def clean_allowed_addresses(self) -> list[str]:
        return self.cleaned_data["allowed_addresses"].replace(",", " ").split()
