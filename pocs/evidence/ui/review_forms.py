"""Forms around the review: notes, comments on lines, requests for a review, the runtime query, files."""

from collections.abc import Iterable
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from pocs.evidence.lines import Line
from pocs.runs.choices import Outcome

#: of a line, in a list of lines
SHOWN_CHARACTERS = 120


class ReturnForm(forms.Form):
    reason = forms.CharField(label=_("What has to change"), widget=forms.Textarea(attrs={"rows": 3}))


class ReviewForm(forms.Form):
    note = forms.CharField(
        label=_("Note of the review"), widget=forms.Textarea(attrs={"rows": 2}), required=False
    )


class SubmitForm(forms.Form):
    note = forms.CharField(
        label=_("Note to the reviewer"), widget=forms.Textarea(attrs={"rows": 2}), required=False
    )


class CommentForm(forms.Form):
    text = forms.CharField(
        label=pgettext_lazy("discussion", "Comment"), widget=forms.Textarea(attrs={"rows": 3})
    )


class LineCommentForm(CommentForm):
    """A comment on one of the lines of a field; `line` is the path, or the path and a line of its text."""

    line = forms.ChoiceField(label=_("Line"), widget=forms.RadioSelect)
    field_order = ["line", "text"]

    def __init__(self, *args: Any, lines: Iterable[Line], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._anchors: dict[str, tuple[str, str]] = {}
        choices = []
        for number, line in enumerate(lines):
            shown = line.text if len(line.text) <= SHOWN_CHARACTERS else line.text[:SHOWN_CHARACTERS] + "…"
            whole = _("all of it") if line.parts else shown or "—"
            choices.append(self._choice(f"{number}", line.path, "", f"{line.label}: {whole}"))
            choices += [
                self._choice(f"{number}.{place}", line.path, part, part)
                for place, part in enumerate(line.parts)
            ]
        self.fields["line"].choices = choices  # type: ignore[attr-defined]
        self.initial.setdefault("line", choices[0][0] if choices else "")

    def _choice(self, key: str, path: str, quote: str, label: str) -> tuple[str, str]:
        self._anchors[key] = (path, quote)
        return key, label

    def anchor(self) -> dict[str, str]:
        """`path` and `quote` as the service takes them; call after validation."""
        path, quote = self._anchors[self.cleaned_data["line"]]
        return {"path": path, "quote": quote}


class ReviewRequestForm(forms.Form):
    person: Any = forms.ModelChoiceField(None, label=_("Person"), empty_label="—")
    note = forms.CharField(label=_("Note"), widget=forms.Textarea(attrs={"rows": 2}), required=False)

    def __init__(self, *args: Any, people: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["person"].queryset = people  # type: ignore[attr-defined]


class QueryForm(forms.Form):
    """Which requests of runtime evidence are asked for."""

    tenant = forms.ChoiceField(label=_("Tenant"), required=False)
    application = forms.ChoiceField(label=_("Application"), required=False)
    outcome = forms.ChoiceField(
        label=_("Outcome"), choices=[("", _("all")), *Outcome.choices], required=False
    )

    def __init__(
        self, *args: Any, tenants: Iterable[str], applications: Iterable[str], **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        for name, known in (("tenant", tenants), ("application", applications)):
            choices = [("", _("all")), *((value, value) for value in known)]
            self.fields[name].choices = choices  # type: ignore[attr-defined]


class ReadinessEvidenceForm(forms.Form):
    evidence: Any = forms.ModelMultipleChoiceField(
        None, label=_("Evidence"), required=False, widget=forms.CheckboxSelectMultiple
    )

    def __init__(self, *args: Any, choices: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["evidence"].queryset = choices  # type: ignore[attr-defined]


class AttachmentForm(forms.Form):
    file = forms.FileField(label=_("File"), allow_empty_file=True)
