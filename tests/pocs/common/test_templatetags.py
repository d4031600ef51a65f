"""Figures keep their unit, what was not observed is never a zero, states are words with a colour."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from django.template import engines
from django.utils import timezone

from pocs.common.templatetags import phasegate as tags


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0, "0.00"), (9.994, "9.99"), (12.34, "12.3"), (123.6, "124"), (1234.5, "1,234"), (-4.2, "-4.20")],
)
def test_milliseconds_have_three_digits_and_their_unit(value: float, shown: str) -> None:
    assert tags.ms_number(value) == shown
    assert f"{shown}<span" in tags.ms(value)
    assert " ms" in tags.ms(value)


@pytest.mark.parametrize(
    "filter_name",
    [
        "ms",
        "ms_number",
        "ms_exact",
        "seconds",
        "tokens",
        "tokens_per_s",
        "requests_per_s",
        "mib",
        "percent",
        "at",
    ],
)
def test_what_was_not_observed_is_a_dash_that_says_so(filter_name: str) -> None:
    shown = getattr(tags, filter_name)(None)
    assert "—" in shown
    assert 'title="not observed"' in shown


def test_zero_is_a_figure_and_not_absent() -> None:
    assert tags.or_absent(0) == 0
    assert "0.0" in tags.percent(0)
    assert "—" in tags.or_absent("")
    assert "—" in tags.or_absent(None)


def test_units_are_converted() -> None:
    assert "1.0" in tags.mib(2**20)
    assert "12.5" in tags.percent(0.125)
    assert tags.figure_as(0.125, "percent") == "12.5"
    assert tags.figure_as(256 * 2**20, "mib") == "256"


def test_text_and_booleans_are_no_figures() -> None:
    assert "—" in tags.number("many")
    assert "—" in tags.number(True)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(12, "12 s"), (200, "3 min 20 s"), (timedelta(hours=1, minutes=2), "1 h 02 min")],
)
def test_durations(value: object, shown: str) -> None:
    assert tags.duration(value) == shown


def test_moments_are_shown_in_the_current_zone_with_the_exact_time() -> None:
    moment = datetime(2026, 3, 4, 17, 5, 6, tzinfo=UTC)
    with timezone.override("Asia/Shanghai"):
        shown = tags.at(moment)
    assert ">2026-03-05 01:05<" in shown
    assert "01:05:06" in shown


def test_a_state_is_a_word_with_a_colour() -> None:
    run = SimpleNamespace(state="failed", get_state_display=lambda: "Failed")
    assert tags.state_badge(run) == '<span class="badge bad" data-state="failed">Failed</span>'
    assert 'class="badge good"' in tags.state_badge("valid", "Valid")
    assert 'class="badge calm"' in tags.state_badge("never-heard-of", "?")


def test_labels_and_names_are_escaped() -> None:
    assert "<script>" not in tags.state_badge("valid", "<script>")
    assert "<b>" not in tags.breakable("<b>/x")
    assert "<wbr>" in tags.breakable("short-request@1")


def test_a_digest_is_short_and_whole_in_its_title() -> None:
    shown = tags.short_digest("ab" * 32)
    assert f'title="{"ab" * 32}"' in shown
    assert ">abababababab<" in shown


def test_a_form_links_help_and_errors_to_their_control() -> None:
    from django import forms

    class Form(forms.Form):
        name = forms.CharField(help_text="As on the contract.")
        agreed = forms.BooleanField(required=False)

    template = engines["django"].from_string('{% include "components/form.html" %}')
    html = template.render({"form": Form({"name": ""})})
    assert 'aria-describedby="id_name_helptext id_name_error"' in html
    assert 'id="id_name_helptext"' in html
    assert 'id="id_name_error"' in html
    assert 'role="alert"' in html
