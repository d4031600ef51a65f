"""Sentences that are kept: written by one person, read by another in their own language."""

from django.utils.translation import gettext_lazy, override

from pocs.common.phrases import kept, read_said, reason_facts, said
from pocs.people.roles import ProjectRole


def test_what_is_kept_is_english_and_reads_in_each_language() -> None:
    inner = gettext_lazy("the package was rejected")
    with override("zh-hans"):
        sentence = said(gettext_lazy("%(what)s: %(object)s"), what=inner, object="Reviewer of 50% ")
        text, stored = kept(sentence)
        facts = reason_facts(sentence)
    assert text == "the package was rejected: Reviewer of 50% "
    assert stored is not None
    assert facts == {"reason": text, "said": stored}
    with override("zh-hans"):
        assert read_said(stored) == f"{inner}：Reviewer of 50% "
        assert str(inner) != "the package was rejected"
        assert str(sentence) == read_said(stored)
    assert read_said(stored) == text


def test_a_label_is_translated_and_a_name_is_not() -> None:
    stored = said(gettext_lazy("%(item)s changed"), item=ProjectRole.REVIEWER.label).stored()
    named = said(gettext_lazy("%(item)s changed"), item="Reviewer").stored()
    with override("zh-hans"):
        assert "Reviewer" not in read_said(stored)
        assert "Reviewer" in read_said(named)


def test_a_reason_in_words_stays_as_it_was_given() -> None:
    assert kept("x" * 400) == ("x" * 300, None)
    assert reason_facts("Budget fell.") == {"reason": "Budget fell."}
