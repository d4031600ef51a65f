"""What the page says of stream habits is what the measuring core says, word for word."""

from django.utils.translation import override

from inference.targets.habits import HABITS
from pocs.runs.habit_wording import HABIT_TEXTS, habit_lines


def test_both_say_the_same() -> None:
    with override("en"):
        assert {code: tuple(str(text) for text in texts) for code, texts in HABIT_TEXTS.items()} == HABITS


def test_what_misleads_comes_first_and_an_unknown_habit_keeps_its_own_words() -> None:
    told = {"seen": "yes", "name": "n", "why_it_matters": "w", "handled": "h"}
    lines = habit_lines(
        [told | {"code": "comments", "effect": "not_seen"}, told | {"code": "new", "effect": "misleads"}]
    )
    assert [line.code for line in lines] == ["new", "comments"]
    assert (lines[0].name, lines[0].why, lines[0].handled, lines[0].telling) == ("n", "w", "h", True)
