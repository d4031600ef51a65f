"""Forms of the reviews; they carry input, the services judge it."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from pocs.people.models import User
from pocs.projects.gates import gates
from pocs.projects.models import Project
from pocs.reviews.choices import DecisionOutcome, NextStep, Verdict
from pocs.reviews.manifest import BUSINESS_FIELDS, CONCLUSION_FIELDS
from pocs.reviews.models import BusinessResult, Conclusion
from pocs.reviews.policy import NEVER_WAIVED
from pocs.reviews.selectors import members_of

CONDITION_ROWS = 3


class DateInput(forms.DateInput):
    input_type = "date"

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(format="%Y-%m-%d", **kwargs)


class DateTimeInput(forms.DateTimeInput):
    input_type = "datetime-local"

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(format="%Y-%m-%dT%H:%M", **kwargs)


def people_field(project: Project, label: Any) -> forms.ModelChoiceField:
    """A choice among the active members of the project."""
    people = User.objects.filter(pk__in=[user.pk for user in members_of(project)])
    return forms.ModelChoiceField(queryset=people, label=label, empty_label=_("Nobody yet"))


class ConclusionForm(forms.ModelForm):
    """The conclusion as it was read in `version` (0: nothing stored yet)."""

    version = forms.IntegerField(widget=forms.HiddenInput)

    class Meta:
        model = Conclusion
        fields = CONCLUSION_FIELDS
        widgets = {name: forms.Textarea(attrs={"rows": 4}) for name in CONCLUSION_FIELDS}


class BusinessResultForm(forms.ModelForm):
    """The business result as it was read in `version` (0: nothing stored yet)."""

    version = forms.IntegerField(widget=forms.HiddenInput)

    class Meta:
        model = BusinessResult
        fields = BUSINESS_FIELDS
        widgets = {"statement": forms.Textarea(attrs={"rows": 4})}


class SignForm(forms.Form):
    """One signature: verdict, what is said with it, and the password again."""

    verdict = forms.ChoiceField(label=_("Verdict"), choices=Verdict.choices, widget=forms.RadioSelect)
    comment = forms.CharField(
        label=_("Comment"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=_("The reason of a rejection, or the conditions of an approval."),
    )
    password = forms.CharField(
        label=_("Your password"),
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
        help_text=_("Asked again at each signature."),
    )


class ReasonForm(forms.Form):
    """A reason for taking something back."""

    reason = forms.CharField(label=_("Reason"), widget=forms.Textarea(attrs={"rows": 2}))


class NoteForm(forms.Form):
    """What is said with the refusal or the end of a waiver."""

    note = forms.CharField(label=_("Reason"), required=False, widget=forms.Textarea(attrs={"rows": 2}))


class WaiverForm(forms.Form):
    """A request for an exception."""

    guard = forms.ChoiceField(label=_("Guard"))
    reason = forms.CharField(label=_("Reason"), widget=forms.Textarea(attrs={"rows": 3}))
    scope = forms.CharField(label=_("Scope"), widget=forms.Textarea(attrs={"rows": 2}))
    expires_at = forms.DateTimeField(label=_("Expires"), required=False, widget=DateTimeInput())

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["guard"].choices = [  # type: ignore[attr-defined]
            (gate.code, f"{gate.code} · {gate.title}")
            for gate in gates()
            if gate.waivable and gate.code not in NEVER_WAIVED
        ]


class DecisionForm(forms.Form):
    """The proposal of a decision, with up to CONDITION_ROWS conditions."""

    outcome = forms.ChoiceField(label=_("Outcome"), choices=DecisionOutcome.choices)
    next_step = forms.ChoiceField(label=_("Next step (O2)"), choices=NextStep.choices)
    rationale = forms.CharField(label=_("Rationale"), widget=forms.Textarea(attrs={"rows": 4}))

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.pointer_fields: dict[str, str] = {}
        for index in range(CONDITION_ROWS):
            text, owner, due = (f"condition_{index}_{name}" for name in ("text", "owner", "due_on"))
            self.fields[text] = forms.CharField(
                label=_("Condition"), required=False, widget=forms.Textarea(attrs={"rows": 2})
            )
            self.fields[owner] = people_field(project, _("Owner"))
            self.fields[owner].required = False
            self.fields[due] = forms.DateField(label=_("Due"), required=False, widget=DateInput())

    def condition_rows(self) -> list[list[forms.BoundField]]:
        """The fields of each condition, for the template."""
        names = ("text", "owner", "due_on")
        return [[self[f"condition_{index}_{name}"] for name in names] for index in range(CONDITION_ROWS)]

    def conditions(self) -> list[dict[str, Any]]:
        """Conditions with anything filled in; `pointer_fields` then finds their fields again."""
        filled: list[dict[str, Any]] = []
        for index in range(CONDITION_ROWS):
            values = {
                name: self.cleaned_data.get(f"condition_{index}_{name}")
                for name in ("text", "owner", "due_on")
            }
            if any(values.values()):
                for name in values:
                    self.pointer_fields[f"/conditions/{len(filled)}/{name}"] = f"condition_{index}_{name}"
                filled.append(values)
        return filled


class CloseConditionForm(forms.Form):
    """What shows that a condition is met."""

    evidence = forms.CharField(label=_("What closes it"), widget=forms.Textarea(attrs={"rows": 2}))


class TaskForm(forms.Form):
    """Who sees to one of the three tasks, and by when."""

    version = forms.IntegerField(widget=forms.HiddenInput)
    due_on = forms.DateField(label=_("Due"), required=False, widget=DateInput())
    note = forms.CharField(label=_("Note"), required=False, widget=forms.Textarea(attrs={"rows": 2}))

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["owner"] = people_field(project, _("Owner"))
        self.fields["owner"].required = False
        self.order_fields(["version", "owner", "due_on", "note"])


class ObserverForm(forms.Form):
    """Who watches, and when they look next."""

    version = forms.IntegerField(widget=forms.HiddenInput)
    next_reading_on = forms.DateField(label=_("Next reading"), required=False, widget=DateInput())

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["observer"] = people_field(project, _("Observer"))
        self.fields["observer"].required = False
        self.order_fields(["version", "observer", "next_reading_on"])


class ReadingForm(forms.Form):
    """One reading of an observation."""

    value = forms.DecimalField(label=_("Value"), max_digits=18, decimal_places=4)
    unit = forms.CharField(label=_("Unit"), max_length=40)
    note = forms.CharField(label=_("Note"), required=False, widget=forms.Textarea(attrs={"rows": 2}))
    next_reading_on = forms.DateField(label=_("Next reading"), required=False, widget=DateInput())
