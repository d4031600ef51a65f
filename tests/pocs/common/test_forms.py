"""How a service's refusal reaches a form, field by field, with everything typed kept."""

from django import forms

from pocs.common.errors import Conflict, FieldError, GateNotMet, InvalidInput, Missing, NotFound
from pocs.common.ui.mixins import service_errors


class Form(forms.Form):
    name = forms.CharField(required=False)
    limits = forms.CharField(required=False)
    pointer_fields = {"/title": "name"}


def bound() -> Form:
    form = Form({"name": "typed", "limits": "typed"})
    assert form.is_valid()
    return form


def test_errors_go_to_the_field_their_pointer_names() -> None:
    form = bound()
    wrong = [
        FieldError("/title", "taken", "Taken."),
        FieldError("/spec/limits/0/metric", "unknown", "Unknown."),
        FieldError("/elsewhere/1", "odd", "Odd."),
        FieldError("", "whole", "All of it."),
    ]
    with service_errors(form) as call:
        raise InvalidInput("Wrong.", wrong)
    assert call.failed
    assert call.status == 400
    assert form.errors["name"] == ["Taken."]
    assert form.errors["limits"] == ["Unknown."]
    assert form.non_field_errors() == ["elsewhere → 1: Odd.", "All of it."]
    assert form["name"].value() == "typed"


def test_conflicts_and_gates_stand_above_the_form() -> None:
    form = bound()
    with service_errors(form) as call:
        raise Conflict("Not now.")
    assert (call.status, form.non_field_errors()) == (409, ["Not now."])
    form = bound()
    with service_errors(form):
        raise GateNotMet("Not yet.", [Missing("G1", "missing: data")])
    assert form.non_field_errors() == ["Not yet.", "G1: missing: data"]


def test_success_and_page_errors_pass() -> None:
    with service_errors(bound()) as call:
        pass
    assert (call.failed, call.status) == (False, 200)
    try:
        with service_errors(bound()):
            raise NotFound("Gone.")
    except NotFound:
        return
    raise AssertionError("NotFound concerns the page and passes through")
