"""Forms of evidence, one shape per type, built from the schema of the body.

A draft may be half written: `required` on a field says what a submission needs and does not keep
the draft from being saved.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from django import forms
from django.core.files.uploadedfile import UploadedFile
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from pocs.common.actors import Actor
from pocs.evidence.bodies import SCHEMAS, BodyField, captured_configuration
from pocs.evidence.choices import EvidenceType, ResponsibilityKind
from pocs.evidence.configurations import previous_configuration, run_changes
from pocs.evidence.presentation import flatten
from pocs.people.selectors import active_people_of, teams_of
from pocs.projects.models import Project
from pocs.runs.models import Run
from pocs.runs.selectors import valid_runs

CAPTURED = ("model", "engine_settings", "versions", "environment")
EMPTY_ROWS = 3


class Draftable:
    """Field of a draft: shown as needed for the submission, not enforced before."""

    empty_values: Any

    def validate(self, value: Any) -> None:
        if value not in self.empty_values:
            super().validate(value)  # type: ignore[misc]


class DraftText(Draftable, forms.CharField):
    pass


class DraftPerson(Draftable, forms.ModelChoiceField):
    pass


class RunChoice(forms.ModelChoiceField):
    """A run by its number, scenario and target."""

    def label_from_instance(self, obj: Run) -> str:
        return " · ".join(str(part) for part in (obj, obj.scenario_version, obj.target) if part)


class FilesInput(forms.ClearableFileInput):
    allow_multiple_selected = True


class FilesField(forms.FileField):
    """Any number of files; their kinds and sizes are judged by the service."""

    widget = FilesInput

    def clean(self, data: Any, initial: Any = None) -> list[UploadedFile]:
        given = data if isinstance(data, list) else [data] if data else []
        return [item for item in given if item]


class EvidenceForm(forms.Form):
    """Title, body, runs and files of evidence of one type; `body()` gives what the service takes."""

    use_required_attribute = False
    title = forms.CharField(label=_("Title"), max_length=200)
    version = forms.IntegerField(widget=forms.HiddenInput, required=False)

    def __init__(
        self,
        *args: Any,
        type: EvidenceType,
        project: Project,
        actor: Actor,
        attached: Iterable[Run] = (),
        stored: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.type = type
        self.stored = dict(stored or {})
        self.runs = valid_runs(project)
        for field in SCHEMAS[type]:
            if field.kind not in ("rows", "digest"):
                self.fields[field.name] = self._form_field(field, actor)
        if type == EvidenceType.RUNTIME:
            choices = Run.objects.filter(Q(pk__in=self.runs) | Q(pk__in=[run.pk for run in attached]))
            self.fields["runs"] = forms.ModelMultipleChoiceField(
                choices.select_related("scenario_version__scenario", "target").order_by("-number"),
                required=False,
                label=_("Runs"),
                widget=forms.CheckboxSelectMultiple,
            )
        self.fields["files"] = FilesField(required=False, label=_("Files"))
        self.pointer_fields = {"/title": "title", "/file": "files", "/runs": "runs"}

    def _form_field(self, field: BodyField, actor: Actor) -> forms.Field:
        common: dict[str, Any] = {"label": field.label, "help_text": field.help, "required": field.required}
        if field.kind == "run":
            runs = self.runs.filter(configuration__isnull=False)
            return RunChoice(runs, empty_label=_("— typed by hand —"), **common)
        if field.kind == "user":
            return DraftPerson(active_people_of(actor), empty_label="—", **common)
        rows = 3 if field.kind in ("lines", "text") else 5
        if field.kind == "map":
            common["help_text"] = _("%(what)s One a line, as “name: value”.") % {"what": field.help}
        return DraftText(widget=forms.Textarea(attrs={"rows": rows}), **common)

    @property
    def body_fields(self) -> list[forms.BoundField]:
        """The fields of the body in the order of the schema, without those captured from a run."""
        hidden = captured_fields(self.captured_from)
        own = [field.name for field in SCHEMAS[self.type] if field.name in self.fields]
        return [self[name] for name in own if name not in ("source_run", *hidden)]

    @property
    def captured_from(self) -> Run | None:
        """The run chosen as the source of the configuration, if it is one that may be."""
        if "source_run" not in self.fields:
            return None
        chosen = self["source_run"].value()
        return self.runs.filter(pk=chosen).first() if str(chosen or "").isdigit() else None

    @property
    def captured(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """What the chosen run recorded, by field, as (path, value) pairs."""
        run = self.captured_from
        if run is None:
            return []
        recorded = captured_configuration(run)
        labels = {field.name: str(field.label) for field in SCHEMAS[self.type]}
        return [(labels[name], flatten(recorded[name])) for name in captured_fields(run)]

    @property
    def configuration_before(self) -> dict[str, Any] | None:
        """The run with the configuration before the captured one, and what differs from it."""
        run = self.captured_from
        before = previous_configuration(run) if run else None
        return {"run": before, "changes": run_changes(before, run)} if run and before else None

    @property
    def run_rows(self) -> list[tuple[Run, bool]]:
        """The runs to choose from, each with whether it is chosen."""
        chosen = {str(getattr(value, "pk", value)) for value in self["runs"].value() or []}
        queryset = self.fields["runs"].queryset  # type: ignore[attr-defined]
        return [(run, str(run.pk) in chosen) for run in queryset]

    def body(self) -> dict[str, Any]:
        """The body as the service takes it; call after validation."""
        captured = captured_fields(self.cleaned_data.get("source_run"))
        body: dict[str, Any] = {}
        for field in SCHEMAS[self.type]:
            if field.name not in self.fields or field.name in captured:
                continue
            value = self.cleaned_data.get(field.name)
            if field.kind in ("run", "user"):
                body[field.name] = value.pk if value else None
            elif field.kind == "map":
                body[field.name] = self._settings(field.name, value or "")
            else:
                body[field.name] = (value or "").splitlines() if field.kind == "lines" else value or ""
        return body

    def _settings(self, name: str, text: str) -> dict[str, Any]:
        """Typed settings; untouched ones keep the form in which they are stored."""
        stored = self.stored.get(name) or {}
        if text.split() == settings_as_text(stored).split():
            return stored
        return settings_from_text(text)

    def chosen_runs(self) -> list[Run]:
        return list(self.cleaned_data.get("runs") or [])

    def uploads(self) -> list[UploadedFile]:
        return self.cleaned_data.get("files") or []

    def typed(self) -> dict[str, Any]:
        """What was typed so far, as `initial` of a form that is shown again without judging it."""
        data: Any = self.data
        return {
            name: data.getlist(name) if name == "runs" else data.get(name)
            for name in self.fields
            if name != "files"
        }


def captured_fields(run: Run | None) -> list[str]:
    """The fields whose content this run recorded, which are not typed."""
    recorded = captured_configuration(run) if run else {}
    return [name for name in CAPTURED if recorded.get(name)]


def initial_of(type: EvidenceType, *, title: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """A stored body as the initial values of its form; rows belong to the formset."""
    initial: dict[str, Any] = {"title": title}
    for field in SCHEMAS[type]:
        value = body.get(field.name)
        if field.kind == "map":
            initial[field.name] = settings_as_text(value or {})
        elif field.kind == "lines":
            initial[field.name] = "\n".join(value or [])
        elif field.kind != "rows":
            initial[field.name] = value
    return initial


def settings_as_text(settings: Mapping[str, Any]) -> str:
    """Settings as lines “name: value”, nested names joined by dots."""
    return "\n".join(f"{path}: {text}" for path, text in flatten(dict(settings)))


def settings_from_text(text: str) -> dict[str, Any]:
    """Lines “name: value” (or “name = value”) as settings; numbers, true, false and null keep their type."""
    settings: dict[str, Any] = {}
    for line in text.splitlines():
        name, separator, value = line.partition(":") if ":" in line else line.partition("=")
        if name.strip():
            settings[name.strip()] = _typed_value(value.strip()) if separator else ""
    return settings


def _typed_value(text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    plain = value is None or isinstance(value, (int, float))
    return value if plain and json.dumps(value) == text else text  # 2.10 is a version, not 2.1


class ResponsibilityRow(forms.Form):
    """One line of responsibility: what it is about, and the team and person behind it."""

    use_required_attribute = False
    kind = forms.ChoiceField(
        label=_("Kind"), choices=[("", "—"), *ResponsibilityKind.choices], required=False
    )
    subject = forms.CharField(label=_("Subject"), max_length=300, required=False)
    team: Any = forms.ModelChoiceField(None, label=_("Team"), empty_label="—", required=False)
    person: Any = forms.ModelChoiceField(None, label=_("Person"), empty_label="—", required=False)
    alert_route = forms.CharField(label=_("Alert route"), max_length=300, required=False)
    on_call = forms.CharField(label=_("On call"), max_length=300, required=False)

    def __init__(self, *args: Any, actor: Actor, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["team"].queryset = teams_of(actor)  # type: ignore[attr-defined]
        self.fields["person"].queryset = active_people_of(actor)  # type: ignore[attr-defined]

    def row(self) -> dict[str, Any] | None:
        """The row as the body holds it; None when nothing but the kind was chosen."""
        values = {name: self.cleaned_data.get(name) for name in self.fields if name != "DELETE"}
        if not any(value for name, value in values.items() if name != "kind"):
            return None
        return {
            name: getattr(value, "pk", value) if name in ("team", "person") else value or ""
            for name, value in values.items()
        }


class RowFormSet(forms.BaseFormSet):
    """The rows of responsibility evidence."""

    def rows(self) -> list[dict[str, Any]]:
        """The written rows in order; call after validation."""
        return [row for _, row in self._written()]

    def form_of_row(self, index: int) -> forms.Form | None:
        """The form that row `index` of `rows()` came from, to show its error there."""
        written = self._written()
        return written[index][0] if index < len(written) else None

    def _written(self) -> list[tuple[forms.Form, dict[str, Any]]]:
        kept = [form for form in self.forms if form not in self.deleted_forms]
        return [(form, row) for form in kept if (row := form.row()) is not None]

    def typed(self) -> list[dict[str, Any]]:
        """What was typed so far in every row, as `initial` of a formset with more rows."""
        return [
            {name: form.data.get(form.add_prefix(name)) for name in form.fields if name != "DELETE"}
            for form in self.forms
        ]


def row_formset(extra: int) -> type[RowFormSet]:
    """A formset class with `extra` empty rows below the written ones."""
    made: Any = forms.formset_factory(
        ResponsibilityRow, formset=RowFormSet, extra=extra, can_delete=True, max_num=200, absolute_max=220
    )
    return made
