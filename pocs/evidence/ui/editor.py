"""The editor of evidence: one form page for new evidence and for the next words of an existing one."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from pocs.common.actors import Actor
from pocs.common.errors import DomainError, FieldError, InvalidInput, StaleVersion
from pocs.common.ui.mixins import PAGE_ERRORS, add_service_error
from pocs.evidence.bodies import captured_configuration, empty_body
from pocs.evidence.choices import CHECK_FOCUS, REVIEW_METHOD, TYPE_CODES, EvidenceType, ResponsibilityKind
from pocs.evidence.difference import Change, changes_of_body
from pocs.evidence.files import too_large
from pocs.evidence.models import Evidence, EvidenceRevision
from pocs.evidence.presentation import Names
from pocs.evidence.ui.forms import EMPTY_ROWS, EvidenceForm, RowFormSet, initial_of, row_formset
from pocs.projects.models import Project
from pocs.runs.models import Run

ROWS_PREFIX = "rows"


@dataclass
class Editor:
    """One request to the form page: its form, the rows of responsibility, and how it ended.

    `revision` is the newest revision of evidence that exists already; `save` calls the service with
    what was typed and returns the page to go to.
    """

    request: HttpRequest
    actor: Actor
    project: Project
    type: EvidenceType
    save: Callable[["Editor"], str]
    revision: EvidenceRevision | None = None
    initial: dict[str, Any] = field(default_factory=dict)
    conflict: StaleVersion | None = None
    form: EvidenceForm = field(init=False)
    rows: RowFormSet | None = field(init=False, default=None)

    @property
    def evidence(self) -> Evidence | None:
        return self.revision.evidence if self.revision else None

    def respond(self) -> HttpResponse:
        """The page for this request: empty, as typed with more room, saved, or with what was refused."""
        if self.request.method != "POST":
            self._show(self._stored_initial() | self.initial, self._stored_rows())
            return self._render()
        self._bind()
        if {"capture", "more"} & set(self.request.POST):
            typed_rows = self.rows.typed() if self.rows else []
            self._show(self.form.typed(), typed_rows)
            return self._render()
        if not self._valid():
            return self._render(status=400)
        try:
            return redirect(self.save(self))
        except PAGE_ERRORS:
            raise
        except DomainError as error:
            self._take(error)
            return self._render(status=error.status)

    def body(self) -> dict[str, Any]:
        """What was typed, as the service takes it."""
        body = self.form.body()
        if self.rows is not None:
            body["rows"] = self.rows.rows()
        return body

    def _form_arguments(self) -> dict[str, Any]:
        attached = list(self.revision.runs.all()) if self.revision else []
        stored = self.revision.body if self.revision else None
        return {
            "type": self.type,
            "project": self.project,
            "actor": self.actor,
            "attached": attached,
            "stored": stored,
        }

    def _show(self, initial: dict[str, Any], rows: list[dict[str, Any]]) -> None:
        """An unbound form and formset with these values."""
        self.form = EvidenceForm(initial=initial, **self._form_arguments())
        if self.type == EvidenceType.RESPONSIBILITY:
            self.rows = row_formset(EMPTY_ROWS)(
                initial=rows, prefix=ROWS_PREFIX, form_kwargs={"actor": self.actor}
            )

    def _bind(self) -> None:
        self.form = EvidenceForm(self.request.POST, self.request.FILES, **self._form_arguments())
        if self.type == EvidenceType.RESPONSIBILITY:
            self.rows = row_formset(0)(
                self.request.POST, prefix=ROWS_PREFIX, form_kwargs={"actor": self.actor}
            )

    def _stored_initial(self) -> dict[str, Any]:
        if self.revision is None:
            return {}
        initial = initial_of(self.type, title=self.revision.title, body=self.revision.body)
        initial["version"] = self.revision.evidence.version
        initial["runs"] = [run.pk for run in self.revision.runs.all()]
        return initial

    def _stored_rows(self) -> list[dict[str, Any]]:
        if self.revision is None:
            return [{"kind": kind.value} for kind in ResponsibilityKind]
        return self.revision.body.get("rows") or []

    def _valid(self) -> bool:
        """Whether form and rows can be given to the service; every error of both is shown at once."""
        valid = self.form.is_valid()
        for name in getattr(self.request, "too_large_files", []):
            self.form.add_error("files", str(too_large(name).detail))
            valid = False
        return (self.rows is None or self.rows.is_valid()) and valid

    def _take(self, error: DomainError) -> None:
        """Spread a refusal over the fields; errors in rows go to the row they belong to."""
        if isinstance(error, StaleVersion):
            self.conflict = error
            self._offer_overwrite(error)
            return
        if isinstance(error, InvalidInput) and error.errors and self.rows is not None:
            rest = [wrong for wrong in error.errors if not self._take_in_row(wrong)]
            if not rest:
                return
            error = InvalidInput(error.detail, rest)
        add_service_error(self.form, error)

    def _take_in_row(self, wrong: FieldError) -> bool:
        parts = wrong.pointer.split("/")
        if self.rows is None or parts[1:3] != ["body", "rows"] or len(parts) != 5 or not parts[3].isdigit():
            return False
        form = self.rows.form_of_row(int(parts[3]))
        if form is None or parts[4] not in form.fields:
            return False
        form.add_error(parts[4], str(wrong.detail))
        return True

    def _offer_overwrite(self, error: StaleVersion) -> None:
        """Let a second save replace what is stored now, after both versions were shown."""
        typed: Any = self.form.data
        self.form.data = changed = typed.copy()
        changed["version"] = str(error.extra["current"])

    def conflict_changes(self) -> list[Change]:
        """What the typed text would change in what is stored now."""
        if self.conflict is None or self.revision is None:
            return []
        stored = self.revision.evidence.revisions.order_by("-number")[0]
        typed = empty_body(self.type) | self.body()
        if (source := self.form.cleaned_data.get("source_run")) is not None:
            recorded = captured_configuration(source)
            typed |= {name: value for name, value in recorded.items() if value}
        names = Names.in_bodies(self.project, stored.body, typed)
        changes = changes_of_body(self.type, stored.body, typed, names)
        title = self.form.cleaned_data["title"]
        if title != stored.title:
            changes.insert(0, Change("changed", _("Title"), stored.title, title))
        stored_runs, typed_runs = set(stored.runs.all()), set(self.form.chosen_runs())
        changes += [
            Change("removed", _("Attached run"), str(run), "") for run in _sorted(stored_runs - typed_runs)
        ]
        changes += [
            Change("added", _("Attached run"), "", str(run)) for run in _sorted(typed_runs - stored_runs)
        ]
        return changes

    def _render(self, status: int = 200) -> HttpResponse:
        context = {
            "editor": self,
            "project": self.project,
            "evidence": self.evidence,
            "revision": self.revision,
            "form": self.form,
            "rows": self.rows,
            "type": self.type,
            "code": TYPE_CODES[self.type],
            "focus": CHECK_FOCUS[self.type],
            "method": REVIEW_METHOD[self.type],
            "conflict": self.conflict,
            "changes": self.conflict_changes(),
            "refused": bool(self.form.errors or (self.rows is not None and self.rows.total_error_count())),
            "files_lost": bool(status != 200 and self.request.FILES),
        }
        return render(self.request, "evidence/form.html", context, status=status)


def _sorted(runs: set[Run]) -> list[Run]:
    return sorted(runs, key=lambda run: run.number)


def tell_saved(request: HttpRequest, revision: EvidenceRevision) -> None:
    """The message after a save."""
    text = _("Revision %(number)d is saved as a draft. Submit it when it is complete.")
    messages.success(request, text % {"number": revision.number})
