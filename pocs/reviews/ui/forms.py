"""Forms of the reviews; they carry input, the services judge it."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _

from pocs.evidence.choices import CURRENT_STATES
from pocs.evidence.models import EvidenceRevision
from pocs.people.models import User
from pocs.projects.gates import gates
from pocs.projects.models import Project
from pocs.projects.selectors import approved_versions
from pocs.reviews.choices import DecisionOutcome, NextStep, Verdict
from pocs.reviews.citations import citations_of, rules
from pocs.reviews.duties import Duty
from pocs.reviews.eligibility import Candidate
from pocs.reviews.manifest import BUSINESS_FIELDS, CONCLUSION_FIELDS
from pocs.reviews.models import BusinessResult, Conclusion, Package, ReviewPolicy
from pocs.reviews.policy import NEVER_WAIVED, POLICY_FIELDS
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
    return forms.ModelChoiceField(
        queryset=people,
        label=label,
        empty_label=_("Nobody yet"),
        error_messages={"required": _("Name a person.")},
    )


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

    def __init__(self, *args: Any, candidates: Sequence[Candidate] = (), **kwargs: Any) -> None:
        """`candidates`: the reader's own candidacies for the slot, by role and as a deputy."""
        super().__init__(*args, **kwargs)
        able = [item for item in candidates if item.eligible]
        if any(item.on_behalf_of for item in able):
            choices = [(_key(item), str(item)) for item in able]
            self.fields["capacity"] = forms.ChoiceField(
                label=_("Sign as"), choices=choices, widget=forms.RadioSelect, initial=choices[0][0]
            )
            self.order_fields(["capacity", "verdict", "comment", "password"])

    @property
    def principal_id(self) -> int | None:
        """The person for whom the reader signs; None for their own name."""
        chosen = self.cleaned_data.get("capacity") or ""
        return int(chosen) if chosen.isdecimal() else None


def _key(candidate: Candidate) -> str:
    return str(candidate.on_behalf_of.pk) if candidate.on_behalf_of else "own"


class ObjectionForm(forms.Form):
    """A line of the package, the rule it breaks, and what is wrong with it."""

    key = forms.ChoiceField(label=_("Line"))
    rule = forms.ChoiceField(label=_("Rule"))
    statement = forms.CharField(label=_("What is wrong with it"), widget=forms.Textarea(attrs={"rows": 3}))

    def __init__(self, *args: Any, package: Package, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        groups: dict[str, list[tuple[str, str]]] = {}
        for citation in citations_of(package).values():
            text = citation.text if len(citation.text) <= 90 else citation.text[:89] + "…"
            groups.setdefault(citation.part, []).append((citation.key, f"{citation.label}: {text}"))
        self.fields["key"].choices = list(groups.items())  # type: ignore[attr-defined]
        self.fields["rule"].choices = rules()  # type: ignore[attr-defined]


class AnswerForm(forms.Form):
    answer = forms.CharField(label=_("Answer"), widget=forms.Textarea(attrs={"rows": 3}))


class RulingForm(forms.Form):
    upheld = forms.TypedChoiceField(
        label=_("Ruling"),
        choices=[("yes", _("Upheld: the package must change")), ("no", _("Dismissed: the line stands"))],
        coerce=lambda value: value == "yes",
        widget=forms.RadioSelect,
    )
    ruling = forms.CharField(label=_("Reasons"), widget=forms.Textarea(attrs={"rows": 3}))


class PolicyForm(forms.ModelForm):
    """The review policy as it was read in `version` (0: nothing stored yet)."""

    version = forms.IntegerField(widget=forms.HiddenInput)

    class Meta:
        model = ReviewPolicy
        fields = POLICY_FIELDS
        help_texts = {
            "request_days": _("After that the request ends and the lead asks again."),
            "signature_days": _("An approval older than that counts no longer for a decision."),
            "objection_days": _("0: objections are possible, but no decision waits for them."),
        }

    def validate_constraints(self) -> None:
        """The service says what is out of range, field by field."""


class HandOverForm(forms.Form):
    """Duties and the person who takes them over."""

    items = forms.MultipleChoiceField(label=_("Duties"), widget=forms.CheckboxSelectMultiple)
    to: forms.ModelChoiceField = forms.ModelChoiceField(
        label=_("to"), queryset=None, empty_label=_("Choose a person")
    )
    reason = forms.CharField(label=_("Reason"), max_length=300)

    def __init__(self, *args: Any, duties: Sequence[Duty], people: QuerySet[User], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["items"].choices = [  # type: ignore[attr-defined]
            (
                duty.key,
                " · ".join(map(str, filter(None, (duty.project, duty.title, duty.owner, duty.due_on)))),
            )
            for duty in duties
        ]
        self.fields["to"].queryset = people  # type: ignore[attr-defined]


class ScheduleForm(forms.Form):
    """Which run is repeated, against which target, how often and from when."""

    version = forms.IntegerField(widget=forms.HiddenInput)
    scenario: forms.ModelChoiceField = forms.ModelChoiceField(
        label=_("Scenario"), queryset=None, empty_label=_("Choose a scenario")
    )
    target: forms.ModelChoiceField = forms.ModelChoiceField(
        label=_("Target"), queryset=None, empty_label=_("Choose a target")
    )
    every_days = forms.IntegerField(label=_("Every … days"))
    next_on = forms.DateField(label=_("Next run"), widget=DateInput())
    cost_per_hour = forms.DecimalField(
        label=_("Cost of the target per hour"), required=False, max_digits=12, decimal_places=4,
        help_text=_("Without it no reading of the cost is taken."),
    )  # fmt: skip
    currency = forms.CharField(label=_("Currency"), required=False, max_length=8)
    active = forms.BooleanField(label=_("active"), required=False)

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["scenario"].queryset = approved_versions(project)  # type: ignore[attr-defined]
        self.fields["target"].queryset = project.targets.all()  # type: ignore[attr-defined]


class ReasonForm(forms.Form):
    """A reason for taking something back."""

    reason = forms.CharField(label=_("Reason"), widget=forms.Textarea(attrs={"rows": 2}))


class NoteForm(forms.Form):
    """What is said with the refusal or the end of a waiver."""

    note = forms.CharField(
        label=_("Reason"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text=_("Needed to refuse or to revoke."),
    )


class WaiverForm(forms.Form):
    """A request for an exception."""

    guard = forms.ChoiceField(label=_("Guard"))
    reason = forms.CharField(label=_("Reason"), widget=forms.Textarea(attrs={"rows": 3}))
    scope = forms.CharField(label=_("Scope"), widget=forms.Textarea(attrs={"rows": 2}))
    expires_at = forms.DateTimeField(
        label=_("Expires"),
        widget=DateTimeInput(),
        error_messages={"required": _("A waiver needs an expiry.")},
    )

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
    """What shows that a condition is met, and the reviewed evidence of it where there is one."""

    evidence = forms.CharField(label=_("What closes it"), widget=forms.Textarea(attrs={"rows": 2}))
    revision: forms.ModelChoiceField = forms.ModelChoiceField(
        label=_("Reviewed evidence"), queryset=None, required=False, empty_label=_("None: the words say it")
    )

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        rows = EvidenceRevision.objects.filter(evidence__project=project, state__in=CURRENT_STATES)
        self.fields["revision"].queryset = rows.select_related("evidence")  # type: ignore[attr-defined]


class TaskForm(forms.Form):
    """Who sees to one of the three tasks, and by when."""

    version = forms.IntegerField(widget=forms.HiddenInput)
    due_on = forms.DateField(
        label=_("Due"), widget=DateInput(), error_messages={"required": _("Give a date.")}
    )
    note = forms.CharField(label=_("Note"), required=False, widget=forms.Textarea(attrs={"rows": 2}))

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["owner"] = people_field(project, _("Owner"))
        self.order_fields(["version", "owner", "due_on", "note"])


class ObserverForm(forms.Form):
    """Who watches, and when they look next."""

    version = forms.IntegerField(widget=forms.HiddenInput)
    next_reading_on = forms.DateField(label=_("Next reading"), required=False, widget=DateInput())

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["observer"] = people_field(project, _("Observer"))
        self.order_fields(["version", "observer", "next_reading_on"])


class ReadingForm(forms.Form):
    """One reading of an observation."""

    value = forms.DecimalField(label=_("Value"), max_digits=18, decimal_places=4)
    unit = forms.CharField(label=_("Unit"), max_length=40)
    note = forms.CharField(label=_("Note"), required=False, widget=forms.Textarea(attrs={"rows": 2}))
    next_reading_on = forms.DateField(label=_("Next reading"), required=False, widget=DateInput())
